//! The two clocks: one for waiting, one for what is written into tasks.

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// The runtime's clock, which tests can pause.
#[expect(
    clippy::disallowed_methods,
    reason = "drivers read the clock and pass it on"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time of day as the host has it: the system's, or another one in tests.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    pub(crate) fn new(clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new(time_of_day)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallClock").finish_non_exhaustive()
    }
}

/// The time of day, for deadlines, and for times that the service reads.
#[expect(
    clippy::disallowed_methods,
    reason = "drivers read the clock and pass it on"
)]
fn time_of_day() -> SystemTime {
    SystemTime::now()
}
