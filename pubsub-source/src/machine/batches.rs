//! The batches that hold deliveries, by number.

use std::collections::VecDeque;

use super::batch::Batch;

/// Batches of one page: as many as make a page that one batch keeps alive for long a small price.
const PAGE: usize = 64;

#[derive(Debug)]
struct Page {
    batches: [Option<Box<Batch>>; PAGE],
    held: usize,
}

impl Page {
    fn new() -> Self {
        Self {
            batches: [const { None }; PAGE],
            held: 0,
        }
    }
}

/// The batches that hold deliveries.
///
/// Numbers are given out in order and looked up several times in each delivery's life, so a look-up
/// is two steps into arrays and not a walk down a tree. One batch that is held for an hour while a
/// million others come and go costs a pointer per page of them.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// The first one holds something; others may be gone.
    pages: VecDeque<Option<Box<Page>>>,
    /// Which page the first one is.
    first: usize,
}

impl Batches {
    /// Takes a batch in, whose number is above that of every one before.
    pub(super) fn insert(&mut self, number: u64, batch: Box<Batch>) {
        let (page, at) = split(number);
        if self.pages.is_empty() {
            self.first = page;
        }
        debug_assert!(page >= self.first, "numbers go up");
        let page = page - self.first;
        while self.pages.len() <= page {
            self.pages.push_back(None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new(Page::new()));
        debug_assert!(page.batches[at].is_none(), "a number is given out once");
        page.held += 1;
        page.batches[at] = Some(batch);
    }

    pub(super) fn get(&self, number: u64) -> Option<&Batch> {
        let (page, at) = split(number);
        let page = self.pages.get(page.checked_sub(self.first)?)?.as_ref()?;
        page.batches[at].as_deref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Batch> {
        let (page, at) = split(number);
        let page = self
            .pages
            .get_mut(page.checked_sub(self.first)?)?
            .as_mut()?;
        page.batches[at].as_deref_mut()
    }

    /// Drops a batch, if it is held.
    pub(super) fn remove(&mut self, number: u64) {
        let (page, at) = split(number);
        let Some(slot) = page
            .checked_sub(self.first)
            .and_then(|page| self.pages.get_mut(page))
        else {
            return;
        };
        if let Some(page) = slot
            && page.batches[at].take().is_some()
        {
            page.held -= 1;
            if page.held == 0 {
                *slot = None;
            }
        }
        while let Some(None) = self.pages.front() {
            self.pages.pop_front();
            self.first += 1;
        }
    }

    /// The batches from a number on, oldest first.
    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = (u64, &Batch)> + '_ {
        let (page, at) = split(number);
        let (skipped, at) = match page.checked_sub(self.first) {
            Some(skipped) => (skipped, at),
            None => (0, 0),
        };
        let pages = (self.first..).zip(&self.pages).skip(skipped);
        let whole = pages.filter_map(|(number, page)| Some((number, page.as_deref()?)));
        whole
            .flat_map(|(number, page)| {
                let first = number as u64 * PAGE as u64;
                let numbered = (first..).zip(&page.batches);
                numbered.filter_map(|(number, batch)| Some((number, batch.as_deref()?)))
            })
            // Of the first page, what lies before the number.
            .skip_while(move |(number, _)| {
                let before = split(*number);
                before.0 == page && before.1 < at
            })
    }

    /// All batches, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Batch)> + '_ {
        self.from(0)
    }
}

/// The page of a number, and its place there.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a batch's number has 40 bits, and a page's 34: beyond memory where usize has 32"
)]
const fn split(number: u64) -> (usize, usize) {
    ((number / PAGE as u64) as usize, number as usize % PAGE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::machine::{AckIds, MessageKey};

    fn batch(deliveries: usize) -> Box<Batch> {
        let mut ack_ids = AckIds::default();
        for _ in 0..deliveries {
            assert!(ack_ids.push(b"a"));
        }
        let keys = (0..deliveries as u64).map(MessageKey::Number).collect();
        Box::new(Batch::new(crate::driver::now(), 0, keys, ack_ids))
    }

    proptest! {
        #[test]
        fn batches_are_found_as_in_a_map(
            steps in proptest::collection::vec((0u8..4, 0u64..400), 1..200),
        ) {
            let mut batches = Batches::default();
            let mut model = BTreeMap::new();
            let mut next = 0;
            for (step, number) in steps {
                match step {
                    // With gaps, as batches without a new delivery leave.
                    0 | 1 => {
                        next += 1 + number % 90;
                        batches.insert(next, batch(step.into()));
                        model.insert(next, usize::from(step));
                    }
                    2 => {
                        let number = number % (next + 2);
                        batches.remove(number);
                        model.remove(&number);
                    }
                    _ => {
                        let oldest = model.keys().next().copied();
                        let number = oldest.unwrap_or(number);
                        batches.remove(number);
                        model.remove(&number);
                    }
                }
                let number = number % (next + 2);
                prop_assert_eq!(batches.get(number).map(Batch::len), model.get(&number).copied());
                let mutable = batches.get_mut(number).map(|batch| batch.len());
                prop_assert_eq!(mutable, model.get(&number).copied());
                for from in [0, number, next, next + 1000] {
                    let found: Vec<_> = batches.from(from).map(|(at, one)| (at, one.len())).collect();
                    let wanted: Vec<_> = model.range(from..).map(|(at, one)| (*at, *one)).collect();
                    prop_assert_eq!(found, wanted);
                }
                prop_assert!(batches.pages.front().is_none_or(Option::is_some));
            }
        }
    }

    #[test]
    fn pages_of_what_is_gone_are_given_back() {
        let mut batches = Batches::default();
        for number in 0..10_000 {
            batches.insert(number, batch(0));
        }
        for number in 1..10_000 {
            batches.remove(number);
        }
        assert_eq!(batches.pages.iter().flatten().count(), 1);
        batches.remove(0);
        assert!(batches.pages.is_empty());
    }
}
