//! Deliveries that are acknowledged.

use connector_core::ledger::{Outcome, Place};

use super::{Batch, Deliveries, Marks, MessageKey, Stage};
use crate::delivery::DeliveryId;

impl Deliveries {
    /// Starts to acknowledge an item of a committed epoch. Answers the delivery that stands for it;
    /// `None` when there is none any more.
    ///
    /// Items are acknowledged in the order in which they were handed out, which mostly is that in
    /// which they came: the delivery after the last one is looked at before the index.
    pub(in crate::machine) fn start_released(
        &mut self,
        place: Place,
        key: &MessageKey,
    ) -> Option<DeliveryId> {
        let expected = self.expected;
        if !self.start_ack(expected, place) {
            let id = self.find(key)?;
            self.expected = id;
            if !self.start_ack(id, place) {
                return None;
            }
        }
        let id = self.expected;
        let batch = self.batches.get(id.batch());
        self.expected = match batch.map_or(0, Batch::len) {
            len if id.index() + 1 < len => id.next(),
            _ => DeliveryId::new(id.batch() + 1, 0),
        };
        Some(id)
    }

    /// Starts to acknowledge a delivery whose epoch is committed.
    pub(in crate::machine) fn start_ack(&mut self, id: DeliveryId, place: Place) -> bool {
        let Some(batch) = self.batches.get_mut(id.batch()) else {
            return false;
        };
        if batch.stage(id.index()) != Stage::Out || batch.place(id.index()) != place {
            return false;
        }
        batch.set_stage(id.index(), Stage::Acking);
        true
    }

    /// Starts to acknowledge a buffered delivery of a message that a durable epoch names.
    pub(in crate::machine) fn start_re_ack(&mut self, id: DeliveryId) {
        if let Some(batch) = self.batches.get_mut(id.batch()) {
            debug_assert_eq!(batch.stage(id.index()), Stage::Buffered);
            batch.set_stage(id.index(), Stage::ReAcking);
        }
    }

    /// Gives a delivery of a committed epoch its verdict, confirmed and nothing more to be said of
    /// it. Answers false, and changes nothing, when there is more: it lapsed, came again or was
    /// tried again, or is not being acknowledged as part of an epoch.
    ///
    /// The short way of [`settle`](Self::settle), for what is asked about very many deliveries.
    pub(in crate::machine) fn settle_acked(&mut self, id: DeliveryId) -> bool {
        let Some(batch) = self.batches.get_mut(id.batch()) else {
            return false;
        };
        let plain = batch.stage(id.index()) == Stage::Acking
            && batch.marks(id.index()) == Marks::default()
            && self.origins.is_empty();
        if !plain {
            return false;
        }
        let place = batch.place(id.index());
        batch.set_stage(id.index(), Stage::Gone);
        let empty = batch.live() == 0;
        if let Some(hash) = self.ledger.get(place).map(MessageKey::hash) {
            self.unindex_as(id, hash);
        }
        self.ledger.settle(place, Outcome::Settled);
        self.leased -= 1;
        if empty {
            self.drop_if_empty(id.batch());
        }
        true
    }
}
