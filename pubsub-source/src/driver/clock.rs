//! The one place of this crate that reads clocks.

use std::time::{Instant, SystemTime};

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
