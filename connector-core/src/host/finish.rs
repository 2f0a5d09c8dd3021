//! The end of a run: until nothing that was committed is owed.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::step::{Admission, Room, Sinks, StepError};
use crate::{Cause, Checkpoint, CheckpointError, Committed, Epoch, Receipt};

/// What a host keeps durably at the end of a run, in this order.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a host has to do everything there is to do"
)]
pub enum Keep<S> {
    /// Save the state as this epoch.
    Save(Epoch, S),
    /// Write the mark that says that this epoch is about to be committed. A host without such
    /// marks does nothing.
    Committing(Epoch),
    /// Write the mark that says that everything of this epoch is settled.
    Settled(Epoch),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The last epoch: saved, committed and marked.
    pub epoch: Epoch,
    /// What became of what was still owed.
    pub committed: Committed,
}

/// Why a run did not end in order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// The snapshot or the commit of an epoch failed.
    #[error("epoch {epoch} was not finished; the next start goes on from the last saved state")]
    Checkpoint {
        /// The epoch.
        epoch: Epoch,
        /// What the connector said.
        #[source]
        source: CheckpointError,
    },
    /// The host could not keep the state or a mark.
    #[error(
        "the host could not keep epoch {epoch}; the next start goes on from the last saved state"
    )]
    Keep {
        /// The epoch.
        epoch: Epoch,
        /// What the host's store said.
        #[source]
        cause: Cause,
    },
    /// The connector ended.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// Ends a staged sink's run: snapshot, save, commit, wait, mark; and once more whenever the sink
/// asks for another checkpoint meanwhile. Afterwards the last saved state owes nothing and its mark
/// says so, so that a restart, however late, asks for nothing again.
///
/// `newest` is the last epoch taken; the sink is still open afterwards, and `close` ends it. A host
/// of several connectors does the same with its own checkpoint: it selects between its commits and
/// [`checkpoint_wanted`].
///
/// # Errors
///
/// A [`FinishError`]; whatever was saved before it stays valid.
///
/// # Cancel safety
///
/// Dropped half-way, the run is as if the process had died there: the last saved state names what
/// is owed. Do not go on with the sink.
pub async fn finish<C, E>(
    sink: &mut C,
    newest: Epoch,
    mut keep: impl AsyncFnMut(Keep<C::State>) -> Result<(), E>,
) -> Result<Finished, FinishError>
where
    C: Checkpoint + Admission,
    E: Error + Send + Sync + 'static,
{
    let mut epoch = newest;
    let mut receipts: Vec<Receipt<Committed>> = Vec::new();
    let mut committed = Committed::default();
    loop {
        epoch = epoch.next();
        let failed = |source| FinishError::Checkpoint { epoch, source };
        let state = sink.snapshot(epoch).await.map_err(failed)?;
        for step in [Keep::Save(epoch, state), Keep::Committing(epoch)] {
            keep(step).await.map_err(|error| not_kept(epoch, error))?;
        }
        receipts.push(sink.commit(epoch));
        let asked = poll_fn(|cx| poll_rest(sink, &mut receipts, &mut committed, cx)).await;
        match asked {
            Rest::Done => break,
            Rest::CheckpointWanted => {}
            Rest::Failed(source) => return Err(FinishError::Checkpoint { epoch, source }),
            Rest::Ended(error) => return Err(error.into()),
        }
    }
    keep(Keep::Settled(epoch))
        .await
        .map_err(|error| not_kept(epoch, error))?;
    Ok(Finished { epoch, committed })
}

fn not_kept(epoch: Epoch, error: impl Error + Send + Sync + 'static) -> FinishError {
    let cause = Cause::new(error);
    FinishError::Keep { epoch, cause }
}

enum Rest {
    Done,
    CheckpointWanted,
    Failed(CheckpointError),
    Ended(StepError),
}

fn poll_rest(
    sink: &mut impl Admission,
    receipts: &mut Vec<Receipt<Committed>>,
    committed: &mut Committed,
    cx: &mut Context<'_>,
) -> Poll<Rest> {
    let mut failed = None;
    receipts.retain_mut(|receipt| match Pin::new(receipt).poll(cx) {
        Poll::Pending => true,
        Poll::Ready(Ok(settled)) => {
            *committed += settled;
            false
        }
        Poll::Ready(Err(error)) => {
            failed.get_or_insert(error);
            false
        }
    });
    if let Some(error) = failed {
        return Poll::Ready(Rest::Failed(error));
    }
    if receipts.is_empty() {
        return Poll::Ready(Rest::Done);
    }
    poll_wanted(sink, cx).map(|wanted| match wanted {
        Ok(()) => Rest::CheckpointWanted,
        Err(error) => Rest::Ended(error),
    })
}

/// Waits until one of the sinks asks for a checkpoint.
///
/// For a host that takes no more records and waits for its last commits: a sink that keeps a
/// rejected or expired item aside gives its verdict only when a saved state names it, and asks for
/// the checkpoint that does.
///
/// # Errors
///
/// The first sink's terminal error.
///
/// # Cancel safety
///
/// A wish that was told is not told again for the same epoch; dropped before it resolved, nothing
/// is lost.
pub async fn checkpoint_wanted(mut sinks: impl Sinks) -> Result<(), StepError> {
    poll_fn(|cx| poll_wanted(&mut sinks, cx)).await
}

fn poll_wanted(sinks: &mut impl Sinks, cx: &mut Context<'_>) -> Poll<Result<(), StepError>> {
    match sinks.poll_room_in_all(cx) {
        Poll::Ready(Ok(Room::CheckpointWanted)) => Poll::Ready(Ok(())),
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        // Room or none: whoever comes to want a checkpoint wakes us.
        Poll::Ready(Ok(Room::Ready)) | Poll::Pending => Poll::Pending,
    }
}
