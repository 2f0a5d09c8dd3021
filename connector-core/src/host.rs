//! The steps of a host's loop that are easy to get wrong.
//!
//! [`next_when`] and [`settle`] are the loop's; the crate's first page shows it whole. [`finish`]
//! and [`checkpoint_wanted`] are for its end. A host that
//! buffers between the source and its sinks lets each cut travel with the records instead:
//! [`BarrierExt::with_barriers`].

mod barriers;
mod finish;
mod step;

pub use barriers::{BarrierExt, Checkpoints, Event, WithBarriers};
pub use finish::{FinishError, Finished, Keep, checkpoint_wanted, finish};
pub use step::{Admission, Next, Room, Sinks, StepError, next_when};

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{CheckpointError, Committed, Epoch, Receipt};

/// Waits until every commit receipt of `epoch` has resolved.
///
/// Push the result into a `FuturesUnordered` instead of awaiting it inline: while it waits for the
/// service, the loop must go on reading. Its output is the epoch, for the store's settled mark.
///
/// # Errors
///
/// The future fails with the first receipt's error once *every* receipt has resolved. The epoch is
/// then committed all the same (C11), only without a mark.
///
/// # Cancel safety
///
/// The work belongs to the commit calls; dropping the future changes nothing but what is learnt.
pub fn settle(epoch: Epoch, receipts: impl IntoIterator<Item = Receipt<Committed>>) -> Settling {
    Settling {
        epoch,
        receipts: receipts.into_iter().collect(),
        committed: Committed::default(),
        failed: None,
    }
}

/// The future of [`settle`].
#[derive(Debug)]
#[must_use = "the settled mark is written only by whoever awaits this"]
pub struct Settling {
    epoch: Epoch,
    receipts: Vec<Receipt<Committed>>,
    committed: Committed,
    failed: Option<CheckpointError>,
}

impl Settling {
    /// What the receipts that have resolved so far say.
    #[must_use]
    pub fn committed(&self) -> Committed {
        self.committed
    }
}

impl Future for Settling {
    type Output = Result<Epoch, CheckpointError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // All receipts are waited for even when one fails: a mark or a message about the epoch
        // should not race with what the other connectors are still doing.
        this.receipts
            .retain_mut(|receipt| match Pin::new(receipt).poll(cx) {
                Poll::Pending => true,
                Poll::Ready(Ok(committed)) => {
                    this.committed += committed;
                    false
                }
                Poll::Ready(Err(error)) => {
                    this.failed.get_or_insert(error);
                    false
                }
            });
        if !this.receipts.is_empty() {
            return Poll::Pending;
        }
        // Cloned and not taken: polled again by mistake, a failure must not turn into a mark.
        Poll::Ready(this.failed.clone().map_or(Ok(this.epoch), Err))
    }
}
