//! The items of one epoch: an immutable list, and a bit per item for "has a verdict".

use std::{ops::Range, sync::Arc};

use super::Place;

/// A growing set of small numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(super) fn get(&self, index: usize) -> bool {
        self.words
            .get(index / 64)
            .is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Sets a bit; answers whether it was clear.
    pub(super) fn set(&mut self, index: usize) -> bool {
        let word = index / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (index % 64);
        let was_clear = self.words[word] & bit == 0;
        self.words[word] |= bit;
        was_clear
    }

    /// Sets the bits of a run, all of which must be clear; else changes nothing and answers false.
    pub(super) fn set_run(&mut self, run: Range<usize>) -> bool {
        if run.is_empty() {
            return true;
        }
        if !self.is_clear(run.clone()) {
            return false;
        }
        let last = (run.end - 1) / 64;
        if last >= self.words.len() {
            self.words.resize(last + 1, 0);
        }
        for (word, mask) in masks(run) {
            self.words[word] |= mask;
        }
        true
    }

    /// Whether no bit of a run is set.
    pub(super) fn is_clear(&self, run: Range<usize>) -> bool {
        masks(run).all(|(word, mask)| self.words.get(word).is_none_or(|word| word & mask == 0))
    }

    pub(super) fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }
}

/// The words that a run of bits lies in, each with the bits of the run.
fn masks(run: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    (run.start / 64..run.end.div_ceil(64)).map(move |word| {
        let from = run.start.saturating_sub(word * 64);
        let beyond = (word * 64 + 64).saturating_sub(run.end);
        (word, u64::MAX << from & u64::MAX >> beyond)
    })
}

/// Items that were added between two cuts.
#[derive(Debug)]
pub struct Segment<T> {
    id: u64,
    items: Arc<Vec<T>>,
    gone: Bits,
    left: usize,
}

impl<T> Segment<T> {
    pub(super) fn new(id: u64, mut items: Vec<T>, gone: Bits, left: usize) -> Self {
        // It never grows again, and may be held for a whole checkpoint interval.
        items.shrink_to_fit();
        Self {
            id,
            items: Arc::new(items),
            gone,
            left,
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.items.get(index).filter(|_| !self.gone.get(index))
    }

    /// The items of a run, while none of them has a verdict.
    pub(super) fn run(&self, run: Range<usize>) -> Option<&[T]> {
        let items = self.items.get(run.clone())?;
        self.gone.is_clear(run).then_some(items)
    }

    /// Takes a run out, all of it or nothing.
    pub(super) fn remove_run(&mut self, run: Range<usize>) -> bool {
        let count = run.len();
        if run.end > self.items.len() || !self.gone.set_run(run) {
            return false;
        }
        self.left -= count;
        true
    }

    pub(super) fn remove(&mut self, index: usize) -> bool {
        if index >= self.items.len() || !self.gone.set(index) {
            return false;
        }
        self.left -= 1;
        true
    }

    pub(super) fn view(&self) -> SegmentView<T> {
        SegmentView {
            id: self.id,
            items: Arc::clone(&self.items),
            gone: self.gone.clone(),
            left: self.left,
        }
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.left > 0, "an empty segment is dropped");
        assert_eq!(
            self.left,
            self.items.len() - self.gone.count(),
            "items are counted"
        );
    }
}

/// A segment as it stood when it was looked at. Shares the items; later verdicts do not show.
#[derive(Debug)]
pub struct SegmentView<T> {
    id: u64,
    items: Arc<Vec<T>>,
    gone: Bits,
    left: usize,
}

impl<T> SegmentView<T> {
    /// The items that had no verdict, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &T)> + '_ {
        let mut cursor = 0;
        std::iter::from_fn(move || self.next_from(&mut cursor))
    }

    /// The next item that had no verdict, from `cursor` on, and moves the cursor behind it.
    ///
    /// For connectors that take a large segment apart a part at a time, without a borrow in
    /// between. Start with a cursor of zero.
    pub fn next_from(&self, cursor: &mut u32) -> Option<(Place, &T)> {
        loop {
            let index = u16::try_from(*cursor).ok()?;
            let item = self.items.get(usize::from(index))?;
            *cursor += 1;
            if !self.gone.get(usize::from(index)) {
                return Some((Place::new(self.id, index), item));
            }
        }
    }

    /// How many items from `first` on had no verdict, at most `most`, if `first` is the next item
    /// that [`next_from`](Self::next_from) would give. Moves the cursor behind them.
    ///
    /// For connectors that know where items stand, and take many at once.
    pub fn next_run(&self, cursor: &mut u32, first: Place, most: usize) -> usize {
        let start = first.index();
        let from = *cursor as usize;
        let next = first.segment() == self.id
            && from <= start
            && (from..start).all(|index| self.gone.get(index));
        if !next {
            return 0;
        }
        let end = self.items.len().min(start.saturating_add(most));
        let run = (start..end).take_while(|index| !self.gone.get(*index));
        let count = run.count();
        if let Ok(moved) = u32::try_from(start + count)
            && count > 0
        {
            *cursor = moved;
        }
        count
    }

    /// The number of items that had no verdict.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether every item had a verdict.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<T> Clone for SegmentView<T> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            items: Arc::clone(&self.items),
            gone: self.gone.clone(),
            left: self.left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_a_run_take_the_words_that_it_lies_in_and_no_more() {
        for (run, words) in [(0..1, 1), (0..64, 1), (3..65, 2), (128..192, 3)] {
            let mut bits = Bits::default();
            assert!(bits.is_clear(run.clone()) && bits.set_run(run.clone()));
            assert_eq!((bits.count(), bits.words.len()), (run.len(), words));
            assert!(!bits.set_run(run));
        }
    }
}
