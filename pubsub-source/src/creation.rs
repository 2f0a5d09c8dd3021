//! How a missing subscription is created.

#[cfg(test)]
mod tests;

use std::time::Duration;

use gcp_wire::{
    SubscriptionName, TopicName,
    proto::{
        Duration as ProtoDuration,
        pubsub::{DeadLetterPolicy, ExpirationPolicy, Subscription},
    },
};

use crate::error::BuildError;

const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;

/// The service's bounds (interface definition of `Subscription`, and the limits of filters): seconds
/// of ack deadlines and retention, the least seconds of expiration, attempts, bytes of a filter.
const ACK_DEADLINE: std::ops::RangeInclusive<u64> = 10..=600;
const RETENTION: std::ops::RangeInclusive<u64> = 10 * MINUTE..=31 * DAY;
const LEAST_EXPIRATION: u64 = DAY;
const ATTEMPTS: std::ops::RangeInclusive<u32> = 5..=100;
const LONGEST_FILTER: usize = 256;

/// When a subscription that nobody uses is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiration {
    /// After this long without use: a day at least, whole seconds.
    After(Duration),
    /// Never.
    Never,
}

/// How one missing subscription is created.
///
/// Giving it to [`prepare`](crate::prepare) for a subscription is what allows to create that
/// one: there is no setting that creates whatever is missing, since a subscription is nothing without its topic,
/// and two subscriptions on one topic would deliver each message twice without an error anywhere. A
/// subscription that exists is neither changed nor compared with this. Topics are never created.
///
/// What is not set is left to the service. A new subscription is empty, whatever its topic held
/// before: messages from before its creation come with
/// [`StartPosition::Earliest`](crate::StartPosition::Earliest), if the topic retains them.
///
/// ```
/// use std::time::Duration;
/// use pubsub_source::{Expiration, SubscriptionCreation};
///
/// let creation = SubscriptionCreation::builder("projects/shop/topics/orders".parse()?)
///     .ack_deadline(Duration::from_secs(30))
///     .expiration(Expiration::Never)
///     .dead_letter_policy("projects/shop/topics/rejected".parse()?, 20)
///     .build()?;
/// assert_eq!(creation.topic().id(), "orders");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionCreation {
    settings: SubscriptionCreationBuilder,
}

/// Settings of a subscription that may be created.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a builder does nothing until build() is called"]
pub struct SubscriptionCreationBuilder {
    topic: TopicName,
    ack_deadline: Option<Duration>,
    message_ordering: bool,
    message_retention: Option<Duration>,
    retain_acked_messages: bool,
    expiration: Option<Expiration>,
    dead_letters: Option<(TopicName, u32)>,
    filter: Option<String>,
    exactly_once: bool,
}

impl SubscriptionCreation {
    /// Begins to describe a subscription of `topic`, which may be in another project.
    pub fn builder(topic: TopicName) -> SubscriptionCreationBuilder {
        SubscriptionCreationBuilder {
            topic,
            ack_deadline: None,
            message_ordering: false,
            message_retention: None,
            retain_acked_messages: false,
            expiration: None,
            dead_letters: None,
            filter: None,
            exactly_once: false,
        }
    }

    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &TopicName {
        &self.settings.topic
    }

    /// The topic for what was delivered too often.
    #[must_use]
    pub fn dead_letter_topic(&self) -> Option<&TopicName> {
        self.settings.dead_letters.as_ref().map(|(topic, _)| topic)
    }

    pub(crate) fn orders_messages(&self) -> bool {
        self.settings.message_ordering
    }

    /// The request that creates `name`.
    pub(crate) fn subscription(&self, name: &SubscriptionName) -> Subscription {
        let settings = &self.settings;
        let expiration = settings.expiration.map(|expiration| ExpirationPolicy {
            // A policy without a time is how the service says never; no policy is its 31 days.
            ttl: match expiration {
                Expiration::After(ttl) => Some(proto(ttl)),
                Expiration::Never => None,
            },
        });
        let dead_letters = settings.dead_letters.as_ref();
        let dead_letters = dead_letters.map(|(topic, attempts)| DeadLetterPolicy {
            dead_letter_topic: topic.as_str().to_owned(),
            max_delivery_attempts: i32::try_from(*attempts).unwrap_or(i32::MAX),
        });
        let ack_deadline = settings.ack_deadline.unwrap_or_default().as_secs();
        Subscription {
            name: name.as_str().to_owned(),
            topic: settings.topic.as_str().to_owned(),
            ack_deadline_seconds: i32::try_from(ack_deadline).unwrap_or(i32::MAX),
            retain_acked_messages: settings.retain_acked_messages,
            message_retention_duration: settings.message_retention.map(proto),
            enable_message_ordering: settings.message_ordering,
            expiration_policy: expiration,
            filter: settings.filter.clone().unwrap_or_default(),
            dead_letter_policy: dead_letters,
            enable_exactly_once_delivery: settings.exactly_once,
            ..Subscription::default()
        }
    }
}

