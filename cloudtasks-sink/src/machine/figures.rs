//! Numbers of each queue, and of each kind of failure.

use std::collections::BTreeMap;
#[cfg(feature = "metrics")]
use std::collections::BTreeSet;

use gcp_wire::{Code, QueueName};

use crate::DestinationStats;

/// The numbers of the first queues of a run. Counters only go up.
#[derive(Debug)]
pub(crate) struct Figures {
    most: usize,
    by_queue: BTreeMap<QueueName, DestinationStats>,
    failures: BTreeMap<Code, u64>,
    /// Those that were not published since they changed.
    #[cfg(feature = "metrics")]
    changed: BTreeSet<QueueName>,
    #[cfg(feature = "metrics")]
    changed_failures: BTreeSet<Code>,
}

impl Figures {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            by_queue: BTreeMap::new(),
            failures: BTreeMap::new(),
            #[cfg(feature = "metrics")]
            changed: BTreeSet::new(),
            #[cfg(feature = "metrics")]
            changed_failures: BTreeSet::new(),
        }
    }

    pub(super) fn created(&mut self, queue: &QueueName) {
        self.count(queue, |stats| stats.created += 1);
    }

    pub(super) fn duplicate(&mut self, queue: &QueueName) {
        self.count(queue, |stats| stats.duplicates += 1);
    }

    /// `destination` is that of the rejected record; without a queue it counts nowhere.
    pub(super) fn rejected(&mut self, destination: &str) {
        if self.most > 0
            && let Ok(queue) = destination.parse()
        {
            self.count(&queue, |stats| stats.rejected += 1);
        }
    }

    /// An attempt failed, whatever follows from it.
    pub(super) fn failed(&mut self, code: Code) {
        *self.failures.entry(code).or_default() += 1;
        #[cfg(feature = "metrics")]
        self.changed_failures.insert(code);
    }

    pub(super) const fn by_queue(&self) -> &BTreeMap<QueueName, DestinationStats> {
        &self.by_queue
    }

    pub(super) const fn failures(&self) -> &BTreeMap<Code, u64> {
        &self.failures
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn take_changed(&mut self) -> Vec<(QueueName, DestinationStats)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed
            .filter_map(|queue| {
                let stats = self.by_queue.get(&queue).copied()?;
                Some((queue, stats))
            })
            .collect()
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn take_changed_failures(&mut self) -> Vec<(Code, u64)> {
        let changed = std::mem::take(&mut self.changed_failures).into_iter();
        changed
            .filter_map(|code| Some((code, self.failures.get(&code).copied()?)))
            .collect()
    }

    fn count(&mut self, queue: &QueueName, count: impl FnOnce(&mut DestinationStats)) {
        if self.most == 0
            || (self.by_queue.len() >= self.most && !self.by_queue.contains_key(queue))
        {
            return;
        }
        count(self.by_queue.entry(queue.clone()).or_default());
        #[cfg(feature = "metrics")]
        self.changed.insert(queue.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(id: &str) -> QueueName {
        format!("projects/demo/locations/l/queues/{id}")
            .parse()
            .unwrap()
    }

    #[test]
    fn the_first_queues_are_counted_and_no_more_than_asked_for() {
        let mut figures = Figures::new(2);
        figures.created(&queue("one"));
        figures.rejected(queue("two").as_str());
        figures.created(&queue("three"));
        figures.rejected("unresolved");
        figures.duplicate(&queue("one"));
        let counted: Vec<(String, u64, u64, u64)> = figures
            .by_queue()
            .iter()
            .map(|(queue, stats)| {
                let DestinationStats {
                    created,
                    duplicates,
                    rejected,
                } = *stats;
                (queue.to_string(), created, duplicates, rejected)
            })
            .collect();
        let expected = [
            (queue("one").to_string(), 1, 1, 0),
            (queue("two").to_string(), 0, 0, 1),
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn nothing_is_kept_of_queues_unless_it_is_asked_for() {
        let mut figures = Figures::new(0);
        figures.created(&queue("one"));
        figures.rejected(queue("one").as_str());
        assert!(figures.by_queue().is_empty());
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn a_change_is_published_once() {
        let mut figures = Figures::new(2);
        figures.created(&queue("one"));
        figures.failed(Code::Unavailable);
        assert_eq!(figures.take_changed().len(), 1);
        assert!(figures.take_changed().is_empty());
        assert_eq!(figures.take_changed_failures(), [(Code::Unavailable, 1)]);
        assert!(figures.take_changed_failures().is_empty());
    }
}
