//! The epoch that is not cut yet.

use super::{Outcome, Place, Segment, segment::Bits};
use crate::Committed;

/// Items of the open epoch in one segment. A sink gives items their verdict before the cut, and its
/// host may never take a checkpoint at all: segments whose items all have one are dropped, so that
/// the open epoch does not grow with everything it ever held.
const MAX_OPEN_ITEMS: usize = Place::MAX_SEGMENT;

#[derive(Debug)]
pub(super) struct OpenEpoch<T> {
    /// Older than `items`, ascending: full segments, and those folded back from aborted epochs.
    closed: Vec<Segment<T>>,
    /// The id that `items` will have as a segment.
    segment: u64,
    items: Vec<T>,
    gone: Bits,
    left: usize,
    /// Verdicts that its items have already, as in a flushing sink.
    tally: Committed,
}

impl<T> OpenEpoch<T> {
    pub(super) fn new() -> Self {
        Self {
            closed: Vec::new(),
            segment: 0,
            items: Vec::new(),
            gone: Bits::default(),
            left: 0,
            tally: Committed::default(),
        }
    }

    pub(super) fn add(&mut self, item: T) -> Place {
        if self.items.len() >= MAX_OPEN_ITEMS {
            self.close_segment();
        }
        let index = u16::try_from(self.items.len()).expect("a segment has 65,536 places");
        self.items.push(item);
        self.left += 1;
        Place::new(self.segment, index)
    }

    /// Adds items until the segment is full. Answers where the first of them is, and how many they
    /// are.
    pub(super) fn extend(&mut self, items: &mut impl Iterator<Item = T>) -> (Place, usize) {
        if self.items.len() >= MAX_OPEN_ITEMS {
            self.close_segment();
        }
        let before = self.items.len();
        let index = u16::try_from(before).expect("a segment has 65,536 places");
        self.items.extend(items.take(MAX_OPEN_ITEMS - before));
        let added = self.items.len() - before;
        self.left += added;
        (Place::new(self.segment, index), added)
    }

    /// The items of a run from a place on, while none of them has a verdict.
    pub(super) fn run(&self, first: Place, count: usize) -> Option<&[T]> {
        let run = first.index()..first.index() + count;
        if first.segment() == self.segment {
            let items = self.items.get(run.clone())?;
            return self.gone.is_clear(run).then_some(items);
        }
        self.closed.get(self.closed_at(first)?)?.run(run)
    }

    /// Takes everything out, for the epoch that is sealed. Leaves the next one open.
    pub(super) fn seal(&mut self) -> (Vec<Segment<T>>, Committed) {
        self.close_segment();
        (
            std::mem::take(&mut self.closed),
            std::mem::take(&mut self.tally),
        )
    }

    /// Puts an aborted epoch's items in front.
    ///
    /// What was folded before came from newer epochs: an older one would have folded into the
    /// aborted one.
    pub(super) fn take_in_front(&mut self, mut segments: Vec<Segment<T>>, tally: Committed) {
        segments.append(&mut self.closed);
        self.closed = segments;
        self.tally += tally;
    }

    /// Whether a place is, or was, one of this epoch's.
    pub(super) fn owns(&self, place: Place) -> bool {
        self.holds_segment(place.segment())
    }

    pub(super) fn get(&self, place: Place) -> Option<&T> {
        if place.segment() == self.segment {
            let item = self.items.get(place.index())?;
            return (!self.gone.get(place.index())).then_some(item);
        }
        self.closed.get(self.closed_at(place)?)?.get(place.index())
    }

    /// Takes an item out; answers the epoch's tally if the item was there.
    pub(super) fn remove(&mut self, place: Place) -> Option<&mut Committed> {
        if place.segment() == self.segment {
            if place.index() >= self.items.len() || !self.gone.set(place.index()) {
                return None;
            }
            self.left -= 1;
            return Some(&mut self.tally);
        }
        let at = self.closed_at(place)?;
        if !self.closed[at].remove(place.index()) {
            return None;
        }
        if self.closed[at].left() == 0 {
            self.closed.remove(at);
        }
        Some(&mut self.tally)
    }

    /// Takes an item out that is in the newest segment, without counting its verdict. Answers
    /// whether it was there.
    #[inline]
    pub(super) fn remove_recent(&mut self, place: Place) -> bool {
        let there = place.segment() == self.segment
            && place.index() < self.items.len()
            && self.gone.set(place.index());
        self.left -= usize::from(there);
        there
    }

    /// Counts the verdict of so many items.
    pub(super) fn count(&mut self, outcome: Outcome, items: usize) {
        outcome.count_in(&mut self.tally, items);
    }

    pub(super) fn holds_segment(&self, segment: u64) -> bool {
        segment == self.segment
            || self
                .closed
                .binary_search_by_key(&segment, Segment::id)
                .is_ok()
    }

    pub(super) fn left(&self) -> usize {
        self.left + self.closed.iter().map(Segment::left).sum::<usize>()
    }

    /// Checks the counts, and that all of it comes after the segment `last`.
    pub(super) fn check_invariants(&self, mut last: Option<u64>) {
        for segment in &self.closed {
            assert!(
                last < Some(segment.id()),
                "open segments come after sealed ones"
            );
            last = Some(segment.id());
            segment.check_invariants();
        }
        assert!(last < Some(self.segment), "the open segment is the newest");
        assert_eq!(
            self.left,
            self.items.len() - self.gone.count(),
            "open items are counted"
        );
    }

    fn closed_at(&self, place: Place) -> Option<usize> {
        self.closed
            .binary_search_by_key(&place.segment(), Segment::id)
            .ok()
    }

    /// Starts a new segment; the items of the old one that have no verdict stay open.
    fn close_segment(&mut self) {
        let items = std::mem::take(&mut self.items);
        let gone = std::mem::take(&mut self.gone);
        let left = std::mem::take(&mut self.left);
        if left > 0 {
            self.closed
                .push(Segment::new(self.segment, items, gone, left));
        }
        self.segment += 1;
    }
}
