//! One incarnation of the sink, and what its host remembers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use connector_core::{Epoch, Limits, ledger::CommitId};

use super::handler::Handler;
use crate::{
    machine::{CutId, Machine, ReplyId, RequestId, Resumed},
    settings::Settings,
    staged::Minting,
};

/// A snapshot whose receipt the host holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) epoch: Epoch,
    pub(super) position: usize,
}

pub(super) struct Client {
    pub(super) incarnation: u32,
    pub(super) machine: Machine,
    pub(super) minting: Minting,
    pub(super) handler: Handler,
    /// The next record of the source.
    pub(super) position: usize,
    pub(super) epoch: Epoch,
    /// What the sink's part of the budget holds.
    pub(super) held: Limits,
    pub(super) awaiting_room: bool,
    pub(super) cuts: BTreeMap<CutId, Cut>,
    /// Snapshots on their way to the store.
    pub(super) saving: BTreeSet<Epoch>,
    pub(super) commits: BTreeMap<CommitId, Epoch>,
    pub(super) last_commit: Option<Epoch>,
    /// The source's position up to which everything is committed, for a planted bug.
    pub(super) committed: usize,
    pub(super) replies: BTreeSet<ReplyId>,
    /// Requests that wait for an answer: which attempt, and what is in it.
    pub(super) calls: BTreeMap<RequestId, (u64, Vec<usize>)>,
    pub(super) closing: Option<CutId>,
}

impl Client {
    pub(super) fn new(
        incarnation: u32,
        settings: Settings,
        resumed: Option<Resumed>,
        position: usize,
    ) -> Self {
        let epoch = resumed
            .as_ref()
            .map_or(Epoch::default(), |resumed| resumed.epoch);
        let (machine, commit) = Machine::new(settings, resumed);
        machine.check_invariants();
        Self {
            incarnation,
            held: machine.held(),
            machine,
            minting: Minting::new(incarnation.into()),
            handler: Handler::default(),
            position,
            epoch,
            awaiting_room: false,
            cuts: BTreeMap::new(),
            saving: BTreeSet::new(),
            commits: commit.into_iter().map(|commit| (commit, epoch)).collect(),
            last_commit: None,
            committed: 0,
            replies: BTreeSet::new(),
            calls: BTreeMap::new(),
            closing: None,
        }
    }

    /// Whether nothing is under way and nothing will be.
    pub(super) fn is_at_rest(&mut self, now: Instant) -> bool {
        self.machine.held() == Limits::default()
            && self.cuts.is_empty()
            && self.saving.is_empty()
            && self.commits.is_empty()
            && self.handler.undecided.is_empty()
            && self.handler.flushing.is_none()
            && self.machine.poll_effect(now).is_none()
    }
}
