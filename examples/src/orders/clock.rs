//! The clocks, read by the program alone.

use std::time::{Instant, SystemTime};

/// For how long something took.
#[expect(
    clippy::disallowed_methods,
    reason = "a program: it tells how long the run took"
)]
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// For when something is to happen.
#[expect(
    clippy::disallowed_methods,
    reason = "a program: dispatch times follow the wall clock"
)]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
