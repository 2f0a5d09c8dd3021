//! The sink's settings, their defaults and what they may be.

use std::{num::NonZeroU32, time::Duration};

use connector_core::{Limits, backoff::Backoff};

use crate::{
    BuildError, Delivery, MissingTopics, PublishMessage, machine::Retry, message, staged::Identity,
};

/// Messages per publish request (Pub/Sub quotas).
pub(crate) const MAX_MESSAGES: usize = 1_000;
/// Encoded bytes per publish request, its topic included (Pub/Sub quotas).
pub(crate) const MAX_BYTES: usize = 10_000_000;

/// How long retries go on without message ordering. As long as Google's publishers retry.
const RETRY_TOTAL: Duration = Duration::from_secs(600);

/// The longest pause or deadline of a schedule.
const LONGEST_DELAY: Duration = Duration::from_secs(86_400);

/// Checked settings of a sink.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) delivery: Delivery,
    pub(crate) stage: Limits,
    pub(crate) quarantine: Limits,
    pub(crate) batch_messages: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) linger: Duration,
    pub(crate) in_flight: usize,
    pub(crate) channels: usize,
    pub(crate) ordering: bool,
    pub(crate) retry: Retry,
    pub(crate) progress_timeout: Duration,
    pub(crate) close_timeout: Duration,
    pub(crate) missing_topics: MissingTopics,
    pub(crate) max_destinations: usize,
    pub(crate) idle_destinations: Duration,
    pub(crate) destination_stats: usize,
    pub(crate) max_consecutive_rejections: Option<NonZeroU32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            delivery: Delivery::default(),
            stage: Limits::new(10_000, 64 << 20),
            quarantine: Limits::new(1_000, 64 << 20),
            batch_messages: MAX_MESSAGES,
            batch_bytes: MAX_BYTES,
            linger: Duration::ZERO,
            in_flight: 4,
            channels: 1,
            ordering: false,
            retry: Retry {
                total: Some(RETRY_TOTAL),
                delays: Backoff::new(Duration::from_millis(100), 2.0, Duration::from_secs(60)),
                quota_delays: Backoff::new(Duration::from_secs(1), 2.0, Duration::from_secs(60)),
                deadlines: Backoff::new(Duration::from_secs(5), 2.0, Duration::from_secs(60)),
            },
            progress_timeout: Duration::from_secs(600),
            close_timeout: Duration::from_secs(30),
            missing_topics: MissingTopics::default(),
            max_destinations: 100,
            idle_destinations: Duration::from_secs(3600),
            destination_stats: 0,
            max_consecutive_rejections: NonZeroU32::new(100),
        }
    }
}

/// What may be in flight unless the host says otherwise.
pub(crate) const DEFAULT_LIMITS: Limits = Limits::new(1_000, 64 << 20);

impl Settings {
    /// Checks each setting by itself.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        in_range(
            "batch_messages",
            self.batch_messages,
            (1..=MAX_MESSAGES).contains(&self.batch_messages),
            "1 to 1000, the most messages Pub/Sub takes in a request",
        )?;
        in_range(
            "batch_bytes",
            self.batch_bytes,
            (1..=MAX_BYTES).contains(&self.batch_bytes),
            "1 to 10000000, the most bytes Pub/Sub takes in a request",
        )?;
        for (setting, limits, allowed) in [
            (
                "stage",
                self.stage,
                "at least 1 message and 1 byte, or the sink never has room",
            ),
            (
                "quarantine",
                self.quarantine,
                "at least 1 message and 1 byte, or one refused message ends the sink for ever",
            ),
        ] {
            positive(setting, limits, allowed)?;
        }
        in_range(
            "in_flight",
            self.in_flight,
            self.in_flight > 0,
            "at least 1, or nothing is ever sent",
        )?;
        in_range(
            "max_destinations",
            self.max_destinations,
            self.max_destinations > 0,
            "at least 1, or no record is ever admitted",
        )?;
        let mut schedules = vec![
            ("retry_delays", &self.retry.delays),
            ("quota_delays", &self.retry.quota_delays),
            ("attempt_deadlines", &self.retry.deadlines),
        ];
        if let MissingTopics::Create(creation) = &self.missing_topics {
            creation.check()?;
            schedules.push(("delays", &creation.delays));
        }
        for (setting, schedule) in schedules {
            in_range(
                setting,
                format_args!("{schedule:?}"),
                schedule.is_consistent(),
                "a first delay up to the longest, and a factor of at least 1",
            )?;
            let longest = schedule.delay(u32::MAX);
            in_range(
                setting,
                format_args!("up to {}s", longest.as_secs_f64()),
                longest <= LONGEST_DELAY,
                "at most a day: a sink that waits longer has ended for its host",
            )?;
        }
        let spans = [
            ("progress_timeout", self.progress_timeout),
            ("close_timeout", self.close_timeout),
            ("idle_destinations", self.idle_destinations),
            ("attempt_deadlines", self.retry.deadlines.delay(1)),
        ];
        for (setting, span) in spans {
            in_range(
                setting,
                format_args!("{}s", span.as_secs_f64()),
                span >= Duration::from_millis(1),
                "at least 1 ms",
            )?;
        }
        Ok(())
    }
}

/// Whether a bound lets anything in at all.
pub(crate) fn positive(
    setting: &'static str,
    limits: Limits,
    allowed: &'static str,
) -> Result<(), BuildError> {
    in_range(
        setting,
        format_args!("{} messages and {} bytes", limits.items, limits.bytes),
        limits.items > 0 && limits.bytes > 0,
        allowed,
    )
}

