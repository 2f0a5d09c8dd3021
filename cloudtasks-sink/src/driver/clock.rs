//! The two clocks: one for waiting, one for what is written into tasks.

use std::time::{Instant, SystemTime};

/// The runtime's clock, which tests can pause.
#[expect(
    clippy::disallowed_methods,
    reason = "drivers read the clock and pass it on"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time of day, for times that the service reads.
#[expect(
    clippy::disallowed_methods,
    reason = "drivers read the clock and pass it on"
)]
pub(crate) fn time_of_day() -> SystemTime {
    SystemTime::now()
}
