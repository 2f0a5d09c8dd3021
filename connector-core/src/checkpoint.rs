//! The contract between a connector and its host's checkpoints.

mod error;
mod receipt;

pub use error::{Cause, CheckpointError, DriverGone};
pub use receipt::{Receipt, Resolver};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::Epoch;

/// A connector's part in its host's checkpoints.
///
/// The clauses are numbered in `docs/checkpoint-contract.md`; the conformance suite (feature
/// `conformance`) has a test for each. In short: `snapshot` cuts the stream of records at the call
/// (C1), the host makes the returned state durable together with its own, then calls `commit`,
/// and only then does anything become visible outside (C5).
///
/// The trait is not made of `async fn`s: a future that borrows the connector would keep the host
/// from polling it while acknowledgements are confirmed, and dropping such a future half-way would
/// leave an unknown state. The returned [`Receipt`]s own what they need.
pub trait Checkpoint {
    /// What the host saves with an epoch, and gives back to the builder's `restore`.
    type State: Serialize + DeserializeOwned + Send + 'static;

    /// Closes the open epoch as `epoch` and opens the next.
    ///
    /// The cut is made before this returns; the receipt says when its state is complete. The state
    /// is cumulative (C8): it names everything sealed, and everything committed whose settling is
    /// not yet confirmed.
    ///
    /// # Errors
    ///
    /// The receipt fails with [`CheckpointError::OutOfOrder`] when `epoch` is not newer than every
    /// epoch seen before, in which case nothing changed; with [`CheckpointError::Aborted`] when it
    /// is aborted before its state was complete; with [`CheckpointError::Closed`] after a terminal
    /// error; with [`CheckpointError::Incomplete`] when what it covers could not be delivered,
    /// staged or handled. A receipt that fails settles nothing: what it covered stays owed (C3).
    ///
    /// # Cancel safety
    ///
    /// The cut is made by the call; dropping the receipt changes nothing but what the host learns.
    fn snapshot(&mut self, epoch: Epoch) -> Receipt<Self::State>;

    /// Tells the connector that `epoch` is durable: settle it and every epoch before it.
    ///
    /// The work belongs to the call, not to the receipt (C6): dropping the receipt changes nothing
    /// but what the host learns. The receipt resolves when everything up to `epoch` has a verdict.
    ///
    /// # Errors
    ///
    /// The receipt fails with [`CheckpointError::Unknown`] for an epoch beyond the last snapshot;
    /// with [`CheckpointError::Unconfirmed`] when the service did not confirm in time; with
    /// [`CheckpointError::Closed`] after a terminal error. A failed receipt does not take the commit
    /// back (C11).
    ///
    /// # Cancel safety
    ///
    /// Dropping the receipt stops nothing; what is committed is sent all the same.
    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed>;

    /// Tells the connector that `epoch` will never be durable although the run goes on.
    ///
    /// Its items fold into the next epoch, and its pending snapshot receipt resolves to
    /// [`CheckpointError::Aborted`]. Nothing is released, dropped or emitted again. An unknown or
    /// committed epoch has no effect. This is *not* rollback: a host that goes back drops the
    /// connector and builds a new one with `restore`.
    fn abort(&mut self, epoch: Epoch);
}

#[deny(clippy::missing_trait_methods)]
impl<C: Checkpoint + ?Sized> Checkpoint for &mut C {
    type State = C::State;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<Self::State> {
        (**self).snapshot(epoch)
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        (**self).commit(epoch)
    }

    fn abort(&mut self, epoch: Epoch) {
        (**self).abort(epoch);
    }
}

#[deny(clippy::missing_trait_methods)]
impl<C: Checkpoint + ?Sized> Checkpoint for Box<C> {
    type State = C::State;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<Self::State> {
        (**self).snapshot(epoch)
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        (**self).commit(epoch)
    }

    fn abort(&mut self, epoch: Epoch) {
        (**self).abort(epoch);
    }
}

/// What became of the items that a commit released.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Committed {
    /// Items that the service confirmed.
    pub settled: usize,
    /// Deliveries whose lease ended before the service confirmed. The message *may* come again and
    /// is then acknowledged without being emitted, while the seen window holds.
    pub lapsed: usize,
    /// Items kept aside for the operator: rejected or expired staged items.
    pub retained: usize,
}

