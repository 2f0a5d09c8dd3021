//! Settings of a queue.

mod mask;
mod target;

pub(super) use mask::merge;
pub(super) use target::impose;

use super::TaskRefusal;
use super::task::check_retry;
use crate::cloudtasks::proto::{Queue, RetryConfig};
use prost_types::Duration;

/// Checks a queue's settings and fills in the defaults the service returns.
pub(super) fn complete(queue: &mut Queue) -> Result<(), TaskRefusal> {
    let refused = |rule| Err(TaskRefusal::QueueSetting { rule });
    let rates = queue.rate_limits.get_or_insert_default();
    if rates.max_dispatches_per_second < 0.0 {
        return refused("RateLimits.maxDispatchesPerSecond cannot be negative.");
    }
    if rates.max_dispatches_per_second > 500.0 {
        return refused("RateLimits.maxDispatchesPerSecond must be less than or equal to 500.");
    }
    if rates.max_concurrent_dispatches < 0 {
        return refused("RateLimits.maxConcurrentDispatches cannot be negative.");
    }
    if rates.max_concurrent_dispatches > 5000 {
        return refused("RateLimits.maxConcurrentDispatches must be less than or equal to 5000.");
    }
    if rates.max_dispatches_per_second == 0.0 {
        rates.max_dispatches_per_second = 500.0;
    }
    if rates.max_concurrent_dispatches == 0 {
        rates.max_concurrent_dispatches = 1000;
    }
    // Output only: a fifth of the rate, as much as the default's 100 of 500.
    rates.max_burst_size = burst(rates.max_dispatches_per_second);
    let retry = queue.retry_config.get_or_insert_default();
    check_retry(retry)?;
    fill_retry(retry);
    target::check(queue.http_target.as_ref())
}

fn burst(rate: f64) -> i32 {
    (1..=100)
        .find(|burst| f64::from(*burst) * 5.0 >= rate)
        .unwrap_or(100)
}

fn fill_retry(retry: &mut RetryConfig) {
    if retry.max_attempts == 0 {
        retry.max_attempts = 100;
    }
    if retry.max_doublings == 0 {
        retry.max_doublings = 16;
    }
    retry.min_backoff.get_or_insert(Duration {
        seconds: 0,
        nanos: 100_000_000,
    });
    retry.max_backoff.get_or_insert(Duration {
        seconds: 3600,
        nanos: 0,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloudtasks::proto::RateLimits;

    #[test]
    fn a_queue_gets_the_defaults_of_the_service() {
        let mut queue = Queue::default();
        complete(&mut queue).unwrap();
        let rates = queue.rate_limits.unwrap();
        assert_eq!(
            (rates.max_burst_size, rates.max_concurrent_dispatches),
            (100, 1000)
        );
        let retry = queue.retry_config.unwrap();
        assert_eq!((retry.max_attempts, retry.max_doublings), (100, 16));
    }

    #[test]
    fn rates_have_bounds() {
        for (rate, concurrent) in [(-1.0, 0), (501.0, 0), (1.0, -1), (1.0, 5001)] {
            let rates = RateLimits {
                max_dispatches_per_second: rate,
                max_concurrent_dispatches: concurrent,
                max_burst_size: 0,
            };
            let mut queue = Queue {
                rate_limits: Some(rates),
                ..Queue::default()
            };
            assert!(complete(&mut queue).is_err(), "{rate} {concurrent}");
        }
    }
}
