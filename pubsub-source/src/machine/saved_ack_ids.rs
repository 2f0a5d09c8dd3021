//! Ack ids beside the ledger, for states that name them.

use std::{collections::BTreeMap, sync::Arc};

use connector_core::ledger::{Ledger, Place};

use super::{AckIds, MessageKey};

/// The ack id of every item in the ledger, by place.
///
/// A second copy, made at hand-out: a state shares it segment by segment, as it shares the ids, so
/// that a snapshot copies no id while the machine is locked.
#[derive(Debug, Default)]
pub(super) struct SavedAckIds {
    segments: BTreeMap<u64, Arc<AckIds>>,
    /// The segment that grows.
    open: (u64, AckIds),
    /// What came again since, under a new ack id. Few.
    renewed: BTreeMap<Place, Arc<[u8]>>,
    /// The items of each segment whose ack id is worth nothing any more, a bit each.
    over: BTreeMap<u64, Vec<u64>>,
}

/// The ack ids that a saved state names.
#[derive(Debug, Clone)]
pub(crate) struct AckIdsView {
    segments: BTreeMap<u64, Arc<AckIds>>,
    renewed: BTreeMap<Place, Arc<[u8]>>,
    over: BTreeMap<u64, Vec<u64>>,
}

impl AckIdsView {
    /// The newest ack id of an item that the state names, unless it is worth nothing.
    pub(crate) fn get(&self, place: Place) -> Option<&[u8]> {
        if let Some(renewed) = self.renewed.get(&place) {
            return Some(renewed);
        }
        let segment = self.segments.get(&place.segment())?;
        let over = self.over.get(&place.segment());
        if over.is_some_and(|over| bit(over, place.index())) {
            return None;
        }
        (place.index() < segment.len()).then(|| segment.get(place.index()))
    }
}

impl SavedAckIds {
    /// An item was added to the ledger.
    pub(super) fn add(&mut self, ledger: &Ledger<MessageKey>, place: Place, ack_id: &[u8]) {
        if self.open.0 != place.segment() {
            self.freeze(place.segment());
            self.prune(ledger);
        }
        debug_assert_eq!(self.open.1.len(), place.index(), "one ack id for each item");
        if !self.open.1.push(ack_id) {
            // 4 GiB in one segment: the rest of it is recognised when it comes again.
            self.open.1.push(&[]);
        }
    }

    /// The message of an item came again.
    pub(super) fn renew(&mut self, place: Place, ack_id: &[u8]) {
        self.renewed.insert(place, ack_id.into());
    }

    /// The lease of an item is over or given back: an acknowledgement under its ack id would be
    /// answered OK and do nothing.
    pub(super) fn forget(&mut self, place: Place) {
        self.renewed.remove(&place);
        let over = self.over.entry(place.segment()).or_default();
        let word = place.index() / 64;
        if word >= over.len() {
            over.resize(word + 1, 0);
        }
        over[word] |= 1 << (place.index() % 64);
    }

    /// What a state names that is taken now, right after the open epoch was sealed.
    pub(super) fn view(&mut self, ledger: &Ledger<MessageKey>) -> AckIdsView {
        self.freeze(self.open.0 + 1);
        self.prune(ledger);
        AckIdsView {
            segments: self.segments.clone(),
            renewed: self.renewed.clone(),
            over: self.over.clone(),
        }
    }

    /// Drops what is kept of items that have their verdict.
    fn prune(&mut self, ledger: &Ledger<MessageKey>) {
        self.segments
            .retain(|segment, _| ledger.holds_segment(*segment));
        self.over
            .retain(|segment, _| ledger.holds_segment(*segment));
        self.renewed.retain(|place, _| ledger.get(*place).is_some());
    }

    fn freeze(&mut self, next: u64) {
        let (segment, mut ids) = std::mem::replace(&mut self.open, (next, AckIds::default()));
        if ids.len() > 0 {
            ids.shrink();
            self.segments.insert(segment, Arc::new(ids));
        }
    }
}

fn bit(words: &[u64], index: usize) -> bool {
    words
        .get(index / 64)
        .is_some_and(|word| word >> (index % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use connector_core::{Epoch, ledger::Outcome};

    use super::*;

    /// A ledger with a message in it, and its ack id.
    fn one() -> (Ledger<MessageKey>, SavedAckIds, Place) {
        let mut ledger = Ledger::new();
        let place = ledger.add(MessageKey::Number(1));
        let mut saved = SavedAckIds::default();
        saved.add(&ledger, place, b"first");
        (ledger, saved, place)
    }

    #[test]
    fn an_ack_id_that_is_worth_nothing_is_not_named_until_its_message_comes_again() {
        let (mut ledger, mut saved, place) = one();
        ledger.seal(Epoch::new(1)).unwrap();
        let before = saved.view(&ledger);
        saved.forget(place);
        let over = saved.view(&ledger);
        saved.renew(place, b"second");
        let renewed = saved.view(&ledger);
        saved.forget(place);
        let over_again = saved.view(&ledger);
        assert_eq!(before.get(place), Some(&b"first"[..]));
        assert_eq!(over.get(place), None);
        assert_eq!(renewed.get(place), Some(&b"second"[..]));
        assert_eq!(over_again.get(place), None);
    }

    /// Its host settles messages one by one, and segments go as they fill up.
    #[test]
    fn nothing_is_kept_of_settled_messages_although_no_state_is_taken() {
        let (mut ledger, mut saved, place) = one();
        saved.renew(place, b"second");
        let mut places = vec![place];
        while places.last().is_none_or(|last| last.segment() < 1) {
            let next = ledger.add(MessageKey::Number(places.len() as u64));
            saved.add(&ledger, next, b"id");
            saved.forget(next);
            ledger.settle(next, Outcome::Settled);
            places.push(next);
            if places.len() == 2 {
                ledger.settle(place, Outcome::Settled);
            }
        }
        assert_eq!(saved.renewed.len(), 0);
        let segments: Vec<u64> = saved.over.keys().copied().collect();
        assert_eq!(segments, [1], "that which is filled now");
        assert_eq!(saved.segments.len(), 0);
    }
}
