//! Messages with ordering keys: which key may go where, and what comes again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who holds the outstanding messages of a key: a pull stream, or one unary pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// By the stream's number.
    Stream(u64),
    /// By a number of its own: what it holds goes to nobody else until it is settled.
    Pull(u64),
}

/// The messages of one ordering key that are not settled for good, by their sequence numbers.
///
/// Invariant: everything pending comes after everything that is out.
#[derive(Debug, Clone, Default)]
struct Key {
    /// To be delivered, in this order.
    pending: BTreeSet<u64>,
    /// Of those, the ones a retry policy keeps back for a while.
    waiting: BTreeSet<u64>,
    /// Delivered and not acknowledged.
    out: BTreeSet<u64>,
    /// Acknowledged while an earlier one was not: they come again if that one does.
    held: BTreeSet<u64>,
    /// Who has what is out. Only meaningful while something is.
    holder: Option<Holder>,
    indexed: Option<Place>,
}

/// Where a key waits for a taker, with its first message: for anyone, or for its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Free(u64),
    Held(Holder, u64),
}

/// The ordering keys of a subscription.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    keys: BTreeMap<Arc<str>, Key>,
    places: BTreeMap<Place, Arc<str>>,
    /// Messages pending in the keys that have a place.
    available: usize,
}

/// What becomes of an acknowledged message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Acked {
    /// It is kept until every earlier message of its key is acknowledged.
    Held,
    /// It is done, and so are these that waited for it.
    Done(Vec<u64>),
}

impl Keys {
    pub(super) fn add(&mut self, name: &Arc<str>, seq: u64) {
        self.change(name, |key| {
            key.pending.insert(seq);
        });
    }

    /// The earliest message that may be delivered to `to`.
    pub(super) fn next_for(&self, to: Holder) -> Option<u64> {
        let free = self
            .places
            .range(Place::Free(0)..=Place::Free(u64::MAX))
            .next();
        let own = self
            .places
            .range(Place::Held(to, 0)..=Place::Held(to, u64::MAX))
            .next();
        [free, own]
            .into_iter()
            .flatten()
            .map(|(place, _)| match place {
                Place::Free(seq) | Place::Held(_, seq) => *seq,
            })
            .min()
    }

    /// How many messages could be delivered, whoever may take them.
    pub(super) const fn available(&self) -> usize {
        self.available
    }

    pub(super) fn delivered(&mut self, name: &Arc<str>, seq: u64, to: Holder) {
        self.change(name, |key| {
            key.pending.remove(&seq);
            key.waiting.remove(&seq);
            key.out.insert(seq);
            key.holder = Some(to);
        });
    }

    /// Whether an earlier message of the key is not yet acknowledged.
    pub(super) fn is_blocked(&self, name: &Arc<str>, seq: u64) -> bool {
        self.keys
            .get(name)
            .is_some_and(|key| key.first_unacked().is_some_and(|first| first < seq))
    }

    pub(super) fn acked(&mut self, name: &Arc<str>, seq: u64) -> Acked {
        self.settle(name, seq, true)
    }

    /// Takes a message out of its key for good: it was forwarded, or is too old.
    pub(super) fn removed(&mut self, name: &Arc<str>, seq: u64) -> Vec<u64> {
        match self.settle(name, seq, false) {
            Acked::Held => Vec::new(),
            Acked::Done(others) => others,
        }
    }

    fn settle(&mut self, name: &Arc<str>, seq: u64, may_hold: bool) -> Acked {
        self.change(name, |key| {
            key.pending.remove(&seq);
            key.waiting.remove(&seq);
            key.out.remove(&seq);
            key.held.remove(&seq);
            let first = key.first_unacked();
            if may_hold && first.is_some_and(|first| first < seq) {
                key.held.insert(seq);
                return Acked::Held;
            }
            let later = first.map_or_else(BTreeSet::new, |first| key.held.split_off(&first));
            Acked::Done(
                std::mem::replace(&mut key.held, later)
                    .into_iter()
                    .collect(),
            )
        })
    }

    /// A delivery failed: the message and everything delivered after it come again, in order.
    /// Returns the successors that were out and those that were acknowledged.
    pub(super) fn failed(&mut self, name: &Arc<str>, seq: u64, waits: bool) -> Again {
        self.change(name, |key| {
            key.out.remove(&seq);
            let out = key.out.split_off(&seq);
            let held = key.held.split_off(&seq);
            let was_first = key.pending.first().copied();
            key.pending.insert(seq);
            key.pending.extend(out.iter().chain(&held));
            if waits {
                key.waiting.insert(seq);
            }
            Again {
                out: out.into_iter().collect(),
                acked: held.into_iter().collect(),
                was_first,
            }
        })
    }

    /// The pause of a retry policy is over.
    pub(super) fn rested(&mut self, name: &Arc<str>, seq: u64) {
        self.change(name, |key| {
            key.waiting.remove(&seq);
        });
    }

