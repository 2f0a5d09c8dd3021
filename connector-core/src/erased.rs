//! One state type for hosts with mixed connectors.

use crate::{Checkpoint, Committed, Epoch, Receipt, SavedState, Versioned};

/// A connector whose state is a [`SavedState`], so that connectors of several kinds can stand in
/// one list as `Box<dyn Checkpoint<State = SavedState>>`.
#[derive(Debug)]
pub struct Erased<C>(C);

impl<C> Erased<C> {
    /// Wraps a connector.
    pub const fn new(connector: C) -> Self {
        Self(connector)
    }

    /// The connector inside.
    pub const fn get_mut(&mut self) -> &mut C {
        &mut self.0
    }

    /// Gives the connector back.
    pub fn into_inner(self) -> C {
        self.0
    }
}

impl<C> Checkpoint for Erased<C>
where
    C: Checkpoint,
    C::State: Versioned,
{
    type State = SavedState;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<SavedState> {
        self.0.snapshot(epoch).map(|state| SavedState::of(&state))
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        self.0.commit(epoch)
    }

    fn abort(&mut self, epoch: Epoch) {
        self.0.abort(epoch);
    }
}
