//! Committed messages on their way from the stage into batches.

use std::collections::{BTreeMap, VecDeque};

use connector_core::ledger::Place;
use gcp_wire::TopicName;

/// Committed messages that are in no batch yet, by topic, each topic's in their order.
///
/// A commit may release messages for more topics than may be in use. Those in use come first; the
/// others wait for their turn, first come first served.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    by_topic: BTreeMap<TopicName, VecDeque<Place>>,
    /// Topics that were in use when their messages came.
    used: VecDeque<TopicName>,
    /// Topics that were not.
    unused: VecDeque<TopicName>,
}

impl Backlog {
    /// Whether messages can be moved. `room` says that one more topic may be in use.
    pub(super) fn can_move(&self, room: bool) -> bool {
        !self.used.is_empty() || (room && !self.unused.is_empty())
    }

    /// Adds a message. `is_used` says whether its topic is in use; asked once for each topic.
    pub(super) fn push(&mut self, topic: &TopicName, place: Place, is_used: impl FnOnce() -> bool) {
        if let Some(places) = self.by_topic.get_mut(topic) {
            places.push_back(place);
            return;
        }
        self.by_topic.insert(topic.clone(), VecDeque::from([place]));
        let turns = if is_used() {
            &mut self.used
        } else {
            &mut self.unused
        };
        turns.push_back(topic.clone());
    }

    /// The topic whose turn it is, and its first messages, at most so many. `room` says that one
    /// more topic may be in use, `is_used` whether one is.
    pub(super) fn next(
        &mut self,
        room: bool,
        most: usize,
        is_used: impl Fn(&TopicName) -> bool,
    ) -> Option<(TopicName, Vec<Place>)> {
        let topic = loop {
            match self.used.pop_front() {
                Some(topic) if room || is_used(&topic) => break topic,
                // It came clean and made room meanwhile. It has waited longest of those without.
                Some(topic) => self.unused.push_front(topic),
                None if room => break self.unused.pop_front()?,
                None => return None,
            }
        };
        let places = self.by_topic.get_mut(&topic)?;
        let taken = places.drain(..most.min(places.len())).collect();
        if places.is_empty() {
            self.by_topic.remove(&topic);
        } else {
            self.used.push_back(topic.clone());
        }
        Some((topic, taken))
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.by_topic.values().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use connector_core::ledger::Ledger;

    use super::*;

    fn topic(name: &str) -> TopicName {
        TopicName::new("demo", name).unwrap()
    }

    #[test]
    fn topics_in_use_come_first_and_the_others_wait_for_room_in_their_order() {
        let mut ledger = Ledger::new();
        let places: Vec<Place> = (0..5).map(|_| ledger.add(())).collect();
        let mut backlog = Backlog::default();
        backlog.push(&topic("new"), places[0], || false);
        backlog.push(&topic("newer"), places[1], || false);
        for place in &places[2..] {
            backlog.push(&topic("used"), *place, || true);
        }
        let used = |other: &TopicName| *other == topic("used");
        let (first, taken) = backlog.next(false, 2, used).unwrap();
        assert_eq!((first, taken), (topic("used"), places[2..4].to_vec()));
        assert!(backlog.can_move(false), "the rest of a topic in use");
        let (_, taken) = backlog.next(false, 2, used).unwrap();
        assert_eq!(taken, places[4..]);
        assert!(backlog.next(false, 2, used).is_none());
        assert!(!backlog.can_move(false));
        let (next, taken) = backlog.next(true, 2, used).unwrap();
        assert_eq!((next, taken), (topic("new"), vec![places[0]]));
        assert_eq!(backlog.next(true, 2, used).unwrap().0, topic("newer"));
        assert!(backlog.next(true, 2, used).is_none());
    }

    #[test]
    fn whether_a_topic_is_in_use_is_asked_with_its_first_message_only() {
        let mut ledger = Ledger::new();
        let mut backlog = Backlog::default();
        let mut asked = 0;
        for _ in 0..3 {
            for name in ["one", "other"] {
                backlog.push(&topic(name), ledger.add(()), || {
                    asked += 1;
                    false
                });
            }
        }
        assert_eq!(asked, 2);
        assert_eq!(backlog.places().count(), 6);
    }

    #[test]
    fn a_topic_that_made_room_before_its_turn_waits_like_the_others() {
        let mut ledger = Ledger::new();
        let mut backlog = Backlog::default();
        backlog.push(&topic("released"), ledger.add(()), || true);
        assert!(backlog.next(false, 2, |_| false).is_none());
        assert!(!backlog.can_move(false));
        assert!(backlog.next(true, 2, |_| false).is_some());
    }
}
