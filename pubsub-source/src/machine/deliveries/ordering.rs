//! What the order of keys asks of deliveries.

use std::collections::BTreeSet;

use super::{Deliveries, Marks, Stage};
use crate::{
    delivery::DeliveryId,
    machine::runs::{KeyNo, Passage},
};

impl Deliveries {
    /// The ordering key of a delivery whose batch is held, where order is kept.
    pub(in crate::machine) fn ordering_key(&self, id: DeliveryId) -> Option<KeyNo> {
        self.batches.get(id.batch())?.ordering_key(id.index())
    }

    /// When a delivery was let through in its key.
    pub(in crate::machine) fn passage(&self, id: DeliveryId) -> Passage {
        let batch = self.batches.get(id.batch());
        batch.map_or(Passage::default(), |batch| batch.passage(id.index()))
    }

    pub(in crate::machine) fn set_ordering(
        &mut self,
        id: DeliveryId,
        key: KeyNo,
        passage: Passage,
    ) {
        if let Some(batch) = self.batches.get_mut(id.batch()) {
            batch.set_ordering(id.index(), key, passage);
        }
    }

    /// Notes that a delivery that waits must not be handed out.
    pub(in crate::machine) fn mark_revoked(&mut self, id: DeliveryId) {
        if let Some(batch) = self.batches.get_mut(id.batch())
            && id.index() < batch.len()
        {
            batch.mark(id.index(), Marks::REVOKED);
        }
    }

    /// The ordering keys of everything that is held.
    pub(in crate::machine) fn ordering_keys(&self) -> BTreeSet<KeyNo> {
        let mut keys = BTreeSet::new();
        for (_, batch) in self.batches.iter() {
            for index in 0..batch.len() {
                if batch.stage(index) != Stage::Gone {
                    keys.extend(batch.ordering_key(index));
                }
            }
        }
        keys
    }

    /// The message of a delivery that waits or is out was delivered again, and is handed out
    /// again: what was handed out stays in its epoch, which reports it lapsed; what was not keeps
    /// its place in the order and nothing else. From here on the message is not held.
    pub(in crate::machine) fn supersede(&mut self, id: DeliveryId) {
        let stage = self.stage(id);
        debug_assert!(matches!(stage, Stage::Buffered | Stage::Out));
        self.unindex(id);
        let Some(batch) = self.batches.get_mut(id.batch()) else {
            return;
        };
        if !batch.marks(id.index()).has(Marks::LAPSED) {
            self.leased -= 1;
        }
        if stage == Stage::Buffered {
            batch.set_stage(id.index(), Stage::Superseded);
            return;
        }
        let place = batch.place(id.index());
        batch.set_stage(id.index(), Stage::Gone);
        self.forget_ack_id(place);
        self.forget_origin(id);
        self.drop_if_empty(id.batch());
    }
}
