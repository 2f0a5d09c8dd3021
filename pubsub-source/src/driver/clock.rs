//! The one place of this crate that reads clocks.

use std::{
    fmt,
    sync::Arc,
    time::{Instant, SystemTime},
};

/// Now, on tokio's clock, which tests may pause.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle and the driver are where the machine's time comes from"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time of day, for what outlives the process.
#[expect(
    clippy::disallowed_methods,
    reason = "a saved state or a start position is read by another process, which shares no other clock"
)]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
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
        Self::new(wall)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallClock").finish_non_exhaustive()
    }
}
