//! The deliveries that came in one response.

#[cfg(test)]
mod tests;
mod together;

use std::time::Instant;

use connector_core::ledger::Place;

use super::{
    ack_ids::AckIds,
    key::MessageKey,
    places::Places,
    runs::{KeyNo, Passage},
};

/// Where a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Received and not handed out. Its key is in the batch.
    Buffered,
    /// Handed out and part of an epoch. Its key is in the ledger.
    Out,
    /// Part of a committed epoch, being acknowledged. Its key is in the ledger.
    Acking,
    /// Being acknowledged because the host settled it. Its key is in the batch.
    HostAcking,
    /// Being acknowledged because an earlier delivery of the message is part of a durable epoch.
    /// Its key is in the batch.
    ReAcking,
    /// Received and not handed out, but delivered again since, and that delivery is handed out
    /// after it: only the place in the order of its key is left of it. Its key is in the batch.
    Superseded,
    /// Being given back. A redelivery is a new message, so its key is kept nowhere.
    Releasing,
    /// Has a verdict, or its place was taken over by a redelivery.
    Gone,
}

/// What has happened to a delivery, apart from where it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks(u8);

impl Marks {
    /// The lease ended before anything was confirmed.
    pub(super) const LAPSED: Self = Self(1);
    /// A redelivery took over from the first delivery.
    pub(super) const RENEWED: Self = Self(2);
    /// The acknowledgement had to be sent more than once.
    pub(super) const RETRIED: Self = Self(4);

    /// It must not be handed out any more: something before it in its key comes again.
    pub(super) const REVOKED: Self = Self(8);

    pub(super) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    pub(super) const fn and(self, mark: Self) -> Self {
        Self(self.0 | mark.0)
    }
}

/// The deliveries of one response: side by side, so that holding one costs its ack id and a few
/// bytes.
#[derive(Debug)]
pub(super) struct Batch {
    ack_ids: AckIds,
    stages: Vec<Stage>,
    /// Empty while nothing has happened to any.
    marks: Vec<Marks>,
    /// Of those that are out or being acknowledged.
    places: Places,
    /// Empty once no delivery keeps its key here.
    keys: Vec<MessageKey>,
    keys_left: usize,
    live: usize,
    received: Instant,
    published_by: i64,
    /// The ordering key of each delivery, and when in it that was let through; empty where order is
    /// not kept.
    ordering: Vec<(Option<KeyNo>, Passage)>,
}

impl Batch {
    /// A batch whose deliveries are all buffered.
    pub(super) fn new(
        received: Instant,
        published_by: i64,
        keys: Vec<MessageKey>,
        ack_ids: AckIds,
    ) -> Self {
        debug_assert_eq!(keys.len(), ack_ids.len());
        let count = keys.len();
        Self {
            ack_ids,
            stages: vec![Stage::Buffered; count],
            marks: Vec::new(),
            places: Places::default(),
            keys,
            keys_left: count,
            live: count,
            received,
            published_by,
            ordering: Vec::new(),
        }
    }

    /// The ordering key of a delivery, where order is kept.
    pub(super) fn ordering_key(&self, index: usize) -> Option<KeyNo> {
        self.ordering.get(index)?.0
    }

    /// When a delivery was let through in its key.
    pub(super) fn passage(&self, index: usize) -> Passage {
        self.ordering
            .get(index)
            .map_or(Passage::default(), |of| of.1)
    }

    pub(super) fn set_ordering(&mut self, index: usize, key: KeyNo, passage: Passage) {
        if self.ordering.is_empty() {
            self.ordering = vec![(None, Passage::default()); self.stages.len()];
        }
        self.ordering[index] = (Some(key), passage);
    }

    pub(super) fn len(&self) -> usize {
        self.stages.len()
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn received(&self) -> Instant {
        self.received
    }

    /// No message of the response was published later, in nanoseconds since the Unix epoch.
    pub(super) fn published_by(&self) -> i64 {
        self.published_by
    }

    pub(super) fn ack_id(&self, index: usize) -> &[u8] {
        self.ack_ids.get(index)
    }

    pub(super) fn stage(&self, index: usize) -> Stage {
        self.stages.get(index).copied().unwrap_or(Stage::Gone)
    }

    pub(super) fn set_stage(&mut self, index: usize, stage: Stage) {
        debug_assert_ne!(self.stages[index], Stage::Gone, "gone is for ever");
        if stage == Stage::Gone {
            self.live -= 1;
        }
        self.stages[index] = stage;
    }

    pub(super) fn marks(&self, index: usize) -> Marks {
        self.marks.get(index).copied().unwrap_or_default()
    }

    pub(super) fn mark(&mut self, index: usize, mark: Marks) {
        if self.marks.is_empty() {
            self.marks = vec![Marks::default(); self.stages.len()];
        }
        self.marks[index] = self.marks[index].and(mark);
    }

    /// The place of a delivery that is out or being acknowledged.
    pub(super) fn place(&self, index: usize) -> Place {
        self.places.get(index)
    }

    pub(super) fn set_place(&mut self, index: usize, place: Place) {
        self.places.set(index, place, 1, self.stages.len());
    }

    pub(super) fn key(&self, index: usize) -> Option<&MessageKey> {
        self.keys.get(index)
    }

    /// Moves a key out, and gives the memory of all of them back after the last.
    pub(super) fn take_key(&mut self, index: usize) -> MessageKey {
        let key = std::mem::replace(&mut self.keys[index], MessageKey::vacant());
        self.keys_left -= 1;
        if self.keys_left == 0 {
            self.keys = Vec::new();
        }
        key
    }

    pub(super) fn put_key(&mut self, index: usize, key: MessageKey) {
        if self.keys.is_empty() {
            self.keys.resize(self.stages.len(), MessageKey::vacant());
        }
        self.keys[index] = key;
        self.keys_left += 1;
    }
}