    fn change<R>(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Key) -> R) -> R {
        let key = self.keys.entry(Arc::clone(name)).or_default();
        self.available -= key.available();
        let result = change(key);
        let place = key.place();
        if place != key.indexed {
            if let Some(old) = key.indexed.take() {
                self.places.remove(&old);
            }
            if let Some(new) = place {
                self.places.insert(new, Arc::clone(name));
            }
            key.indexed = place;
        }
        self.available += key.available();
        if key.is_empty() {
            self.keys.remove(name);
        }
        result
    }

    /// Panics when the parts contradict each other.
    pub(super) fn check_invariants(&self) {
        for (name, key) in &self.keys {
            let last_out = key.out.last().max(key.held.last());
            assert!(
                key.pending.first() > last_out || key.pending.is_empty(),
                "order of key {name}"
            );
            assert!(
                key.waiting.is_subset(&key.pending),
                "{name} waits with what it has not"
            );
            assert!(key.out.is_disjoint(&key.held), "{name} is out and held");
            assert!(key.held.is_empty() || key.first_unacked() < key.held.first().copied());
            assert_eq!(key.indexed, key.place(), "place of {name}");
            assert!(!key.is_empty(), "{name} is left behind");
        }
        let indexed = self
            .keys
            .values()
            .filter(|key| key.indexed.is_some())
            .count();
        assert_eq!(indexed, self.places.len());
        assert_eq!(
            self.available,
            self.keys.values().map(Key::available).sum::<usize>()
        );
    }
}

/// What comes again behind a message that does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) out: Vec<u64>,
    pub(super) acked: Vec<u64>,
    /// The message that was to come first until now.
    pub(super) was_first: Option<u64>,
}

impl Key {
    fn first_unacked(&self) -> Option<u64> {
        match (self.out.first(), self.pending.first()) {
            (Some(out), Some(pending)) => Some(*out.min(pending)),
            (Some(one), None) | (None, Some(one)) => Some(*one),
            (None, None) => None,
        }
    }

    fn place(&self) -> Option<Place> {
        let head = *self.pending.first()?;
        if self.waiting.contains(&head) {
            return None;
        }
        if self.out.is_empty() {
            return Some(Place::Free(head));
        }
        self.holder.map(|holder| Place::Held(holder, head))
    }

    fn available(&self) -> usize {
        if self.indexed.is_some() {
            self.pending.len()
        } else {
            0
        }
    }

    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.out.is_empty() && self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Holder = Holder::Stream(1);
    const TWO: Holder = Holder::Stream(2);

    fn keys(seqs: std::ops::Range<u64>) -> (Keys, Arc<str>) {
        let name: Arc<str> = "k".into();
        let mut keys = Keys::default();
        for seq in seqs {
            keys.add(&name, seq);
        }
        (keys, name)
    }

    #[test]
    fn a_key_stays_with_its_stream_while_something_is_out() {
        let (mut keys, name) = keys(0..3);
        assert_eq!(keys.next_for(ONE), Some(0));
        keys.delivered(&name, 0, ONE);
        assert_eq!(keys.next_for(ONE), Some(1));
        assert_eq!(keys.next_for(TWO), None);
        assert_eq!(keys.next_for(Holder::Pull(1)), None);
        assert_eq!(keys.acked(&name, 0), Acked::Done(vec![]));
        assert_eq!(keys.next_for(TWO), Some(1));
        keys.check_invariants();
    }

    #[test]
    fn a_failed_message_brings_its_successors_back_acknowledged_ones_included() {
        let (mut keys, name) = keys(0..5);
        for seq in 0..4 {
            keys.delivered(&name, seq, ONE);
        }
        assert_eq!(keys.acked(&name, 2), Acked::Held);
        assert_eq!(keys.acked(&name, 0), Acked::Done(vec![]));
        let again = keys.failed(&name, 1, false);
        assert_eq!(
            again,
            Again {
                out: vec![3],
                acked: vec![2],
                was_first: Some(4),
            }
        );
        keys.check_invariants();
        let mut order = vec![];
        while let Some(seq) = keys.next_for(TWO) {
            keys.delivered(&name, seq, TWO);
            order.push(seq);
        }
        assert_eq!(order, [1, 2, 3, 4]);
    }

    #[test]
    fn acknowledged_successors_are_done_with_their_predecessor() {
        let (mut keys, name) = keys(0..4);
        for seq in 0..4 {
            keys.delivered(&name, seq, ONE);
        }
        assert_eq!(keys.acked(&name, 1), Acked::Held);
        assert_eq!(keys.acked(&name, 3), Acked::Held);
        assert!(keys.is_blocked(&name, 3));
        assert_eq!(keys.acked(&name, 0), Acked::Done(vec![1]));
        assert_eq!(keys.acked(&name, 2), Acked::Done(vec![3]));
        assert!(keys.keys.is_empty());
    }

    #[test]
    fn a_waiting_head_keeps_its_key_back() {
        let (mut keys, name) = keys(0..2);
        keys.delivered(&name, 0, ONE);
        assert_eq!(keys.failed(&name, 0, true).was_first, Some(1));
        assert_eq!(keys.next_for(ONE), None);
        keys.rested(&name, 0);
        assert_eq!(keys.next_for(ONE), Some(0));
    }
}
