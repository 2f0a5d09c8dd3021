//! Points in time, as the pure state machines are told them.

use std::fmt;
use std::time::Duration;

use prost_types::Timestamp;

/// A point in time: whole nanoseconds since the Unix epoch.
///
/// The state machines read no clock; whoever drives them says what time it is. Time never goes
/// backwards for them: a smaller `now` than the last one counts as the last one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// 1 January 1970, 00:00 UTC.
    pub const UNIX_EPOCH: Self = Self(0);

    /// The time `since_epoch` after the Unix epoch, at most the year 2554.
    #[must_use]
    pub fn from_unix(since_epoch: Duration) -> Self {
        Self(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time passed since the Unix epoch.
    #[must_use]
    pub const fn as_unix(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The time passed since `earlier`, zero when `earlier` lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time `span` before this one, at the earliest the Unix epoch.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }

    /// This time cut to whole milliseconds, the granularity of publish times.
    #[must_use]
    pub const fn to_millisecond(self) -> Self {
        Self(self.0 - self.0 % 1_000_000)
    }

    /// This time as the services write it.
    #[must_use]
    pub fn to_timestamp(self) -> Timestamp {
        let since = self.as_unix();
        Timestamp {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(since.subsec_nanos()).unwrap_or(0),
        }
    }

    /// The time a service's timestamp names; what lies before the epoch becomes the epoch.
    #[must_use]
    pub fn from_timestamp(timestamp: &Timestamp) -> Self {
        let Ok(seconds) = u64::try_from(timestamp.seconds) else {
            return Self::UNIX_EPOCH;
        };
        let nanos = u32::try_from(timestamp.nanos).unwrap_or(0).min(999_999_999);
        Self::from_unix(Duration::new(seconds, nanos))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.as_unix();
        write!(f, "{}.{:09}s", since.as_secs(), since.subsec_nanos())
    }
}

impl fmt::Display for Time {
    /// The RFC 3339 form with milliseconds and a numeric offset, `2026-11-30T08:15:00.250+00:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut whole = self.to_timestamp();
        let millis = whole.nanos / 1_000_000;
        whole.nanos = 0;
        // `Timestamp` prints `2026-11-30T08:15:00Z`; the offset and fraction are ours.
        let text = whole.to_string();
        write!(f, "{}.{millis:03}+00:00", text.trim_end_matches('Z'))
    }
}

/// A service's duration as ours; negative ones are `None`.
pub(crate) fn from_proto_duration(duration: &prost_types::Duration) -> Option<Duration> {
    Duration::try_from(*duration).ok()
}

/// Our duration as the services write it.
pub(crate) fn to_proto_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_survives_the_way_through_a_timestamp() {
        let time = Time::from_unix(Duration::new(1_790_000_000, 123_456_789));
        assert_eq!(Time::from_timestamp(&time.to_timestamp()), time);
    }

    #[test]
    fn times_print_with_milliseconds_and_offset() {
        let time = Time::from_unix(Duration::new(1_787_567_714, 812_999_999));
        assert_eq!(time.to_string(), "2026-08-24T10:35:14.812+00:00");
    }

    #[test]
    fn a_timestamp_before_the_epoch_is_the_epoch() {
        let year_one = Timestamp {
            seconds: -62_135_596_800,
            nanos: 0,
        };
        assert_eq!(Time::from_timestamp(&year_one), Time::UNIX_EPOCH);
    }
}
