//! Numbers of each topic, and of each kind of failure.

use std::collections::BTreeMap;
#[cfg(feature = "metrics")]
use std::collections::BTreeSet;

use gcp_wire::{Code, TopicName};

use super::Machine;
use crate::DestinationStats;

/// The numbers of the first topics of a run. They outlive the destinations: counters only go up.
#[derive(Debug)]
pub(super) struct Figures {
    most: usize,
    by_topic: BTreeMap<TopicName, DestinationStats>,
    failures: BTreeMap<Code, u64>,
    /// Those that were not published since they changed.
    #[cfg(feature = "metrics")]
    changed: BTreeSet<TopicName>,
    #[cfg(feature = "metrics")]
    changed_failures: BTreeSet<Code>,
}

impl Figures {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            by_topic: BTreeMap::new(),
            failures: BTreeMap::new(),
            #[cfg(feature = "metrics")]
            changed: BTreeSet::new(),
            #[cfg(feature = "metrics")]
            changed_failures: BTreeSet::new(),
        }
    }

    pub(super) fn published(&mut self, topic: &TopicName, records: usize) {
        self.count(topic, |stats| stats.records_published += records as u64);
    }

    /// `destination` is that of the rejected record; without a topic it counts nowhere.
    pub(super) fn rejected(&mut self, destination: &str) {
        if self.most > 0
            && let Ok(topic) = destination.parse()
        {
            self.count(&topic, |stats| stats.records_rejected += 1);
        }
    }

    /// A request failed, whatever follows from it.
    pub(super) fn failed(&mut self, code: Code) {
        *self.failures.entry(code).or_default() += 1;
        #[cfg(feature = "metrics")]
        self.changed_failures.insert(code);
    }

    #[cfg(feature = "metrics")]
    fn take_changed_failures(&mut self) -> Vec<(Code, u64)> {
        std::mem::take(&mut self.changed_failures)
            .into_iter()
            .filter_map(|code| Some((code, self.failures.get(&code).copied()?)))
            .collect()
    }

    #[cfg(feature = "metrics")]
    fn take_changed(&mut self) -> Vec<(TopicName, DestinationStats)> {
        std::mem::take(&mut self.changed)
            .into_iter()
            .filter_map(|topic| {
                self.by_topic
                    .get(&topic)
                    .copied()
                    .map(|stats| (topic, stats))
            })
            .collect()
    }

    fn count(&mut self, topic: &TopicName, count: impl FnOnce(&mut DestinationStats)) {
        if self.by_topic.len() >= self.most && !self.by_topic.contains_key(topic) {
            return;
        }
        count(self.by_topic.entry(topic.clone()).or_default());
        #[cfg(feature = "metrics")]
        self.changed.insert(topic.clone());
    }
}

impl Machine {
    /// What the sink did for each topic, as far as that was asked for.
    pub(crate) const fn destination_stats(&self) -> &BTreeMap<TopicName, DestinationStats> {
        &self.figures.by_topic
    }

    /// What changed of it since the last call.
    #[cfg(feature = "metrics")]
    pub(crate) fn take_changed_destinations(&mut self) -> Vec<(TopicName, DestinationStats)> {
        self.figures.take_changed()
    }

    /// How often requests failed, by code.
    pub(crate) const fn failures(&self) -> &BTreeMap<Code, u64> {
        &self.figures.failures
    }

    /// What changed of it since the last call.
    #[cfg(feature = "metrics")]
    pub(crate) fn take_changed_failures(&mut self) -> Vec<(Code, u64)> {
        self.figures.take_changed_failures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> TopicName {
        TopicName::new("demo", name).unwrap()
    }

    #[test]
    fn the_first_topics_are_counted_and_no_more_than_asked_for() {
        let mut figures = Figures::new(2);
        figures.published(&topic("one"), 3);
        figures.rejected("projects/demo/topics/two");
        figures.published(&topic("three"), 1);
        figures.rejected("unresolved");
        figures.published(&topic("one"), 4);
        let counted: Vec<(String, u64, u64)> = figures
            .by_topic
            .iter()
            .map(|(topic, stats)| {
                let (published, rejected) = (stats.records_published, stats.records_rejected);
                (topic.to_string(), published, rejected)
            })
            .collect();
        let expected = [
            ("projects/demo/topics/one".to_owned(), 7, 0),
            ("projects/demo/topics/two".to_owned(), 0, 1),
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn nothing_is_kept_unless_it_is_asked_for() {
        let mut figures = Figures::new(0);
        figures.published(&topic("one"), 3);
        figures.rejected("projects/demo/topics/one");
        assert!(figures.by_topic.is_empty());
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn a_change_is_published_once() {
        let mut figures = Figures::new(2);
        figures.published(&topic("one"), 3);
        assert_eq!(figures.take_changed().len(), 1);
        assert!(figures.take_changed().is_empty());
        figures.failed(Code::Unavailable);
        figures.failed(Code::Unavailable);
        assert_eq!(figures.take_changed_failures(), [(Code::Unavailable, 2)]);
        assert!(figures.take_changed_failures().is_empty());
    }
}
