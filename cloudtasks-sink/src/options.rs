//! The settings with a default.

use std::num::NonZeroU32;
use std::time::Duration;

use connector_core::Limits;

use crate::error::BuildError;
use crate::machine::{Batch, Pacing, Ramp, RetryBudget, Settings};

/// Requests that one HTTP/2 connection carries at a time: Google's front ends allow 100.
const STREAMS_PER_CHANNEL: usize = 100;

/// The service refuses a client deadline above 30 s.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(30);

/// The largest encoded task the service was seen to store: 1 MiB less 5 bytes. What it adds itself
/// (times, a name, a User-Agent) comes on top of what is measured here.
const LARGEST_TASK: usize = 1024 * 1024 - 5;

/// Every setting with a default. The reasons stand with the builder's methods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(crate) instance: String,
    pub(crate) limits: Limits,
    /// The largest encoded task in bytes.
    pub(crate) largest_task: Option<usize>,
    pub(crate) batch: Option<Batch>,
    pub(crate) channels: usize,
    pub(crate) attempt_deadline: Duration,
    pub(crate) retries: RetryBudget,
    pub(crate) queue_missing_retries: RetryBudget,
    pub(crate) progress_timeout: Duration,
    pub(crate) close_timeout: Duration,
    pub(crate) queue_check: bool,
    pub(crate) allow_url_overrides: bool,
    pub(crate) ramp: Option<Ramp>,
    pub(crate) queue_rate: Option<f64>,
    pub(crate) max_consecutive_rejections: Option<NonZeroU32>,
    pub(crate) destination_stats: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            instance: "0".to_owned(),
            limits: Limits::new(1_000, 64 * 1024 * 1024),
            largest_task: Some(LARGEST_TASK),
            batch: None,
            channels: 1,
            attempt_deadline: Duration::from_secs(20),
            retries: RetryBudget::new(8, Duration::from_millis(100), Duration::from_secs(10)),
            queue_missing_retries: RetryBudget::new(
                3,
                Duration::from_millis(500),
                Duration::from_secs(2),
            ),
            progress_timeout: Duration::from_secs(600),
            close_timeout: Duration::from_secs(30),
            queue_check: true,
            allow_url_overrides: false,
            ramp: None,
            queue_rate: None,
            max_consecutive_rejections: NonZeroU32::new(100),
            destination_stats: 0,
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let range = |setting, value: String, range| {
            Err(BuildError::Range {
                setting,
                value,
                range,
            })
        };
        if self.limits.items == 0 || self.limits.bytes == 0 {
            return range(
                "limits",
                format!("{:?}", self.limits),
                "at least one item and one byte",
            );
        }
        if self.largest_task == Some(0) {
            return range("largest_task", "0".to_owned(), "at least 1 byte, or None");
        }
        if let Some(Batch { tasks, bytes }) = self.batch {
            if !(1..=Batch::MOST_TASKS).contains(&tasks) {
                return range("batching", format!("{tasks} tasks"), "1 to 100 tasks");
            }
            if !(1..=Batch::MOST_BYTES).contains(&bytes) {
                return range("batching", format!("{bytes} bytes"), "1 byte to 3.5 MiB");
            }
        }
        if !(1..=256).contains(&self.channels) {
            return range("channels", self.channels.to_string(), "1 to 256");
        }
        if self.attempt_deadline < Duration::from_millis(1)
            || self.attempt_deadline > LONGEST_ATTEMPT
        {
            return range(
                "attempt_deadline",
                format!("{:?}", self.attempt_deadline),
                "1 ms to 30 s, the most the service accepts",
            );
        }
        for (setting, time) in [
            ("progress_timeout", self.progress_timeout),
            ("close_timeout", self.close_timeout),
        ] {
            if time < Duration::from_millis(1) {
                return range(setting, format!("{time:?}"), "at least 1 ms");
            }
        }
        for (setting, budget) in [
            ("retries", self.retries),
            ("queue_missing_retries", self.queue_missing_retries),
        ] {
            let RetryBudget {
                attempts,
                first,
                cap,
            } = budget;
            if attempts == 0 {
                return range(setting, "0 attempts".to_owned(), "at least one attempt");
            }
            if first < Duration::from_millis(1) {
                return range(
                    setting,
                    format!("a first delay of {first:?}"),
                    "at least 1 ms",
                );
            }
            if first > cap {
                return Err(BuildError::Delays {
                    setting,
                    first,
                    cap,
                });
            }
        }
        if self.progress_timeout <= self.attempt_deadline {
            return Err(BuildError::Progress {
                progress_timeout: self.progress_timeout,
                attempt_deadline: self.attempt_deadline,
            });
        }
        self.check_pace()
    }

    fn check_pace(&self) -> Result<(), BuildError> {
        let range = |setting, value: String, range| {
            Err(BuildError::Range {
                setting,
                value,
                range,
            })
        };
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        if let Some(rate) = self.queue_rate
            && !is_rate(rate)
        {
            return range("queue_rate", rate.to_string(), "a number above 0");
        }
        if let Some(Ramp {
            first,
            growth,
            every,
        }) = self.ramp
        {
            if !is_rate(first) {
                let value = format!("{first} tasks a second at first");
                return range("ramp", value, "a number above 0");
            }
            if !(growth.is_finite() && growth >= 1.0) {
                return range("ramp", format!("a growth of {growth}"), "at least 1");
            }
            if every < Duration::from_secs(1) {
                return range("ramp", format!("every {every:?}"), "at least 1 s");
            }
        }
        let ramp = self.ramp.map(|ramp| ramp.first);
        for (setting, rate) in [("queue_rate", self.queue_rate), ("ramp", ramp)] {
            if rate.is_some_and(|rate| rate * self.progress_timeout.as_secs_f64() < 1.0) {
                return Err(BuildError::Pace {
                    setting,
                    progress_timeout: self.progress_timeout,
                });
            }
        }
        Ok(())
    }

    /// The records that the connections carry at a time.
    pub(crate) fn carried(&self) -> usize {
        let each = self.batch.map_or(1, |batch| batch.tasks);
        self.channels * STREAMS_PER_CHANNEL * each
    }

    pub(crate) const fn machine(&self) -> Settings {
        Settings {
            queue_looks: self.queue_check,
            url_overrides: self.allow_url_overrides,
            pacing: Pacing {
                ramp: self.ramp,
                rate: self.queue_rate,
            },
            max_consecutive_rejections: self.max_consecutive_rejections,
            destination_stats: self.destination_stats,
            streams: self.channels * STREAMS_PER_CHANNEL,
            transient: self.retries,
            missing: self.queue_missing_retries,
            progress_timeout: self.progress_timeout,
            close_timeout: self.close_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let options = Options::default();
        assert_eq!(options.instance, "0");
        assert_eq!(options.limits, Limits::new(1_000, 67_108_864));
        assert_eq!(options.largest_task, Some(1_048_571));
        assert_eq!(options.batch, None);
        assert_eq!(options.channels, 1);
        assert_eq!(options.attempt_deadline, Duration::from_secs(20));
        let budget = |attempts, first, cap| {
            RetryBudget::new(
                attempts,
                Duration::from_millis(first),
                Duration::from_millis(cap),
            )
        };
        assert_eq!(options.retries, budget(8, 100, 10_000));
        assert_eq!(options.queue_missing_retries, budget(3, 500, 2_000));
        assert_eq!(options.progress_timeout, Duration::from_secs(600));
        assert_eq!(options.close_timeout, Duration::from_secs(30));
        assert!(options.queue_check && !options.allow_url_overrides);
        assert_eq!((options.ramp, options.queue_rate), (None, None));
        assert_eq!(options.max_consecutive_rejections, NonZeroU32::new(100));
        assert_eq!(options.destination_stats, 0);
        assert!(options.check().is_ok());
    }

    #[test]
    fn a_setting_out_of_range_is_refused_by_name() {
        let second = Duration::from_secs(1);
        let wrong = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.check().unwrap_err().to_string()
        };
        let cases = [
            (
                "limits",
                wrong(|options| options.limits = Limits::new(0, 1)),
            ),
            (
                "limits",
                wrong(|options| options.limits = Limits::new(1, 0)),
            ),
            (
                "largest_task is 0",
                wrong(|options| options.largest_task = Some(0)),
            ),
            (
                "batching is 101 tasks",
                wrong(|options| options.batch = Some(Batch::up_to(101))),
            ),
            (
                "batching is 0 tasks",
                wrong(|options| options.batch = Some(Batch::up_to(0))),
            ),
            (
                "batching is 3670017 bytes",
                wrong(|options| options.batch = Some(Batch::up_to(9).bytes(3_670_017))),
            ),
            ("channels is 0", wrong(|options| options.channels = 0)),
            ("channels is 257", wrong(|options| options.channels = 257)),
            (
                "attempt_deadline is 0ns",
                wrong(|o| o.attempt_deadline = Duration::ZERO),
            ),
            (
                "attempt_deadline is 31s",
                wrong(|o| o.attempt_deadline = Duration::from_secs(31)),
            ),
            (
                "progress_timeout is 0ns",
                wrong(|o| o.progress_timeout = Duration::ZERO),
            ),
            (
                "close_timeout is 0ns",
                wrong(|o| o.close_timeout = Duration::ZERO),
            ),
            ("retries is 0 attempts", wrong(|o| o.retries.attempts = 0)),
            (
                "retries is a first delay of 1ns",
                wrong(|o| {
                    o.retries.first = Duration::from_nanos(1);
                }),
            ),
            (
                "queue_missing_retries",
                wrong(|o| o.queue_missing_retries.attempts = 0),
            ),
            ("queue_rate is 0", wrong(|o| o.queue_rate = Some(0.0))),
            (
                "queue_rate is NaN",
                wrong(|o| o.queue_rate = Some(f64::NAN)),
            ),
            (
                "ramp is 0 tasks",
                wrong(|o| o.ramp = Some(Ramp::new(0.0, 2.0, MINUTE))),
            ),
            (
                "ramp is a growth of 0.9",
                wrong(|o| o.ramp = Some(Ramp::new(1.0, 0.9, MINUTE))),
            ),
            (
                "ramp is every 0ns",
                wrong(|o| o.ramp = Some(Ramp::new(1.0, 2.0, Duration::ZERO))),
            ),
        ];
        for (name, text) in cases {
            assert!(text.contains(name), "{text}");
        }
        let options = Options {
            queue_missing_retries: RetryBudget::new(3, 2 * second, second),
            ..Options::default()
        };
        let text = options.check().unwrap_err().to_string();
        assert!(text.contains("queue_missing_retries (2s)"), "{text}");
        assert!(text.contains("cap (1s)"), "{text}");
    }

    #[test]
    fn a_pace_slower_than_the_progress_timeout_is_refused_with_both_settings_named() {
        let options = Options {
            queue_rate: Some(1.0 / 601.0),
            ..Options::default()
        };
        let text = options.check().unwrap_err().to_string();
        assert!(text.contains("queue_rate"), "{text}");
        assert!(text.contains("progress_timeout (600s)"), "{text}");
    }

    #[test]
    fn a_progress_timeout_within_one_attempt_is_refused_with_both_settings_named() {
        let options = Options {
            progress_timeout: Duration::from_secs(20),
            ..Options::default()
        };
        let text = options.check().unwrap_err().to_string();
        assert!(text.contains("progress_timeout"), "{text}");
        assert!(text.contains("attempt_deadline"), "{text}");
    }
}
