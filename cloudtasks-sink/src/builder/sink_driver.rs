//! The driver for a host that places it itself.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

/// The driver of a sink, to be polled until it ends.
///
/// # Cancel safety
///
/// Dropping it ends the sink: what has no verdict never gets one, and comes again after a restore.
#[must_use = "a sink does nothing while its driver is not polled"]
pub struct SinkDriver(BoxFuture<'static, ()>);

impl SinkDriver {
    pub(super) fn new(future: BoxFuture<'static, ()>) -> Self {
        Self(future)
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
