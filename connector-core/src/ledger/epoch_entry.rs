//! One sealed or settling epoch.

use super::{CommitId, Place, Segment, Standing};
use crate::{Committed, Epoch};

#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    Sealed,
    Settling(CommitId),
}

#[derive(Debug)]
pub(super) struct EpochEntry<T> {
    pub(super) epoch: Epoch,
    /// Ascending by id; none is empty.
    pub(super) segments: Vec<Segment<T>>,
    pub(super) tally: Committed,
    pub(super) stage: Stage,
}

impl<T> EpochEntry<T> {
    pub(super) fn left(&self) -> usize {
        self.segments.iter().map(Segment::left).sum()
    }

    pub(super) fn is_sealed(&self) -> bool {
        matches!(self.stage, Stage::Sealed)
    }

    /// Committed, and every item has a verdict.
    pub(super) fn is_settled(&self) -> bool {
        !self.is_sealed() && self.segments.is_empty()
    }

    pub(super) fn standing(&self) -> Standing {
        match self.stage {
            Stage::Sealed => Standing::Sealed(self.epoch),
            Stage::Settling(_) => Standing::Settling(self.epoch),
        }
    }

    pub(super) fn segment(&self, id: u64) -> Option<&Segment<T>> {
        let at = self.segments.binary_search_by_key(&id, Segment::id).ok()?;
        self.segments.get(at)
    }

    pub(super) fn get(&self, place: Place) -> Option<&T> {
        self.segment(place.segment())?.get(place.index())
    }

    /// Takes an item out, and drops its segment when it was the last.
    pub(super) fn remove(&mut self, place: Place) -> bool {
        self.remove_in(place, |segment| segment.remove(place.index()))
    }

    /// Takes a run of items out, all of it or nothing, and its segment when those were the last.
    pub(super) fn remove_run(&mut self, first: Place, count: usize) -> bool {
        let run = first.index()..first.index() + count;
        self.remove_in(first, |segment| segment.remove_run(run))
    }

    fn remove_in(&mut self, place: Place, remove: impl FnOnce(&mut Segment<T>) -> bool) -> bool {
        let Ok(at) = self
            .segments
            .binary_search_by_key(&place.segment(), Segment::id)
        else {
            return false;
        };
        if !remove(&mut self.segments[at]) {
            return false;
        }
        if self.segments[at].left() == 0 {
            self.segments.remove(at);
        }
        true
    }

    /// Puts an older epoch's items in front of this one's.
    pub(super) fn take_in_front(&mut self, mut older: Self) {
        older.segments.append(&mut self.segments);
        self.segments = older.segments;
        self.tally += older.tally;
    }

    /// Checks the epoch, and answers its last segment, all of which come after `last`.
    pub(super) fn check_invariants(&self, mut last: Option<u64>) -> Option<u64> {
        assert!(
            !self.is_settled(),
            "an epoch whose items all have a verdict is retired"
        );
        for segment in &self.segments {
            assert!(last < Some(segment.id()), "segments ascend");
            last = Some(segment.id());
            segment.check_invariants();
        }
        last
    }
}
