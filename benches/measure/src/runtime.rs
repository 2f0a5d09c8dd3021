//! The runtime under a measurement, and its clock.

use tokio::time::Instant;

use crate::Failure;

/// Runs on a current-thread runtime, or on a multi-thread runtime of `threads` workers.
///
/// The loop is a task of the runtime in either case: on a multi-thread runtime a loop that stays
/// on the thread of `main` pays for a thread's wake-up with each message that a worker hands it,
/// and half of what is measured would be that.
///
/// # Errors
///
/// Those of `run`; a runtime that cannot be built; a panic in `run`.
pub fn on_threads(
    threads: usize,
    run: impl Future<Output = Result<(), Failure>> + Send + 'static,
) -> Result<(), Failure> {
    let mut builder = if threads <= 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(threads);
        builder
    };
    let runtime = builder.enable_all().build()?;
    let task = runtime.spawn(run);
    runtime.block_on(task)?
}

/// The time.
#[expect(clippy::disallowed_methods, reason = "a program may look at the clock")]
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}