/// The attributes in which a staged message's identity is shown to consumers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdentityAttributes {
    pub(crate) incarnation: String,
    pub(crate) sequence: String,
}

impl IdentityAttributes {
    pub(crate) fn stamp(&self, message: PublishMessage, identity: Identity) -> PublishMessage {
        message
            .attribute(
                self.incarnation.as_str(),
                format!("{:032x}", identity.incarnation),
            )
            .attribute(self.sequence.as_str(), identity.sequence.to_string())
    }

    /// Whether the service takes the names, and they are two.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let identity = Identity {
            incarnation: u128::MAX,
            sequence: u64::MAX,
        };
        let stamped = self.stamp(PublishMessage::new("x"), identity);
        in_range(
            "identity_attributes",
            format_args!("{:?} and {:?}", self.incarnation, self.sequence),
            stamped.attributes().len() == 2 && message::check(&stamped, 0, MAX_BYTES).is_ok(),
            "two different attribute keys of 1 to 256 bytes that do not begin with goog",
        )
    }
}

pub(crate) fn in_range(
    setting: &'static str,
    found: impl std::fmt::Display,
    holds: bool,
    allowed: &'static str,
) -> Result<(), BuildError> {
    if holds {
        return Ok(());
    }
    Err(BuildError::OutOfRange {
        setting,
        found: found.to_string(),
        allowed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_that_the_documentation_gives() {
        let settings = Settings::default();
        assert_eq!(settings.delivery, Delivery::Flush);
        assert_eq!(settings.stage, Limits::new(10_000, 67_108_864));
        assert_eq!(settings.quarantine, Limits::new(1_000, 67_108_864));
        assert_eq!(settings.batch_messages, 1_000);
        assert_eq!(settings.batch_bytes, 10_000_000);
        assert_eq!(settings.linger, Duration::ZERO);
        assert_eq!(settings.in_flight, 4);
        assert_eq!(settings.channels, 1);
        assert!(!settings.ordering);
        assert_eq!(settings.retry.total, Some(Duration::from_secs(600)));
        assert_eq!(settings.retry.delays.delay(1), Duration::from_millis(100));
        assert_eq!(settings.retry.delays.delay(2), Duration::from_millis(200));
        assert_eq!(settings.retry.delays.delay(99), Duration::from_secs(60));
        assert_eq!(settings.retry.quota_delays.delay(1), Duration::from_secs(1));
        assert_eq!(settings.retry.deadlines.delay(1), Duration::from_secs(5));
        assert_eq!(settings.retry.deadlines.delay(99), Duration::from_secs(60));
        assert_eq!(settings.progress_timeout, Duration::from_secs(600));
        assert_eq!(settings.close_timeout, Duration::from_secs(30));
        assert_eq!(settings.missing_topics, MissingTopics::default());
        assert_eq!(settings.max_destinations, 100);
        assert_eq!(settings.idle_destinations, Duration::from_secs(3600));
        assert_eq!(settings.destination_stats, 0);
        assert_eq!(settings.max_consecutive_rejections, NonZeroU32::new(100));
        assert_eq!(DEFAULT_LIMITS, Limits::new(1_000, 67_108_864));
        assert!(settings.check().is_ok());
    }

    #[test]
    fn a_setting_out_of_its_range_is_refused_by_name() {
        type Break = (&'static str, fn(&mut Settings));
        const SECOND: Duration = Duration::from_secs(1);
        const ENDLESS: Backoff = Backoff::new(Duration::MAX, 1.0, Duration::MAX);
        const SHRINKING: Backoff = Backoff::new(SECOND, 0.5, Duration::from_secs(2));
        const CAPPED: Backoff = Backoff::new(SECOND, 2.0, Duration::from_millis(1));
        let refused: [Break; 13] = [
            ("stage", |s| s.stage = Limits::new(0, 1)),
            ("quarantine", |s| s.quarantine = Limits::new(1, 0)),
            ("batch_messages", |s| s.batch_messages = 1_001),
            ("batch_messages", |s| s.batch_messages = 0),
            ("batch_bytes", |s| s.batch_bytes = 10_000_001),
            ("in_flight", |s| s.in_flight = 0),
            ("max_destinations", |s| s.max_destinations = 0),
            ("progress_timeout", |s| s.progress_timeout = Duration::ZERO),
            ("close_timeout", |s| s.close_timeout = Duration::ZERO),
            ("retry_delays", |s| s.retry.delays = ENDLESS),
            ("attempt_deadlines", |s| s.retry.deadlines = ENDLESS),
            ("quota_delays", |s| s.retry.quota_delays = SHRINKING),
            ("attempt_deadlines", |s| s.retry.deadlines = CAPPED),
        ];
        for (name, break_it) in refused {
            let mut settings = Settings::default();
            break_it(&mut settings);
            match settings.check() {
                Err(BuildError::OutOfRange { setting, .. }) => assert_eq!(setting, name),
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_names_of_identity_attributes_are_checked_when_the_sink_is_built() {
        let names = |incarnation: &str, sequence: &str| IdentityAttributes {
            incarnation: incarnation.to_owned(),
            sequence: sequence.to_owned(),
        };
        assert!(names("sink-incarnation", "sink-sequence").check().is_ok());
        for (incarnation, sequence) in [("one", "one"), ("", "two"), ("googly", "two")] {
            let refused = names(incarnation, sequence).check();
            assert!(refused.is_err(), "{incarnation:?}, {sequence:?}");
        }
    }
}
