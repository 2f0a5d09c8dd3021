//! The settings with a default.

use std::num::NonZeroU32;
use std::time::Duration;

use connector_core::Limits;

use crate::delivery::Delivery;
use crate::error::BuildError;
use crate::machine::{Batch, Pacing, Ramp, RetryBudget, Settings, StagedSettings};

/// Requests that one HTTP/2 connection carries at a time: Google's front ends allow 100.
const STREAMS_PER_CHANNEL: usize = 100;

/// The service refuses a client deadline above 30 s.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(30);

/// The largest encoded task the service was seen to store: 1 MiB less 5 bytes. What it adds itself
/// (times, a name, a User-Agent) comes on top of what is measured here.
const LARGEST_TASK: usize = 1024 * 1024 - 5;

/// What is taken off the time that names are remembered: a call's own deadline (30 s at most), clocks
/// that differ (1 min), and calls that arrive long after their client gave up, with room to spare.
const LEAST_MARGIN: Duration = Duration::from_secs(600);

/// No service remembers a name for as long, and every clock can count as far ahead: a deadline beyond
/// the end of a clock could not be kept.
const LONGEST_RETENTION: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

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
    pub(crate) delivery: Delivery,
    pub(crate) stage: Limits,
    pub(crate) retention_margin: Duration,
    pub(crate) quarantine: Limits,
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
            delivery: Delivery::Flush,
            stage: Limits::new(20_000, 256 * 1024 * 1024),
            retention_margin: LEAST_MARGIN,
            quarantine: Limits::new(10_000, 64 * 1024 * 1024),
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
        for (setting, limits) in [("stage", self.stage), ("quarantine", self.quarantine)] {
            if limits.items == 0 || limits.bytes == 0 {
                return range(
                    setting,
                    format!("{limits:?}"),
                    "at least one item and one byte",
                );
            }
        }
        if self.retention_margin < LEAST_MARGIN {
            return range(
                "retention_margin",
                format!("{:?}", self.retention_margin),
                "at least 10 min",
            );
        }
        if let Delivery::Staged { name_retention } = self.delivery
            && name_retention > LONGEST_RETENTION
        {
            return range(
                "name_retention",
                format!("{name_retention:?}"),
                "at most 100 years",
            );
        }
        if let Delivery::Staged { name_retention } = self.delivery
            && name_retention <= self.retention_margin
        {
            return Err(BuildError::Window {
                name_retention,
                margin: self.retention_margin,
            });
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

    /// What a sink that stages is told; nothing for one that does not.
    pub(crate) const fn staged(&self) -> Option<StagedSettings> {
        match self.delivery {
            Delivery::Flush => None,
            Delivery::Staged { name_retention } => Some(StagedSettings {
                window: name_retention.saturating_sub(self.retention_margin),
                stage: self.stage,
                quarantine: self.quarantine,
            }),
        }
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
mod tests;
