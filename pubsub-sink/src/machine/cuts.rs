//! Waits for everything before a cut: snapshots, flushes, and the last one, close.

use std::collections::VecDeque;

use connector_core::Epoch;

use super::CutId;
use crate::state::Named;

/// What a cut waits for. In a staged sink a record that is staged is not waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Every record of the epoch and of those before it.
    Snapshot(Epoch),
    /// Every record.
    Flush,
    /// Every record, in a staged sink every committed one; the sink ends with it.
    Close,
}

/// A cut that a flush of the handler completed.
#[derive(Debug)]
pub(super) struct Covered {
    pub(super) id: CutId,
    pub(super) cut: Cut,
    /// What the state of a snapshot names.
    pub(super) named: Named,
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
    /// Rejected records whose verdict stands in its way: those that came before this one.
    behind: u64,
    named: Named,
    /// Whether the flush that is running was called after the last record of the cut.
    covered: bool,
}

impl Cuts {
    /// Adds a cut behind so many rejected records.
    pub(super) fn add(&mut self, cut: Cut, behind: u64, named: Named) -> CutId {
        let id = CutId(self.next);
        self.next += 1;
        self.waiting.push_back(Waiting {
            id,
            cut,
            behind,
            named,
            covered: false,
        });
        id
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Begins a flush of the handler, if a cut needs one, or it is `wanted`, and none is running.
    pub(super) fn begin_flush(&mut self, wanted: bool, drained: impl Fn(Cut, u64) -> bool) -> bool {
        if self.flushing {
            return false;
        }
        self.flushing = wanted;
        for waiting in &mut self.waiting {
            waiting.covered = drained(waiting.cut, waiting.behind);
            self.flushing |= waiting.covered;
        }
        self.flushing
    }

    /// The flush ended: takes out the cuts it covered.
    pub(super) fn end_flush(&mut self) -> Vec<Covered> {
        self.flushing = false;
        let (covered, waiting): (VecDeque<Waiting>, VecDeque<Waiting>) =
            std::mem::take(&mut self.waiting)
                .into_iter()
                .partition(|waiting| waiting.covered);
        self.waiting = waiting;
        covered
            .into_iter()
            .map(|Waiting { id, cut, named, .. }| Covered { id, cut, named })
            .collect()
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

    fn snapshot(cuts: &mut Cuts, epoch: u64) -> CutId {
        cuts.add(Cut::Snapshot(Epoch::new(epoch)), 0, Named::default())
    }

    fn end_flush(cuts: &mut Cuts) -> Vec<CutId> {
        cuts.end_flush()
            .into_iter()
            .map(|covered| covered.id)
            .collect()
    }

    #[test]
    fn a_flush_covers_only_cuts_that_were_drained_when_it_began() {
        let mut cuts = Cuts::default();
        let first = snapshot(&mut cuts, 1);
        assert!(
            !cuts.begin_flush(false, |_, _| false),
            "nothing is drained yet"
        );
        assert!(cuts.begin_flush(false, |_, _| true));
        let second = snapshot(&mut cuts, 2);
        assert!(!cuts.begin_flush(false, |_, _| true), "one flush at a time");
        assert_eq!(end_flush(&mut cuts), [first]);
        assert!(cuts.begin_flush(false, |_, _| true));
        assert_eq!(end_flush(&mut cuts), [second]);
        assert!(cuts.is_empty());
    }

    #[test]
    fn an_aborted_snapshot_waits_no_more_even_while_its_flush_runs() {
        let mut cuts = Cuts::default();
        let id = snapshot(&mut cuts, 1);
        assert!(cuts.begin_flush(false, |_, _| true));
        assert_eq!(cuts.abort(Epoch::new(1)), Some(id));
        assert_eq!(cuts.abort(Epoch::new(1)), None);
        assert!(cuts.end_flush().is_empty());
    }

    #[test]
    fn a_flush_that_no_cut_needs_runs_when_it_is_wanted() {
        let mut cuts = Cuts::default();
        assert!(cuts.begin_flush(true, |_, _| false));
        assert!(!cuts.begin_flush(true, |_, _| false), "one flush at a time");
        assert!(end_flush(&mut cuts).is_empty());
    }
}
