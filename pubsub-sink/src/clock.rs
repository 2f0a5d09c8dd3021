//! The one place that reads a clock.

use std::time::{Instant, SystemTime};

/// Now, by tokio's clock: tests that pause it move the whole sink.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle and the driver read the clock here and pass it to the machine"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Now, as people tell the time.
#[expect(
    clippy::disallowed_methods,
    reason = "a dead letter says when its record was rejected, to people and other processes"
)]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
