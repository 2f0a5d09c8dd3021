//! Many items at once, which lie one after the other.
//!
//! What arrives together is mostly handed out, committed and confirmed together: connectors with
//! very many items say so, and pay per run instead of per item.

use super::{Ledger, Outcome, Place};

impl<T> Ledger<T> {
    /// Adds items to the open epoch until one of its segments is full.
    ///
    /// Answers the place of the first and how many were added; each lies one
    /// [after](Place::after) the one before. To be called again while there are more.
    pub fn extend(&mut self, items: &mut impl Iterator<Item = T>) -> (Place, usize) {
        self.open.extend(items)
    }

    /// Gives items their verdict, as [`settle`](Self::settle) does for each.
    pub fn settle_all(&mut self, places: impl IntoIterator<Item = Place>, outcome: Outcome) {
        let mut open = 0;
        for place in places {
            if self.open.remove_recent(place) {
                open += 1;
            } else {
                self.remove(place, Some(outcome));
            }
        }
        self.open.count(outcome, open);
    }

    /// Gives `count` items of a committed epoch their verdict, which lie one after the other from
    /// `first` on.
    ///
    /// Answers false, and changes nothing, when one of them has a verdict already or when they are
    /// not all items of one segment of a committed epoch: then they are to be settled one by one.
    pub fn settle_run(&mut self, first: Place, count: usize, outcome: Outcome) -> bool {
        let mut epochs = self.epochs.iter_mut();
        let Some(entry) = epochs.find(|entry| entry.segment(first.segment()).is_some()) else {
            return false;
        };
        if entry.is_sealed() || !entry.remove_run(first, count) {
            return false;
        }
        outcome.count_in(&mut entry.tally, count);
        if entry.is_settled() {
            self.retire();
        }
        true
    }

