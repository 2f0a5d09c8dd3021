//! However the driver ends, whoever waits is told.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt, future::BoxFuture};
use tokio::runtime::Handle;

use super::Driver;
use crate::{SinkError, events, shared::Shared};

/// How much of a panic's text an error keeps, in characters.
const KEPT: usize = 200;

/// The future that does a sink's work.
///
/// From [`build_with_driver`](crate::SinkBuilder::build_with_driver), for hosts that place it
/// themselves. It must be polled on a Tokio runtime with I/O and time, independently of the code
/// that uses the sink: never in the same `select!` as something that awaits inline, which would
/// stop it. It ends when the sink does. Dropping it ends the sink with
/// [`SinkError::DriverGone`](crate::SinkError::DriverGone).
#[must_use = "a sink does nothing while its driver is not polled"]
pub struct SinkDriver(BoxFuture<'static, ()>);

impl SinkDriver {
    pub(crate) fn new(mut driver: Driver) -> Self {
        let guard = Guard(Arc::clone(&driver.shared));
        let run = async move {
            let ended = AssertUnwindSafe(driver.run()).catch_unwind().await;
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => guard.end(error),
                Err(panic) => guard.end(SinkError::Panicked {
                    message: text_of(panic.as_ref()),
                }),
            }
        };
        Self(run.boxed())
    }

    /// Runs on its own. The task is not awaited: however it ends, the guard tells the sink.
    pub(crate) fn spawn_on(self, runtime: &Handle) {
        drop(runtime.spawn(self));
    }
}

impl Future for SinkDriver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for SinkDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkDriver").finish_non_exhaustive()
    }
}

/// Ends the sink with the driver, also when the driver is only dropped.
struct Guard(Arc<Shared>);

impl Guard {
    fn end(&self, error: SinkError) {
        // Nothing can be done about a poisoned state: every call of the handle says so itself.
        drop(self.0.with(|state| state.machine.fail(error)));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let shared = &self.0;
        let left = shared.with(|state| {
            // A runtime that ends after its host let go of a sink with nothing left to send is how
            // a program ends, and no error.
            let done = state.orphaned && state.machine.owed() == 0;
            state.machine.fail(if done {
                SinkError::ClosedByHost
            } else {
                SinkError::DriverGone
            });
            let released = state.machine.take_released();
            let ended = state.machine.ended().cloned();
            (state.close_receipts(), released, ended)
        });
        if let Ok((outcomes, released, ended)) = left {
            shared.member.release(released);
            match ended {
                Some(SinkError::ClosedByHost) | None => {}
                Some(error) => events::ended(&shared.instance, &error),
            }
            for outcome in outcomes {
                outcome.resolve(&shared.instance);
            }
        }
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text");
    text.chars().take(KEPT).collect()
}
