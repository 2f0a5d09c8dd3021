//! Commits, and those that wait for verdicts.

use std::collections::VecDeque;

use super::SegmentView;
use crate::{Committed, Epoch};

/// Names one call of [`Ledger::commit`](super::Ledger::commit).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(u64);

/// What a commit releases: the segments that may now leave, oldest epoch first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Commit<T> {
    /// Names the commit in [`Ledger::poll_committed`](super::Ledger::poll_committed).
    pub id: CommitId,
    /// What may leave now, in order. Empty when everything was released by an earlier commit.
    pub released: Vec<SegmentView<T>>,
}

#[derive(Debug)]
struct Waiting {
    id: CommitId,
    upto: Epoch,
    tally: Committed,
}

/// Commits without a report, in the order of their calls.
#[derive(Debug, Default)]
pub(super) struct Commits {
    waiting: VecDeque<Waiting>,
    next: u64,
}

impl Commits {
    pub(super) fn begin(&mut self, upto: Epoch) -> CommitId {
        let id = CommitId(self.next);
        self.next += 1;
        self.waiting.push_back(Waiting {
            id,
            upto,
            tally: Committed::default(),
        });
        id
    }

    /// Credits the commit that released an epoch with the verdicts of its items.
    pub(super) fn credit(&mut self, id: CommitId, tally: Committed) {
        if let Some(commit) = self.waiting.iter_mut().find(|commit| commit.id == id) {
            commit.tally += tally;
        }
    }

    /// The first commit that no unsettled epoch stands in the way of.
    pub(super) fn report(
        &mut self,
        unsettled_from: Option<Epoch>,
    ) -> Option<(CommitId, Committed)> {
        let at = self
            .waiting
            .iter()
            .position(|commit| unsettled_from.is_none_or(|epoch| commit.upto < epoch))?;
        let commit = self.waiting.remove(at)?;
        Some((commit.id, commit.tally))
    }

    pub(super) fn waits(&self, id: CommitId) -> bool {
        self.waiting.iter().any(|commit| commit.id == id)
    }
}
