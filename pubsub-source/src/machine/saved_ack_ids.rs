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
}

/// The ack ids that a saved state names.
#[derive(Debug, Clone)]
pub(crate) struct AckIdsView {
    segments: BTreeMap<u64, Arc<AckIds>>,
    renewed: BTreeMap<Place, Arc<[u8]>>,
}

impl AckIdsView {
    /// The newest ack id of an item that the state names.
    pub(crate) fn get(&self, place: Place) -> Option<&[u8]> {
        if let Some(renewed) = self.renewed.get(&place) {
            return Some(renewed);
        }
        let segment = self.segments.get(&place.segment())?;
        (place.index() < segment.len()).then(|| segment.get(place.index()))
    }
}

impl SavedAckIds {
    /// An item was added to the ledger.
    pub(super) fn add(&mut self, ledger: &Ledger<MessageKey>, place: Place, ack_id: &[u8]) {
        if self.open.0 != place.segment() {
            self.freeze(place.segment());
            self.segments
                .retain(|segment, _| ledger.holds_segment(*segment));
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

    /// What a state names that is taken now, right after the open epoch was sealed.
    pub(super) fn view(&mut self, ledger: &Ledger<MessageKey>) -> AckIdsView {
        self.freeze(self.open.0 + 1);
        self.segments
            .retain(|segment, _| ledger.holds_segment(*segment));
        self.renewed.retain(|place, _| ledger.get(*place).is_some());
        AckIdsView {
            segments: self.segments.clone(),
            renewed: self.renewed.clone(),
        }
    }

    fn freeze(&mut self, next: u64) {
        let (segment, mut ids) = std::mem::replace(&mut self.open, (next, AckIds::default()));
        if ids.len() > 0 {
            ids.shrink();
            self.segments.insert(segment, Arc::new(ids));
        }
    }
}
