//! When a message comes again.

use std::time::Duration;

use super::Refusal;
use crate::pubsub::proto::RetryPolicy;
use crate::time::{from_proto_duration, to_proto_duration};

/// The bounds of both pauses, and their defaults (interface definition of `RetryPolicy`).
const LONGEST: Duration = Duration::from_secs(600);
const DEFAULT_LEAST: Duration = Duration::from_secs(10);

/// Pauses between the deliveries of a message: doubling from the least to the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pauses {
    least: Duration,
    greatest: Duration,
}

impl Pauses {
    pub(super) fn of(policy: &RetryPolicy) -> Result<Self, Refusal> {
        let read = |what, given: Option<&prost_types::Duration>, default| {
            let Some(given) = given else {
                return Ok(default);
            };
            let span = from_proto_duration(given).ok_or(Refusal::NegativeDuration { what })?;
            if span > LONGEST {
                let value = format!("{span:?}");
                return Err(Refusal::Range {
                    what,
                    value,
                    least: "0s",
                    most: "600s",
                });
            }
            Ok(span)
        };
        let least = read(
            "minimum_backoff",
            policy.minimum_backoff.as_ref(),
            DEFAULT_LEAST,
        )?;
        let greatest = read("maximum_backoff", policy.maximum_backoff.as_ref(), LONGEST)?;
        if least > greatest {
            return Err(Refusal::BackoffOrder);
        }
        Ok(Self { least, greatest })
    }

    /// The policy in full, as the service shows one that was given in part.
    pub(super) fn policy(self) -> RetryPolicy {
        RetryPolicy {
            minimum_backoff: Some(to_proto_duration(self.least)),
            maximum_backoff: Some(to_proto_duration(self.greatest)),
        }
    }

    /// The pause after the `failures`-th failed delivery, counted from 1.
    pub(super) fn after(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.least.saturating_mul(1 << doublings).min(self.greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(least: u64, greatest: u64) -> RetryPolicy {
        RetryPolicy {
            minimum_backoff: Some(to_proto_duration(Duration::from_secs(least))),
            maximum_backoff: Some(to_proto_duration(Duration::from_secs(greatest))),
        }
    }

    #[test]
    fn pauses_double_up_to_the_greatest() {
        let pauses = Pauses::of(&policy(5, 60)).unwrap();
        let seconds: Vec<u64> = (1..=6).map(|n| pauses.after(n).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 60, 60]);
        assert_eq!(pauses.after(u32::MAX).as_secs(), 60);
    }

    #[test]
    fn an_empty_policy_means_ten_seconds_to_ten_minutes() {
        let pauses = Pauses::of(&RetryPolicy::default()).unwrap();
        assert_eq!(pauses.after(1).as_secs(), 10);
        assert_eq!(pauses.after(20).as_secs(), 600);
        assert_eq!(pauses.policy(), policy(10, 600));
    }

    #[test]
    fn pauses_outside_their_range_are_refused() {
        assert!(Pauses::of(&policy(1, 601)).is_err());
        assert_eq!(Pauses::of(&policy(20, 10)), Err(Refusal::BackoffOrder));
        let negative = prost_types::Duration {
            seconds: -1,
            nanos: 0,
        };
        let policy = RetryPolicy {
            minimum_backoff: Some(negative),
            maximum_backoff: None,
        };
        assert!(matches!(
            Pauses::of(&policy),
            Err(Refusal::NegativeDuration { .. })
        ));
    }
}
