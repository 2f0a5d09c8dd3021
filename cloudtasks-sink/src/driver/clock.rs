//! The one place of this crate that reads the clock by which it waits.

use std::time::Instant;

/// The runtime's clock, which tests can pause.
#[expect(
    clippy::disallowed_methods,
    reason = "drivers read the clock and pass it on"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
