//! The one place of this crate that reads a clock.

use std::time::{Duration, Instant, SystemTime};

/// Now, on tokio's clock, which tests may pause.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle and the driver are where the machine's time comes from"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The wall clock's time since the Unix epoch; what lies before counts as the epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "a start position may be the moment of the start"
)]
pub(crate) fn wall_clock() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
