//! The end of a sink, in good order or not.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
};

use connector_core::Receipt;

use super::PubsubSink;
use crate::{SinkError, clock, events, shared::CutReceipt};

impl<R> PubsubSink<R> {
    /// Sends everything accepted, lets the failure handler flush, and ends the sink; within
    /// `close_timeout`.
    ///
    /// A staged sink sends what is committed, and no more: commit the last epoch before, or its
    /// messages leave after the next restore. Call it at the end of a run. A second call does nothing.
    ///
    /// # Errors
    ///
    /// [`SinkError::Unsent`] with the number of messages that were not confirmed in time, or the
    /// error that ended the sink before.
    ///
    /// # Cancel safety
    ///
    /// The work belongs to the call; awaiting it again goes on waiting.
    pub async fn close(&mut self) -> Result<(), SinkError> {
        poll_fn(|cx| self.poll_closed(cx)).await
    }

    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        if self.closed {
            return Poll::Ready(Ok(()));
        }
        if self.closing.is_none() {
            if self.shared.is_ended() {
                return Poll::Ready(Err(self.last_word()));
            }
            let (resolver, receipt) = Receipt::channel();
            self.shared.with(|state| {
                let id = state.machine.close(clock::now());
                state.receipts.cut(id, CutReceipt::Flush(resolver));
            })?;
            self.closing = Some(receipt);
        }
        let outcome = match &mut self.closing {
            Some(receipt) => ready!(Pin::new(receipt).poll(cx)),
            None => Ok(()),
        };
        self.closing = None;
        self.closed = outcome.is_ok();
        Poll::Ready(outcome.map_err(|_| self.last_word()))
    }
}

impl<R> Drop for PubsubSink<R> {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        // Best effort: the driver sends what it has while its runtime lives, then ends.
        let left = self.shared.with(|state| {
            if state.machine.is_ended() {
                return 0;
            }
            state.orphaned = true;
            state.machine.close(clock::now());
            state.machine.owed()
        });
        if let Ok(items) = left
            && items > 0
        {
            events::dropped(&self.shared.instance, items);
        }
    }
}