    /// The `count` items from `first` on, if they lie in one segment and none has a verdict.
    #[must_use]
    pub fn run(&self, first: Place, count: usize) -> Option<&[T]> {
        if self.open.owns(first) {
            return self.open.run(first, count);
        }
        let segment = self.entry_of(first)?.segment(first.segment())?;
        segment.run(first.index()..first.index() + count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Epoch, ledger::SegmentView};

    /// A ledger that is told of runs, and its twin that is told of one item after the other.
    #[derive(Default)]
    struct Twins {
        runs: Ledger<u64>,
        ones: Ledger<u64>,
        places: Vec<Place>,
        sealed: u64,
        released: Vec<SegmentView<u64>>,
    }

    impl Twins {
        fn add(&mut self, count: usize) {
            let next = self.places.len() as u64;
            let mut items = next..next + count as u64;
            let mut added = 0;
            while added < count {
                let (first, more) = self.runs.extend(&mut items);
                self.places.extend((0..more).map(|at| first.after(at)));
                added += more;
            }
            for item in next..next + count as u64 {
                assert_eq!(
                    self.ones.add(item),
                    self.places[usize::try_from(item).unwrap()]
                );
            }
        }

        fn settle(&mut self, at: usize, count: usize) {
            let Some(first) = self.places.get(at).copied() else {
                return;
            };
            let items = self.runs.run(first, count).map(<[u64]>::to_vec);
            let places = || (0..count).map(|at| first.after(at));
            let each: Option<Vec<u64>> = places().map(|it| self.ones.get(it).copied()).collect();
            assert!(items.is_none() || items == each);
            let settling =
                |it| matches!(self.ones.standing(it), crate::ledger::Standing::Settling(_));
            let all_settling = places().all(settling);
            let settled = self.runs.settle_run(first, count, Outcome::Settled);
            assert_eq!(settled, all_settling && items.is_some());
            if settled {
                for place in places() {
                    self.ones.settle(place, Outcome::Settled);
                }
            }
        }

        fn settle_one(&mut self, at: usize) {
            if let Some(place) = self.places.get(at) {
                let standing = self.runs.settle(*place, Outcome::Lapsed);
                assert_eq!(standing, self.ones.settle(*place, Outcome::Lapsed));
            }
        }

        fn seal(&mut self) {
            self.sealed += 1;
            let epoch = Epoch::new(self.sealed);
            assert_eq!(self.runs.seal(epoch).is_ok(), self.ones.seal(epoch).is_ok());
        }

        fn commit(&mut self, back: u64) {
            let epoch = Epoch::new(self.sealed.saturating_sub(back));
            if let (Ok(commit), Ok(_)) = (self.runs.commit(epoch), self.ones.commit(epoch)) {
                self.released.extend(commit.released);
            }
        }

        fn compare(&mut self) {
            self.runs.check_invariants();
            assert_eq!(self.runs.len(), self.ones.len());
            assert_eq!(self.runs.poll_committed(), self.ones.poll_committed());
            for place in &self.places {
                assert_eq!(self.runs.standing(*place), self.ones.standing(*place));
                assert_eq!(self.runs.get(*place), self.ones.get(*place));
            }
        }
    }

    /// Takes a view apart, in runs where that is possible.
    fn taken(view: &SegmentView<u64>, most: usize) -> Vec<Place> {
        let (mut cursor, mut taken) = (0, Vec::new());
        while let Some(expected) = view.iter().nth(taken.len()).map(|(place, _)| place) {
            let count = view.next_run(&mut cursor, expected, most);
            taken.extend((0..count).map(|at| expected.after(at)));
            if let Some((place, _)) = view.next_from(&mut cursor) {
                taken.push(place);
            }
        }
        taken
    }

    proptest! {
        #[test]
        fn a_run_is_its_items_one_by_one(
            steps in proptest::collection::vec((0u8..7, 0usize..300, 1usize..140), 1..40),
        ) {
            let mut twins = Twins::default();
            for (step, at, count) in steps {
                match step {
                    0 | 1 => twins.add(count),
                    2 => twins.seal(),
                    3 => twins.commit(at as u64 % 3),
                    4 | 5 => twins.settle(at, count),
                    _ => twins.settle_one(at),
                }
                twins.compare();
            }
            for view in &twins.released {
                let places: Vec<Place> = view.iter().map(|(place, _)| place).collect();
                for most in [1, 7, 1000] {
                    prop_assert_eq!(taken(view, most), places.clone());
                }
            }
        }
    }

    #[test]
    fn a_run_that_does_not_fit_goes_on_in_the_next_segment() {
        let mut twins = Twins::default();
        twins.add(Place::MAX_SEGMENT + 10);
        let last = twins.places[Place::MAX_SEGMENT - 1];
        assert_eq!(twins.runs.run(last, 2), None, "of two segments");
        twins.seal();
        twins.commit(0);
        assert!(!twins.runs.settle_run(last, 2, Outcome::Settled));
        assert!(twins.runs.settle_run(last, 1, Outcome::Settled));
        assert!(twins.runs.settle_run(last.after(1), 10, Outcome::Settled));
        assert_eq!(twins.runs.len(), Place::MAX_SEGMENT - 1);
    }

    #[test]
    fn items_for_which_a_segment_has_no_room_left_go_on_in_the_next_one() {
        let mut twins = Twins::default();
        twins.add(10);
        twins.add(Place::MAX_SEGMENT);
        let segments = [0, Place::MAX_SEGMENT - 1, Place::MAX_SEGMENT];
        let segments = segments.map(|at| twins.places[at].segment());
        assert!(segments[0] == segments[1] && segments[1] != segments[2]);
        twins.compare();
    }

    #[test]
    fn a_run_of_open_items_is_one_until_one_of_them_has_its_verdict() {
        let mut twins = Twins::default();
        twins.add(10);
        let first = twins.places[2];
        assert_eq!(twins.runs.run(first, 3), Some(&[2, 3, 4][..]));
        assert_eq!(twins.runs.run(twins.places[8], 3), None, "they are two");
        twins.settle_one(4);
        assert_eq!(twins.runs.run(first, 3), None);
        assert_eq!(twins.runs.run(first, 2), Some(&[2, 3][..]));
    }

    #[test]
    fn what_is_left_of_a_view_is_taken_run_by_run() {
        let mut twins = Twins::default();
        twins.add(11);
        for at in [4, 8, 9] {
            twins.settle_one(at);
        }
        twins.seal();
        twins.commit(0);
        let (view, mut cursor) = (&twins.released[0], 0);
        for (at, most, count, moved) in [
            (0, 3, 3, 3),
            // It lies behind the cursor, or something lies between.
            (0, 3, 0, 3),
            (5, 3, 0, 3),
            (3, 9, 1, 4),
            (5, 9, 3, 8),
            // It has its verdict.
            (9, 9, 0, 8),
            (10, 9, 1, 11),
        ] {
            assert_eq!(view.next_run(&mut cursor, twins.places[at], most), count);
            assert_eq!(cursor, moved, "{at}");
        }
    }

    #[test]
    fn a_place_behind_the_last_item_is_nobodys_until_there_is_one() {
        let mut ledger = Ledger::new();
        let last = ledger.add(1);
        ledger.settle_all([last.after(1), last.after(2)], Outcome::Settled);
        ledger.check_invariants();
        assert_eq!(ledger.len(), 1);
        let next = [ledger.add(2), ledger.add(3)];
        assert_eq!(
            next.map(|place| ledger.get(place).copied()),
            [Some(2), Some(3)]
        );
    }
}
