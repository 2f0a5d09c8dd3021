//! The topics that are in use.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};

use bytes::Bytes;
use gcp_wire::TopicName;

use super::{
    order::{LaneKey, Lanes},
    repair::Repair,
};
use crate::message;

/// Names a destination while it is in use. Reused after it was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DestinationId(usize);

/// What is kept of a topic while messages go there.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) topic: TopicName,
    /// The bytes with which each of its requests begins.
    pub(super) header: Bytes,
    pub(super) lanes: Lanes,
    /// Lanes with something to send, first come first served.
    pub(super) wanting: VecDeque<LaneKey>,
    /// Whether the destination stands in the queue of those that may send.
    pub(super) queued: bool,
    /// Requests without a verdict, those that wait for their next attempt included: while all of
    /// them fail no further one starts, and messages gather into larger batches.
    pub(super) in_flight: usize,
    /// Messages without a verdict.
    pub(super) held: usize,
    /// The search for its topic, while there is none.
    pub(super) repair: Option<Repair>,
    /// Whether it was reported that requests to this topic keep failing.
    pub(super) failing: bool,
    /// Since when nothing is held.
    clean_since: Option<Instant>,
}

impl Destination {
    /// Whether one more request may leave.
    pub(super) fn may_send(&self, limit: usize) -> bool {
        self.repair.is_none() && self.in_flight < limit
    }
}

/// The destinations in use, bounded in number.
#[derive(Debug)]
pub(super) struct Destinations {
    slots: Vec<Option<Destination>>,
    free: Vec<DestinationId>,
    /// Never walked: the order is nobody's.
    by_topic: HashMap<TopicName, DestinationId>,
    /// The one used last: most hosts write runs of records to one topic.
    last: Option<DestinationId>,
    /// Those that hold nothing, the least recently used first.
    clean: BTreeSet<(Instant, DestinationId)>,
    limit: usize,
    idle: Duration,
    released: u64,
}

impl Destinations {
    pub(super) fn new(limit: usize, idle: Duration) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_topic: HashMap::new(),
            last: None,
            clean: BTreeSet::new(),
            limit,
            idle,
            released: 0,
        }
    }

    /// The destination of a topic, opened if it is not in use. The least recently used clean one
    /// makes room; with none clean the number exceeds the limit by this one, and the sink admits
    /// no further record until one is clean.
    pub(super) fn open(&mut self, now: Instant, topic: &TopicName) -> DestinationId {
        if let Some(last) = self.last
            && self.slots[last.0]
                .as_ref()
                .is_some_and(|slot| slot.topic == *topic)
        {
            return last;
        }
        let id = match self.by_topic.get(topic) {
            Some(id) => *id,
            None => self.insert(now, topic),
        };
        self.last = Some(id);
        id
    }

    /// The destination of a topic that is in use.
    pub(super) fn in_use(&mut self, topic: &TopicName) -> Option<&mut Destination> {
        let last = self.last.and_then(|last| self.slots[last.0].as_ref());
        if last.is_none_or(|last| last.topic != *topic) {
            self.last = Some(*self.by_topic.get(topic)?);
        }
        self.slots[self.last?.0].as_mut()
    }

    fn insert(&mut self, now: Instant, topic: &TopicName) -> DestinationId {
        while self.by_topic.len() >= self.limit && self.release_oldest_clean() {}
        let destination = Destination {
            topic: topic.clone(),
            header: message::topic_header(topic.as_str()),
            lanes: Lanes::default(),
            wanting: VecDeque::new(),
            queued: false,
            in_flight: 0,
            held: 0,
            repair: None,
            failing: false,
            clean_since: Some(now),
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            DestinationId(self.slots.len() - 1)
        });
        self.slots[id.0] = Some(destination);
        self.clean.insert((now, id));
        self.by_topic.insert(topic.clone(), id);
        id
    }

    pub(super) fn find(&self, topic: &TopicName) -> Option<DestinationId> {
        self.by_topic.get(topic).copied()
    }

    pub(super) fn get(&self, id: DestinationId) -> &Destination {
        self.slots[id.0]
            .as_ref()
            .expect("a destination is released only when nothing refers to it")
    }

    pub(super) fn get_mut(&mut self, id: DestinationId) -> &mut Destination {
        self.slots[id.0]
            .as_mut()
            .expect("a destination is released only when nothing refers to it")
    }

    /// One more message is held.
    pub(super) fn hold(&mut self, id: DestinationId) {
        let destination = self.get_mut(id);
        destination.held += 1;
        if let Some(since) = destination.clean_since.take() {
            self.clean.remove(&(since, id));
        }
    }

    /// So many messages have a verdict.
    pub(super) fn let_go(&mut self, now: Instant, id: DestinationId, messages: usize) {
        let destination = self.get_mut(id);
        destination.held -= messages;
        if destination.held == 0 && messages > 0 {
            destination.clean_since = Some(now);
            self.clean.insert((now, id));
            if self.by_topic.len() > self.limit {
                self.release_oldest_clean();
            }
        }
    }

    /// Whether one more destination may be in use, in place of a clean one if need be.
    pub(super) fn has_room(&self) -> bool {
        self.by_topic.len() < self.limit || (!self.clean.is_empty() && !self.is_crowded())
    }

    /// Whether more destinations are in use than allowed, since none of them is clean.
    pub(super) fn is_crowded(&self) -> bool {
        self.by_topic.len() > self.limit
    }

    /// Releases what was not used for the idle time.
    pub(super) fn release_idle(&mut self, now: Instant) {
        while self.next_idle().is_some_and(|due| due <= now) {
            self.release_oldest_clean();
        }
    }

    /// When the next destination has been idle for long enough to be released.
    pub(super) fn next_idle(&self) -> Option<Instant> {
        self.clean
            .first()
            .and_then(|(since, _)| since.checked_add(self.idle))
    }

    fn release_oldest_clean(&mut self) -> bool {
        let Some((_, id)) = self.clean.pop_first() else {
            return false;
        };
        if let Some(destination) = self.slots[id.0].take() {
            self.by_topic.remove(&destination.topic);
        }
        if self.last == Some(id) {
            self.last = None;
        }
        self.free.push(id);
        self.released += 1;
        true
    }

    pub(super) fn len(&self) -> usize {
        self.by_topic.len()
    }

    pub(super) fn released(&self) -> u64 {
        self.released
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (DestinationId, &Destination)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(at, slot)| slot.as_ref().map(|slot| (DestinationId(at), slot)))
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        assert_eq!(
            self.iter().count(),
            self.by_topic.len(),
            "every destination is found by name"
        );
        for (id, destination) in self.iter() {
            assert_eq!(self.by_topic.get(&destination.topic), Some(&id));
            assert_eq!(
                destination.clean_since.is_some(),
                destination.held == 0,
                "clean means that nothing is held"
            );
            if let Some(since) = destination.clean_since {
                assert!(
                    self.clean.contains(&(since, id)),
                    "what is clean can be released"
                );
                assert!(
                    destination.lanes.is_empty(),
                    "a clean destination has empty lanes"
                );
                assert!(destination.wanting.is_empty() && destination.in_flight == 0);
                assert!(destination.repair.is_none(), "nothing waits for its topic");
            }
        }
        let clean = self.iter().filter(|(_, slot)| slot.held == 0).count();
        assert_eq!(self.clean.len(), clean, "nothing else is released");
    }
}
