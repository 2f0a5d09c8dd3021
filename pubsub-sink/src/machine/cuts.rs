//! Waits for everything before a cut: snapshots, flushes, and the last one, close.

use std::collections::VecDeque;

use connector_core::Epoch;

use super::CutId;

/// What a cut waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Every record of the epoch and of those before it.
    Snapshot(Epoch),
    /// Every record.
    Flush,
    /// Every record; the sink ends with it.
    Close,
}

/// Cuts that wait.
///
/// A cut is complete when its records have a verdict *and* a flush of the failure handler that was
/// called after that succeeded: a record handed to the handler is only safe with the flush.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    next: u64,
    waiting: VecDeque<Waiting>,
    /// Whether the handler is flushing.
    flushing: bool,
}

#[derive(Debug)]
struct Waiting {
    id: CutId,
    cut: Cut,
    /// Whether the flush that is running was called after the last record of the cut.
    covered: bool,
}

impl Cuts {
    pub(super) fn add(&mut self, cut: Cut) -> CutId {
        let id = CutId(self.next);
        self.next += 1;
        self.waiting.push_back(Waiting {
            id,
            cut,
            covered: false,
        });
        id
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Begins a flush of the handler, if a cut needs one and none is running.
    pub(super) fn begin_flush(&mut self, drained: impl Fn(Cut) -> bool) -> bool {
        if self.flushing {
            return false;
        }
        for waiting in &mut self.waiting {
            waiting.covered = drained(waiting.cut);
            self.flushing |= waiting.covered;
        }
        self.flushing
    }

    /// The flush ended: takes out the cuts it covered.
    pub(super) fn end_flush(&mut self) -> Vec<(CutId, Cut)> {
        self.flushing = false;
        let mut covered = Vec::new();
        self.waiting.retain(|waiting| {
            if waiting.covered {
                covered.push((waiting.id, waiting.cut));
            }
            !waiting.covered
        });
        covered
    }

    /// Gives up the snapshot of an epoch.
    pub(super) fn abort(&mut self, epoch: Epoch) -> Option<CutId> {
        let at = self
            .waiting
            .iter()
            .position(|waiting| waiting.cut == Cut::Snapshot(epoch))?;
        self.waiting.remove(at).map(|waiting| waiting.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_only_cuts_that_were_drained_when_it_began() {
        let mut cuts = Cuts::default();
        let first = cuts.add(Cut::Snapshot(Epoch::new(1)));
        assert!(!cuts.begin_flush(|_| false), "nothing is drained yet");
        assert!(cuts.begin_flush(|_| true));
        let second = cuts.add(Cut::Snapshot(Epoch::new(2)));
        assert!(!cuts.begin_flush(|_| true), "one flush at a time");
        assert_eq!(cuts.end_flush(), [(first, Cut::Snapshot(Epoch::new(1)))]);
        assert!(cuts.begin_flush(|_| true));
        assert_eq!(cuts.end_flush(), [(second, Cut::Snapshot(Epoch::new(2)))]);
        assert!(cuts.is_empty());
    }

    #[test]
    fn an_aborted_snapshot_waits_no_more_even_while_its_flush_runs() {
        let mut cuts = Cuts::default();
        let id = cuts.add(Cut::Snapshot(Epoch::new(1)));
        assert!(cuts.begin_flush(|_| true));
        assert_eq!(cuts.abort(Epoch::new(1)), Some(id));
        assert_eq!(cuts.abort(Epoch::new(1)), None);
        assert!(cuts.end_flush().is_empty());
    }
}