impl Committed {
    /// The number of items with a verdict.
    #[must_use]
    pub const fn total(self) -> usize {
        self.settled + self.lapsed + self.retained
    }
}

impl std::ops::AddAssign for Committed {
    fn add_assign(&mut self, other: Self) {
        self.settled += other.settled;
        self.lapsed += other.lapsed;
        self.retained += other.retained;
    }
}

/// A state that was durable, as a builder's `restore` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Restored<S> {
    /// The epoch under which the state was saved. It must be the newest that was ever durable:
    /// what was committed later is acknowledged and will not come again.
    pub epoch: Epoch,
    /// The state itself.
    pub state: S,
    /// Whether every commit receipt of `epoch` is known to have resolved. With `true` a sink drops
    /// what the state names instead of sending it again; a source keeps the ids as seen.
    pub settled: bool,
    /// Whether a commit may have been called since the snapshot of this state. `true` is the safe
    /// assumption, and what [`new`](Self::new) assumes; see [`committing`](Self::committing).
    #[serde(default = "maybe")]
    pub committing: bool,
}

const fn maybe() -> bool {
    true
}

impl<S> Restored<S> {
    /// A state whose settling is not known to have finished: the safe assumption.
    pub const fn new(epoch: Epoch, state: S) -> Self {
        Self {
            epoch,
            state,
            settled: false,
            committing: true,
        }
    }

    /// Says whether every commit receipt of the epoch is known to have resolved.
    #[must_use]
    pub fn settled(mut self, settled: bool) -> Self {
        self.settled = settled;
        self
    }

    /// Says whether a commit may have been called since the snapshot of this state.
    ///
    /// `false` claims that *nobody* called `commit`, of this epoch or an earlier one, after this
    /// snapshot was taken. Then nothing that was uncommitted at the snapshot was ever sent, and a
    /// sink whose exactly-once window would be over otherwise may still send it.
    ///
    /// Where a host's store has no `committing` mark of the epoch, the claim holds if
    ///
    /// * whoever owned the state before is fenced;
    /// * the mark is written for the newest saved epoch before every commit, and before a connector
    ///   is built, which commits by itself what it restores;
    /// * no commit is called from the moment of a snapshot until the save of its state, or of a later
    ///   one, has answered `Ok`. A commit that was called before the snapshot may still be under way.
    ///
    /// The last one is what a host breaks that overlaps its checkpoints: `snapshot(2)`, mark and
    /// `commit(1)`, `save(2)`, crash. State 2 names as uncommitted what the commit sent since its
    /// cut, and the mark of epoch 1 went with state 1. Such a host must not make the claim.
    #[must_use]
    pub fn committing(mut self, committing: bool) -> Self {
        self.committing = committing;
        self
    }

    /// Applies `f` to the state, keeping the epoch and the marks.
    ///
    /// A host that saves one structure of several connector states uses this to take it apart.
    pub fn map<T>(self, f: impl FnOnce(S) -> T) -> Restored<T> {
        Restored {
            epoch: self.epoch,
            state: f(self.state),
            settled: self.settled,
            committing: self.committing,
        }
    }

    /// Applies a fallible `f` to the state, keeping the epoch and the marks.
    ///
    /// # Errors
    ///
    /// Whatever `f` answers.
    pub fn try_map<T, E>(self, f: impl FnOnce(S) -> Result<T, E>) -> Result<Restored<T>, E> {
        Ok(Restored {
            epoch: self.epoch,
            state: f(self.state)?,
            settled: self.settled,
            committing: self.committing,
        })
    }
}

impl<A, B> Restored<(A, B)> {
    /// Takes a pair of states apart, so that each can go to its builder.
    #[must_use]
    pub fn unzip(self) -> (Restored<A>, Restored<B>) {
        let Self {
            epoch,
            state: (a, b),
            settled,
            committing,
        } = self;
        (
            Restored::new(epoch, a)
                .settled(settled)
                .committing(committing),
            Restored::new(epoch, b)
                .settled(settled)
                .committing(committing),
        )
    }
}
