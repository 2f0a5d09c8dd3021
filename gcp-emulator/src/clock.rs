//! The shell's clock: Tokio's, so that paused time carries the server along.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::time::Time;

/// Maps Tokio's time to the time the state machines are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    wall: Time,
}

impl Clock {
    /// A clock that shows `wall` now, or the wall clock's time without one.
    #[expect(
        clippy::disallowed_methods,
        reason = "the shell's only reading of the clocks"
    )]
    pub(crate) fn start(wall: Option<SystemTime>) -> Self {
        let wall = wall.unwrap_or_else(SystemTime::now);
        let since_epoch = wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self {
            started: Instant::now(),
            wall: Time::from_unix(since_epoch),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the shell tells the machines what time it is"
    )]
    pub(crate) fn now(self) -> Time {
        self.wall + Instant::now().saturating_duration_since(self.started)
    }

    /// The instant at which this clock shows `time`.
    pub(crate) fn instant(self, time: Time) -> Instant {
        // Tokio's timers reach about two years; what lies beyond is looked at again then.
        let ahead = time
            .since(self.wall)
            .min(Duration::from_secs(365 * 24 * 3600));
        self.started + ahead
    }
}
