//! What a topic or subscription may ask for.

use std::time::Duration;

use super::Refusal;
use super::retry::Pauses;
use crate::pubsub::proto::{self, PushConfig};
use crate::time::{from_proto_duration, to_proto_duration};

const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;

/// Bounds and defaults of retention and expiry (interface definition of `Topic` and
/// `Subscription`; the floors of ten minutes and one day were measured on the service too).
const LEAST_RETENTION: Duration = Duration::from_secs(10 * MINUTE);
const GREATEST_RETENTION: Duration = Duration::from_secs(31 * DAY);
const DEFAULT_RETENTION: Duration = Duration::from_secs(7 * DAY);
const LEAST_TTL: Duration = Duration::from_secs(DAY);
const DEFAULT_TTL: Duration = Duration::from_secs(31 * DAY);

pub(super) fn check_topic(topic: &proto::Topic) -> Result<(), Refusal> {
    retention(topic.message_retention_duration.as_ref())?;
    if topic.schema_settings.is_some() {
        // Schemas are not served, so whichever is named does not exist.
        return Err(Refusal::SchemaMissing);
    }
    let refused = |what| Err(Refusal::NotServed { what });
    if topic.ingestion_data_source_settings.is_some() {
        return refused("Ingestion from a data source");
    }
    if !topic.message_transforms.is_empty() {
        return refused("Transforming messages");
    }
    Ok(())
}

/// Checks a subscription and fills in the defaults the service returns.
pub(super) fn complete(config: &mut proto::Subscription) -> Result<(), Refusal> {
    check_delivery(config)?;
    if config.ack_deadline_seconds == 0 {
        config.ack_deadline_seconds = 10;
    }
    if !(10..=600).contains(&config.ack_deadline_seconds) {
        return Err(Refusal::Range {
            what: "ack_deadline_seconds",
            value: config.ack_deadline_seconds.to_string(),
            least: "10",
            most: "600",
        });
    }
    let kept = retention(config.message_retention_duration.as_ref())?.unwrap_or(DEFAULT_RETENTION);
    config.message_retention_duration = Some(to_proto_duration(kept));
    let expiry = config
        .expiration_policy
        .get_or_insert_with(|| proto::ExpirationPolicy {
            ttl: Some(to_proto_duration(DEFAULT_TTL)),
        });
    if let Some(ttl) = &expiry.ttl {
        let what = "expiration_policy.ttl";
        let ttl = from_proto_duration(ttl).ok_or(Refusal::NegativeDuration { what })?;
        if ttl < LEAST_TTL {
            let value = format!("{ttl:?}");
            return Err(Refusal::Range {
                what,
                value,
                least: "86400s",
                most: "the longest",
            });
        }
    }
    if let Some(policy) = &mut config.retry_policy {
        *policy = Pauses::of(policy)?.policy();
    }
    if let Some(policy) = &mut config.dead_letter_policy {
        if policy.max_delivery_attempts == 0 {
            policy.max_delivery_attempts = 5;
        }
        if !(5..=100).contains(&policy.max_delivery_attempts) {
            return Err(Refusal::Range {
                what: "max_delivery_attempts",
                value: policy.max_delivery_attempts.to_string(),
                least: "5",
                most: "100",
            });
        }
    }
    config.state = proto::subscription::State::Active.into();
    Ok(())
}

/// Refuses every way of delivery but pulling.
fn check_delivery(config: &proto::Subscription) -> Result<(), Refusal> {
    let refused = |what| Err(Refusal::NotServed { what });
    if let Some(push) = &config.push_config {
        check_push(push)?;
    }
    if config.bigquery_config.is_some() {
        return refused("Delivery to BigQuery");
    }
    if config.cloud_storage_config.is_some() {
        return refused("Delivery to Cloud Storage");
    }
    if config.bigtable_config.is_some() {
        return refused("Delivery to Bigtable");
    }
    if !config.message_transforms.is_empty() {
        return refused("Transforming messages");
    }
    Ok(())
}

