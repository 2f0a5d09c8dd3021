//! What the service says about a subscription, as far as a start depends on it.

use gcp_wire::proto::{
    Duration as ProtoDuration,
    pubsub::{PushConfig, Subscription},
};

/// What stands for the topic of a subscription whose topic was deleted.
const DELETED_TOPIC: &str = "_deleted-topic_";

/// The attempts of a policy that names none.
const DEFAULT_ATTEMPTS: u32 = 5;

/// How a subscription delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Pull,
    Push,
    /// To the service of this name.
    Export(&'static str),
}

/// A subscription's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// The full name; `None` when the topic was deleted.
    pub(super) topic: Option<String>,
    pub(super) delivery: Delivery,
    pub(super) detached: bool,
    pub(super) ordered: bool,
    /// Of the dead-letter policy.
    pub(super) attempts: Option<u32>,
    /// Whether something that was acknowledged can come again: the subscription or its topic keep it.
    pub(super) retains_acked: bool,
}

impl Facts {
    pub(super) fn of(subscription: &Subscription) -> Self {
        let topic = Some(&subscription.topic).filter(|topic| *topic != DELETED_TOPIC);
        let attempts = subscription.dead_letter_policy.as_ref().map(|policy| {
            let attempts = u32::try_from(policy.max_delivery_attempts).unwrap_or(0);
            if attempts == 0 {
                DEFAULT_ATTEMPTS
            } else {
                attempts
            }
        });
        let of_topic = subscription.topic_message_retention_duration.as_ref();
        Self {
            topic: topic.cloned(),
            delivery: delivery(subscription),
            detached: subscription.detached,
            ordered: subscription.enable_message_ordering,
            attempts,
            retains_acked: subscription.retain_acked_messages || of_topic.is_some_and(lasts),
        }
    }
}

fn delivery(subscription: &Subscription) -> Delivery {
    if subscription.bigquery_config.is_some() {
        Delivery::Export("BigQuery")
    } else if subscription.cloud_storage_config.is_some() {
        Delivery::Export("Cloud Storage")
    } else if subscription.bigtable_config.is_some() {
        Delivery::Export("Bigtable")
    } else if subscription.push_config.as_ref().is_some_and(pushes) {
        Delivery::Push
    } else {
        Delivery::Pull
    }
}

/// The service returns an empty push configuration for a subscription that is pulled.
fn pushes(push: &PushConfig) -> bool {
    !push.push_endpoint.is_empty()
}

fn lasts(span: &ProtoDuration) -> bool {
    span.seconds > 0 || span.nanos > 0
}

#[cfg(test)]
mod tests {
    use gcp_wire::proto::pubsub::{
        BigQueryConfig, BigtableConfig, CloudStorageConfig, DeadLetterPolicy,
    };

    use super::*;

    fn of(change: impl FnOnce(&mut Subscription)) -> Facts {
        let mut subscription = Subscription {
            topic: "projects/demo/topics/orders".to_owned(),
            push_config: Some(PushConfig::default()),
            ..Subscription::default()
        };
        change(&mut subscription);
        Facts::of(&subscription)
    }

    #[test]
    fn an_empty_push_configuration_means_pulling() {
        assert_eq!(of(|_| {}).delivery, Delivery::Pull);
        assert_eq!(of(|one| one.push_config = None).delivery, Delivery::Pull);
        let push = of(|one| {
            one.push_config.get_or_insert_default().push_endpoint = "https://example.com".into();
        });
        assert_eq!(push.delivery, Delivery::Push);
    }

    #[test]
    fn exports_are_told_by_their_destination() {
        let bigquery = of(|one| one.bigquery_config = Some(BigQueryConfig::default()));
        assert_eq!(bigquery.delivery, Delivery::Export("BigQuery"));
        let storage = of(|one| one.cloud_storage_config = Some(CloudStorageConfig::default()));
        assert_eq!(storage.delivery, Delivery::Export("Cloud Storage"));
        let bigtable = of(|one| one.bigtable_config = Some(BigtableConfig::default()));
        assert_eq!(bigtable.delivery, Delivery::Export("Bigtable"));
    }

    #[test]
    fn either_retention_can_bring_acknowledged_messages_back() {
        assert!(!of(|_| {}).retains_acked);
        assert!(of(|one| one.retain_acked_messages = true).retains_acked);
        let span = |seconds, nanos| Some(ProtoDuration { seconds, nanos });
        let by_topic = of(|one| one.topic_message_retention_duration = span(600, 0));
        assert!(by_topic.retains_acked);
        let zero = of(|one| one.topic_message_retention_duration = span(0, 0));
        assert!(!zero.retains_acked);
    }

    #[test]
    fn a_policy_without_a_number_has_the_services_default() {
        let policy = |attempts| {
            of(|one| {
                one.dead_letter_policy = Some(DeadLetterPolicy {
                    max_delivery_attempts: attempts,
                    ..DeadLetterPolicy::default()
                });
            })
        };
        assert_eq!(policy(0).attempts, Some(5));
        assert_eq!(policy(100).attempts, Some(100));
        assert_eq!(of(|_| {}).attempts, None);
    }

    #[test]
    fn a_deleted_topic_is_none() {
        assert_eq!(of(|one| one.topic = DELETED_TOPIC.into()).topic, None);
        assert_eq!(
            of(|_| {}).topic.as_deref(),
            Some("projects/demo/topics/orders")
        );
    }
}