impl SubscriptionCreationBuilder {
    /// How long a message that was taken by a plain pull stays out of reach. Default: the
    /// service's, 10 s; 10 s to 600 s, whole seconds.
    ///
    /// Pull streams, which a source uses, tell their own.
    pub fn ack_deadline(mut self, deadline: Duration) -> Self {
        self.ack_deadline = Some(deadline);
        self
    }

    /// Whether messages with an ordering key are delivered in order. Default: false, as the service's.
    /// Cannot be changed later.
    pub fn message_ordering(mut self, ordered: bool) -> Self {
        self.message_ordering = ordered;
        self
    }

    /// How long messages are kept that nobody acknowledges. Default: the service's, 7 d; 10 min
    /// to 31 d.
    pub fn message_retention(mut self, retention: Duration) -> Self {
        self.message_retention = Some(retention);
        self
    }

    /// Whether acknowledged messages are kept as long, so that a seek can bring them back. Default:
    /// false, as the service's; they are billed.
    pub fn retain_acked_messages(mut self, retain: bool) -> Self {
        self.retain_acked_messages = retain;
        self
    }

    /// When the subscription is deleted because nobody uses it. Default: the service's, after 31 d.
    pub fn expiration(mut self, expiration: Expiration) -> Self {
        self.expiration = Some(expiration);
        self
    }

    /// Where messages go that were delivered `attempts` times in vain. Default: nowhere, they come
    /// again until they expire; 5 to 100 attempts.
    ///
    /// Every release of a message counts as an attempt, also those of a source that closes, and so
    /// does every lease that a crash lets end: with fewer than 10 a few restarts may empty the
    /// subscription into the topic. The topic must exist; the project's Pub/Sub service agent must
    /// be allowed to publish to it and to subscribe here, or the service silently goes on
    /// delivering.
    pub fn dead_letter_policy(mut self, topic: TopicName, attempts: u32) -> Self {
        self.dead_letters = Some((topic, attempts));
        self
    }

    /// Which messages are delivered, in the service's filter language, at most 256 bytes. Default:
    /// all. The others are acknowledged by the service. Cannot be changed later.
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// Whether the service promises not to deliver an acknowledged message again. Default: false, as
    /// the service's. Costs throughput and latency; leases are 60 s at least.
    pub fn exactly_once(mut self, exactly_once: bool) -> Self {
        self.exactly_once = exactly_once;
        self
    }

    /// Checks the settings against the bounds that the service documents.
    ///
    /// # Errors
    ///
    /// [`BuildError::Setting`] or [`BuildError::Contradiction`] with the values that are wrong.
    pub fn build(self) -> Result<SubscriptionCreation, BuildError> {
        check(
            "ack_deadline",
            self.ack_deadline,
            |span| span.subsec_nanos() == 0 && ACK_DEADLINE.contains(&span.as_secs()),
            "10 s to 600 s, in whole seconds",
        )?;
        check(
            "message_retention",
            self.message_retention,
            |span| {
                let whole = span.subsec_nanos() == 0;
                RETENTION.contains(&span.as_secs()) && (whole || span.as_secs() < *RETENTION.end())
            },
            "10 min to 31 d",
        )?;
        let ttl = match self.expiration {
            Some(Expiration::After(ttl)) => Some(ttl),
            Some(Expiration::Never) | None => None,
        };
        check(
            "expiration",
            ttl,
            |span| span.subsec_nanos() == 0 && span.as_secs() >= LEAST_EXPIRATION,
            "a day or longer, in whole seconds, or Never",
        )?;
        if let Some((topic, attempts)) = &self.dead_letters {
            if !ATTEMPTS.contains(attempts) {
                return Err(BuildError::Setting {
                    setting: "the attempts of dead_letter_policy",
                    found: attempts.to_string(),
                    allowed: "5 to 100",
                });
            }
            if *topic == self.topic {
                return Err(BuildError::Contradiction {
                    first: "the topic",
                    first_value: self.topic.to_string(),
                    second: "the topic of dead_letter_policy",
                    second_value: topic.to_string(),
                    rule: "what is sent there would be delivered here again, for ever",
                });
            }
        }
        if let Some(filter) = &self.filter
            && (filter.trim().is_empty() || filter.len() > LONGEST_FILTER)
        {
            return Err(BuildError::Setting {
                setting: "filter",
                found: format!("{filter:?} of {} bytes", filter.len()),
                allowed: "an expression of at most 256 bytes",
            });
        }
        Ok(SubscriptionCreation { settings: self })
    }
}

fn check(
    setting: &'static str,
    span: Option<Duration>,
    fits: impl FnOnce(Duration) -> bool,
    allowed: &'static str,
) -> Result<(), BuildError> {
    match span {
        Some(span) if !fits(span) => Err(BuildError::Setting {
            setting,
            found: format!("{span:?}"),
            allowed,
        }),
        Some(_) | None => Ok(()),
    }
}

fn proto(span: Duration) -> ProtoDuration {
    ProtoDuration {
        seconds: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(span.subsec_nanos()).unwrap_or(0),
    }
}
