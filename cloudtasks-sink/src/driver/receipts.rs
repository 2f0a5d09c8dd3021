//! The receipts that hosts hold, by what resolves them.

use std::collections::BTreeMap;

use connector_core::ledger::CommitId;
use connector_core::{Cause, CheckpointError, Committed, Epoch, Resolver};

use crate::machine::RecordId;
use crate::state::SinkState;
use crate::submitted::Submitted;

/// Receipts that have not resolved.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    /// Each with the state that was taken at the cut.
    pub(crate) snapshots: BTreeMap<Epoch, (Resolver<SinkState>, SinkState)>,
    pub(crate) commits: BTreeMap<CommitId, Resolver<Committed>>,
    pub(crate) submitted: BTreeMap<RecordId, Resolver<Submitted>>,
}

impl Receipts {
    /// Tells every host that still waits why nothing comes any more.
    pub(crate) fn close(self, cause: &Cause) {
        let closed = || CheckpointError::Closed {
            cause: cause.clone(),
        };
        for (resolver, _state) in self.snapshots.into_values() {
            resolver.resolve(Err(closed()));
        }
        for resolver in self.commits.into_values() {
            resolver.resolve(Err(closed()));
        }
        for resolver in self.submitted.into_values() {
            resolver.resolve(Err(closed()));
        }
    }
}
