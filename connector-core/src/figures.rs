//! Numbers of each destination, and of each kind of failure.

use std::collections::BTreeMap;

/// The numbers of the first destinations of a run, and how often attempts failed, by code.
///
/// They outlive the destinations, since counters only go up: of a bounded number of destinations,
/// and of as many codes as there are. `D` is a destination, `S` its numbers, `C` the code of a
/// failure.
#[derive(Debug)]
pub struct Figures<D, S, C> {
    most: usize,
    by_destination: BTreeMap<D, S>,
    failures: BTreeMap<C, u64>,
    /// What was counted since it was last asked for; `None` where nobody ever asks.
    more: Option<BTreeMap<D, S>>,
    more_failures: Option<BTreeMap<C, u64>>,
}

impl<D, S, C> Figures<D, S, C> {
    /// Numbers of at most so many destinations; 0 for none of them.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            by_destination: BTreeMap::new(),
            failures: BTreeMap::new(),
            more: None,
            more_failures: None,
        }
    }

    /// Whether numbers of destinations are kept.
    #[must_use]
    pub const fn are_kept(&self) -> bool {
        self.most > 0
    }

    /// The numbers of each destination that is kept.
    #[must_use]
    pub const fn by_destination(&self) -> &BTreeMap<D, S> {
        &self.by_destination
    }

    /// How often attempts failed, by code.
    #[must_use]
    pub const fn failures(&self) -> &BTreeMap<C, u64> {
        &self.failures
    }
}

impl<D: Ord + Clone, S: Copy + Default, C: Ord + Copy> Figures<D, S, C> {
    /// Counts something of a destination, if its numbers are kept: `count` adds to the numbers it is
    /// given.
    pub fn count(&mut self, destination: &D, count: impl Fn(&mut S)) {
        if let Some(stats) = self.by_destination.get_mut(destination) {
            count(stats);
        } else if self.by_destination.len() < self.most {
            count(self.by_destination.entry(destination.clone()).or_default());
        } else {
            return;
        }
        if let Some(more) = &mut self.more {
            match more.get_mut(destination) {
                Some(stats) => count(stats),
                None => count(more.entry(destination.clone()).or_default()),
            }
        }
    }

    /// An attempt failed, whatever follows from it.
    pub fn failed(&mut self, code: C) {
        *self.failures.entry(code).or_default() += 1;
        if let Some(more) = &mut self.more_failures {
            *more.entry(code).or_default() += 1;
        }
    }

    /// What was counted since the last call, of each destination for which that is anything; since
    /// the beginning the first time.
    ///
    /// Differences and not totals, since counters are published by adding to them: those of several
    /// connectors with one name add up, and one that is built again goes on where the last one was.
    pub fn take_changed(&mut self) -> Vec<(D, S)> {
        let more = self.more.replace(BTreeMap::new());
        let more = more.unwrap_or_else(|| self.by_destination.clone());
        more.into_iter().collect()
    }

    /// The failures since the last call by code, likewise.
    pub fn take_changed_failures(&mut self) -> Vec<(C, u64)> {
        let more = self.more_failures.replace(BTreeMap::new());
        let more = more.unwrap_or_else(|| self.failures.clone());
        more.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_destinations_are_counted_and_no_more_than_asked_for() {
        let mut figures: Figures<&str, u64, u32> = Figures::new(2);
        for destination in ["one", "two", "three", "one"] {
            figures.count(&destination, |number| *number += 1);
        }
        let expected = BTreeMap::from([("one", 2), ("two", 1)]);
        assert_eq!(figures.by_destination(), &expected);
    }

    #[test]
    fn nothing_is_kept_of_destinations_unless_it_is_asked_for() {
        let mut figures: Figures<&str, u64, u32> = Figures::new(0);
        figures.count(&"one", |number| *number += 1);
        assert!(figures.by_destination().is_empty() && !figures.are_kept());
    }

    #[test]
    fn what_was_counted_is_told_once_and_what_comes_later_as_a_difference() {
        let mut figures: Figures<&str, u64, u32> = Figures::new(2);
        figures.count(&"one", |number| *number += 1);
        figures.failed(14);
        figures.failed(14);
        assert_eq!(figures.take_changed(), [("one", 1)]);
        assert!(figures.take_changed().is_empty());
        assert_eq!(figures.take_changed_failures(), [(14, 2)]);
        assert!(figures.take_changed_failures().is_empty());
        for destination in ["one", "two", "one", "three"] {
            figures.count(&destination, |number| *number += 1);
        }
        figures.failed(14);
        figures.failed(4);
        assert_eq!(figures.take_changed(), [("one", 2), ("two", 1)]);
        assert_eq!(figures.take_changed_failures(), [(4, 1), (14, 1)]);
        let all = BTreeMap::from([("one", 3), ("two", 1)]);
        assert_eq!(figures.by_destination(), &all);
        assert_eq!(figures.failures(), &BTreeMap::from([(4, 1), (14, 3)]));
    }
}
