//! What is done about topics that do not exist.

use std::{num::NonZeroU32, time::Duration};

use connector_core::backoff::Backoff;
use gcp_wire::{
    TopicName,
    proto::{
        Duration as ProtoDuration,
        pubsub::{MessageStoragePolicy, Topic},
    },
};

use crate::{BuildError, settings::in_range};

/// What the sink does about a topic that does not exist.
///
/// It learns of it from the publish request: existing topics cost no administrative call and need
/// no permission but to publish.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MissingTopics {
    /// Creates the topic and publishes in order what was meant for it. The default.
    ///
    /// A topic that was just created has no subscription, and what is published before it has one
    /// is lost unless the topic retains messages: give it a
    /// [`message_retention`](TopicCreation::message_retention), and mind the warning that each
    /// creation logs. Where a misspelt name is more likely than a new topic, choose
    /// [`End`](Self::End).
    Create(TopicCreation),
    /// Ends the sink with [`SinkError::TopicMissing`](crate::SinkError::TopicMissing).
    End,
}

impl Default for MissingTopics {
    fn default() -> Self {
        Self::Create(TopicCreation::default())
    }
}

/// How topics are created, and how long the sink tries to publish to a new one.
///
/// The settings apply to every topic that the sink creates; those of existing topics are neither
/// changed nor compared. Needs the permission `pubsub.topics.create`.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicCreation {
    message_retention: Option<Duration>,
    kms_key: Option<String>,
    allowed_regions: Vec<String>,
    enforce_in_transit: bool,
    pub(crate) delays: Backoff,
    pub(crate) attempts: NonZeroU32,
}

impl Default for TopicCreation {
    fn default() -> Self {
        const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
        Self {
            message_retention: None,
            kms_key: None,
            allowed_regions: Vec::new(),
            enforce_in_transit: false,
            delays: Backoff::new(Duration::from_millis(500), 2.0, Duration::from_secs(10)),
            attempts: TEN,
        }
    }
}

impl TopicCreation {
    /// How long the topic keeps messages for subscriptions that are made later; the service takes
    /// 10 min to 31 d. Default: not at all, as the service's.
    #[must_use]
    pub fn message_retention(mut self, retention: Duration) -> Self {
        self.message_retention = Some(retention);
        self
    }

    /// The Cloud KMS key with which the topic's messages are encrypted. Default: Google's own keys.
    #[must_use]
    pub fn kms_key(mut self, name: impl Into<String>) -> Self {
        self.kms_key = Some(name.into());
        self
    }

    /// The regions in which messages may be stored. Default: the organization's policy.
    #[must_use]
    pub fn allowed_regions<S: Into<String>>(
        mut self,
        regions: impl IntoIterator<Item = S>,
    ) -> Self {
        self.allowed_regions = regions.into_iter().map(Into::into).collect();
        self
    }

    /// Whether messages may also pass through no other region. Default false; needs
    /// [`allowed_regions`](Self::allowed_regions).
    #[must_use]
    pub fn enforce_in_transit(mut self, enforce: bool) -> Self {
        self.enforce_in_transit = enforce;
        self
    }

    /// The pauses between attempts to create the topic and to publish to it. Default 500 ms,
    /// doubling up to 10 s; each ±25 %. A topic is not visible everywhere at once.
    #[must_use]
    pub fn delays(mut self, delays: Backoff) -> Self {
        self.delays = delays;
        self
    }

    /// The attempts until the sink ends. Default 10, which with the default pauses is about a
    /// minute.
    #[must_use]
    pub fn attempts(mut self, attempts: NonZeroU32) -> Self {
        self.attempts = attempts;
        self
    }

    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if let Some(retention) = self.message_retention {
            in_range(
                "message_retention",
                format_args!("{}s", retention.as_secs_f64()),
                !retention.is_zero() && i64::try_from(retention.as_secs()).is_ok(),
                "more than zero; the service takes 10 min to 31 d",
            )?;
        }
        if let Some(key) = &self.kms_key {
            let named = !key.trim().is_empty();
            in_range(
                "kms_key",
                format_args!("{key:?}"),
                named,
                "the name of a key",
            )?;
        }
        for region in &self.allowed_regions {
            let named = !region.trim().is_empty();
            in_range(
                "allowed_regions",
                format_args!("{region:?}"),
                named,
                "names of regions",
            )?;
        }
        if self.enforce_in_transit && self.allowed_regions.is_empty() {
            return Err(BuildError::Incomplete {
                setting: "enforce_in_transit",
                needs: "allowed_regions",
                reason: "there is nothing to enforce without them",
            });
        }
        Ok(())
    }

    /// The request that creates `name`.
    pub(crate) fn topic(&self, name: &TopicName) -> Topic {
        let policy = MessageStoragePolicy {
            allowed_persistence_regions: self.allowed_regions.clone(),
            enforce_in_transit: self.enforce_in_transit,
        };
        let retention = self.message_retention.map(|retention| ProtoDuration {
            seconds: i64::try_from(retention.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(retention.subsec_nanos()).unwrap_or_default(),
        });
        Topic {
            name: name.to_string(),
            message_storage_policy: (!self.allowed_regions.is_empty()).then_some(policy),
            kms_key_name: self.kms_key.clone().unwrap_or_default(),
            message_retention_duration: retention,
            ..Topic::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_that_the_documentation_gives() {
        let creation = TopicCreation::default();
        assert_eq!(creation.attempts.get(), 10);
        assert_eq!(creation.delays.delay(1), Duration::from_millis(500));
        assert_eq!(creation.delays.delay(99), Duration::from_secs(10));
        let name: TopicName = "projects/demo/topics/orders".parse().unwrap();
        let bare = Topic {
            name: name.to_string(),
            ..Topic::default()
        };
        assert_eq!(creation.topic(&name), bare);
        assert_eq!(MissingTopics::default(), MissingTopics::Create(creation));
    }

    #[test]
    fn every_setting_reaches_the_request() {
        let creation = TopicCreation::default()
            .message_retention(Duration::from_millis(86_400_500))
            .kms_key("projects/demo/locations/eu/keyRings/r/cryptoKeys/k")
            .allowed_regions(["europe-west1"])
            .enforce_in_transit(true);
        creation.check().unwrap();
        let topic = creation.topic(&"projects/demo/topics/orders".parse().unwrap());
        let retention = topic.message_retention_duration.unwrap();
        assert_eq!((retention.seconds, retention.nanos), (86_400, 500_000_000));
        assert!(topic.kms_key_name.ends_with("/k"));
        let policy = topic.message_storage_policy.unwrap();
        assert_eq!(policy.allowed_persistence_regions, ["europe-west1"]);
        assert!(policy.enforce_in_transit);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let base = TopicCreation::default;
        let refused = [
            (
                base().message_retention(Duration::ZERO),
                "message_retention",
            ),
            (base().kms_key(" "), "kms_key"),
            (base().allowed_regions([""]), "allowed_regions"),
            (base().enforce_in_transit(true), "enforce_in_transit"),
        ];
        for (creation, name) in refused {
            let text = creation.check().unwrap_err().to_string();
            assert!(text.starts_with(name), "{text}");
        }
    }
}
