//! The one place that reads a clock.

use std::time::Instant;

/// Now, by tokio's clock: tests that pause it move the whole sink.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle and the driver read the clock here and pass it to the machine"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