/// An empty push configuration means pulling; any other is refused.
pub(super) fn check_push(push: &PushConfig) -> Result<(), Refusal> {
    if push.push_endpoint.is_empty() {
        return Ok(());
    }
    if !push.push_endpoint.starts_with("https://") {
        return Err(Refusal::PushEndpoint {
            endpoint: push.push_endpoint.clone(),
        });
    }
    Err(Refusal::NotServed {
        what: "Push delivery",
    })
}

fn retention(given: Option<&prost_types::Duration>) -> Result<Option<Duration>, Refusal> {
    let what = "message_retention_duration";
    let Some(given) = given else { return Ok(None) };
    let span = from_proto_duration(given).ok_or(Refusal::NegativeDuration { what })?;
    if !(LEAST_RETENTION..=GREATEST_RETENTION).contains(&span) {
        let value = format!("{span:?}");
        return Err(Refusal::Range {
            what,
            value,
            least: "600s",
            most: "2678400s",
        });
    }
    Ok(Some(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> proto::Subscription {
        proto::Subscription::default()
    }

    #[test]
    fn defaults_are_those_the_service_returns() {
        let mut config = plain();
        complete(&mut config).unwrap();
        assert_eq!(config.ack_deadline_seconds, 10);
        assert_eq!(config.message_retention_duration.unwrap().seconds, 604_800);
        assert_eq!(
            config.expiration_policy.unwrap().ttl.unwrap().seconds,
            2_678_400
        );
        let mut never = proto::Subscription {
            expiration_policy: Some(proto::ExpirationPolicy { ttl: None }),
            ..plain()
        };
        complete(&mut never).unwrap();
        assert_eq!(never.expiration_policy.unwrap().ttl, None);
    }

    #[test]
    fn values_outside_their_range_are_refused() {
        for seconds in [-1, 1, 9, 601] {
            let mut config = proto::Subscription {
                ack_deadline_seconds: seconds,
                ..plain()
            };
            assert!(
                matches!(complete(&mut config), Err(Refusal::Range { .. })),
                "{seconds}"
            );
        }
        for seconds in [599, 2_678_401] {
            let kept = Some(prost_types::Duration { seconds, nanos: 0 });
            let mut config = proto::Subscription {
                message_retention_duration: kept,
                ..plain()
            };
            assert!(
                matches!(complete(&mut config), Err(Refusal::Range { .. })),
                "{seconds}"
            );
        }
        for attempts in [-1, 4, 101] {
            let policy = proto::DeadLetterPolicy {
                max_delivery_attempts: attempts,
                ..proto::DeadLetterPolicy::default()
            };
            let mut config = proto::Subscription {
                dead_letter_policy: Some(policy),
                ..plain()
            };
            assert!(
                matches!(complete(&mut config), Err(Refusal::Range { .. })),
                "{attempts}"
            );
        }
        let ttl = Some(prost_types::Duration {
            seconds: 86_399,
            nanos: 0,
        });
        let mut config = proto::Subscription {
            expiration_policy: Some(proto::ExpirationPolicy { ttl }),
            ..plain()
        };
        assert!(matches!(complete(&mut config), Err(Refusal::Range { .. })));
    }

    #[test]
    fn only_pulling_is_served() {
        let push = |endpoint: &str| proto::Subscription {
            push_config: Some(PushConfig {
                push_endpoint: endpoint.to_owned(),
                ..PushConfig::default()
            }),
            ..plain()
        };
        assert!(complete(&mut push("")).is_ok());
        assert!(matches!(
            complete(&mut push("http://example.com")),
            Err(Refusal::PushEndpoint { .. })
        ));
        assert!(matches!(
            complete(&mut push("https://example.com")),
            Err(Refusal::NotServed {
                what: "Push delivery"
            })
        ));
        let mut export = proto::Subscription {
            bigquery_config: Some(proto::BigQueryConfig::default()),
            ..plain()
        };
        assert!(matches!(
            complete(&mut export),
            Err(Refusal::NotServed { .. })
        ));
    }
}
