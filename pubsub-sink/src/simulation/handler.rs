//! A failure handler whose every answer takes time, and whose flush may fail.

use std::collections::BTreeSet;

use connector_core::Verdict;

use crate::machine::RejectionId;

/// What the handler of one incarnation holds in memory.
#[derive(Default)]
pub(super) struct Handler {
    /// Without a verdict.
    pub(super) undecided: BTreeSet<RejectionId>,
    /// Taken over since the incarnation began.
    taken: BTreeSet<usize>,
    /// What the flush that runs was called after.
    pub(super) flushing: Option<BTreeSet<usize>>,
}

impl Handler {
    pub(super) fn decide(&mut self, id: RejectionId, number: usize, verdict: Verdict) -> bool {
        if verdict == Verdict::Drop {
            self.taken.insert(number);
        }
        self.undecided.remove(&id)
    }

    pub(super) fn begin_flush(&mut self) -> bool {
        self.flushing.replace(self.taken.clone()).is_none()
    }
}
