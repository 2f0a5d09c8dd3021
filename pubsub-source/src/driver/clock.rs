//! The one place of this crate that reads the clock by which it waits.

use std::time::Instant;

/// Now, on tokio's clock, which tests may pause.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle and the driver are where the machine's time comes from"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
