//! What a subscription is put back or forth to.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use gcp_wire::{
    SnapshotName, SubscriptionName,
    proto::{
        Timestamp,
        pubsub::{SeekRequest, seek_request::Target},
    },
};

use super::StartPosition;
use crate::error::BuildError;

/// The last whole second that the service's timestamps know: 9999-12-31T23:59:59Z.
const LAST_SECOND: u64 = 253_402_300_799;

/// What a position comes to, once the moment is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SeekTarget {
    /// The time since the Unix epoch.
    Time(Duration),
    Snapshot(SnapshotName),
}

impl SeekTarget {
    /// What `position` comes to when the check began at `moment` after the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`BuildError::Setting`] for a timestamp that the service does not know.
    pub(crate) fn of(
        position: &StartPosition,
        moment: Duration,
    ) -> Result<Option<Self>, BuildError> {
        Ok(match position {
            StartPosition::Continue => None,
            // A target older than everything retained means all of it.
            StartPosition::Earliest => Some(Self::Time(Duration::ZERO)),
            StartPosition::Latest => Some(Self::Time(moment)),
            StartPosition::Timestamp(time) => {
                let since = time.duration_since(SystemTime::UNIX_EPOCH);
                let known = since
                    .ok()
                    .filter(|since| since.as_secs() <= LAST_SECOND)
                    .ok_or_else(|| BuildError::Setting {
                        setting: "start",
                        found: format!("Timestamp({time:?})"),
                        allowed: "a moment from the Unix epoch to the end of the year 9999",
                    })?;
                Some(Self::Time(known))
            }
            StartPosition::Snapshot(name) => Some(Self::Snapshot(name.clone())),
        })
    }

    /// Whether acknowledged messages from before `moment` are to come again, as far as they are
    /// retained. A snapshot keeps what it needs by itself.
    pub(crate) fn goes_back_from(&self, moment: Duration) -> bool {
        match self {
            Self::Time(time) => *time < moment,
            Self::Snapshot(_) => false,
        }
    }

    /// The request that seeks.
    pub(crate) fn request(&self, subscription: &SubscriptionName) -> SeekRequest {
        let target = match self {
            Self::Time(time) => Target::Time(Timestamp {
                seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
                nanos: i32::try_from(time.subsec_nanos()).unwrap_or(0),
            }),
            Self::Snapshot(name) => Target::Snapshot(name.as_str().to_owned()),
        };
        SeekRequest {
            subscription: subscription.as_str().to_owned(),
            target: Some(target),
        }
    }
}

impl fmt::Display for SeekTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(
                f,
                "{}.{:09} s after the Unix epoch",
                time.as_secs(),
                time.subsec_nanos()
            ),
            Self::Snapshot(name) => write!(f, "snapshot {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::new(1_700_000_000, 123_456_789);

    fn of(position: StartPosition) -> Result<Option<SeekTarget>, BuildError> {
        SeekTarget::of(&position, MOMENT)
    }

    #[test]
    fn each_position_has_its_target() {
        assert_eq!(StartPosition::default(), StartPosition::Continue);
        assert_eq!(of(StartPosition::Continue).unwrap(), None);
        let earliest = of(StartPosition::Earliest).unwrap().unwrap();
        assert_eq!(earliest, SeekTarget::Time(Duration::ZERO));
        assert!(earliest.goes_back_from(MOMENT));
        let latest = of(StartPosition::Latest).unwrap().unwrap();
        assert_eq!(latest, SeekTarget::Time(MOMENT));
        assert!(!latest.goes_back_from(MOMENT));
        let snapshot: SnapshotName = "projects/demo/snapshots/before".parse().unwrap();
        let target = of(StartPosition::Snapshot(snapshot.clone()));
        let target = target.unwrap().unwrap();
        assert_eq!(target, SeekTarget::Snapshot(snapshot));
        assert!(!target.goes_back_from(MOMENT));
    }

    #[test]
    fn a_timestamp_reaches_the_service_to_the_nanosecond() {
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_600_000_000, 7);
        let target = of(StartPosition::Timestamp(time)).unwrap().unwrap();
        let name = "projects/demo/subscriptions/sub".parse().unwrap();
        let request = target.request(&name);
        assert_eq!(request.subscription, "projects/demo/subscriptions/sub");
        let Some(Target::Time(sent)) = request.target else {
            panic!("{request:?}")
        };
        assert_eq!((sent.seconds, sent.nanos), (1_600_000_000, 7));
    }

    #[test]
    fn a_timestamp_that_the_service_does_not_know_is_refused_with_its_value() {
        let last = SystemTime::UNIX_EPOCH + Duration::from_secs(LAST_SECOND);
        assert!(of(StartPosition::Timestamp(last)).is_ok());
        let after = last + Duration::from_secs(1);
        let before = SystemTime::UNIX_EPOCH - Duration::from_nanos(1);
        for time in [before, after] {
            let text = of(StartPosition::Timestamp(time)).unwrap_err().to_string();
            assert!(text.contains(&format!("{time:?}")), "{text}");
        }
    }
}
