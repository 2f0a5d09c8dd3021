//! The one place of this crate that reads a clock.

use tokio::time::Instant;

/// Now, on tokio's clock, which tests may pause.
#[expect(
    clippy::disallowed_methods,
    reason = "this crate is a driver: its deadlines are real ones, on tokio's clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
