//! Deliveries that are done with before their epoch is.

use connector_core::ledger::Standing;

use super::{Deliveries, Marks, MessageKey, Stage};
use crate::delivery::DeliveryId;

impl Deliveries {
    /// Takes a delivery of the open epoch out of it, to be acknowledged now.
    pub(in crate::machine) fn start_host_ack(&mut self, id: DeliveryId) {
        let Some(batch) = self.batches.get_mut(id.batch()) else {
            return;
        };
        let place = batch.place(id.index());
        let key = self.ledger.get(place).cloned();
        let standing = self.ledger.withdraw(place);
        debug_assert_eq!(standing, Standing::Open);
        batch.put_key(id.index(), key.unwrap_or_else(MessageKey::vacant));
        batch.set_stage(id.index(), Stage::HostAcking);
    }

    /// Starts to give a delivery back: it leaves its epoch and the index, so that a redelivery
    /// counts as a new message. Answers false when it is gone or on its way out already.
    pub(in crate::machine) fn start_release(&mut self, id: DeliveryId) -> bool {
        let stage = self.stage(id);
        match stage {
            Stage::Buffered | Stage::Out => {}
            Stage::Acking
            | Stage::HostAcking
            | Stage::ReAcking
            | Stage::Superseded
            | Stage::Releasing
            | Stage::Gone => return false,
        }
        self.unindex(id);
        let Some(batch) = self.batches.get_mut(id.batch()) else {
            return false;
        };
        if stage == Stage::Out {
            self.ledger.displace(batch.place(id.index()));
        } else {
            drop(batch.take_key(id.index()));
        }
        batch.set_stage(id.index(), Stage::Releasing);
        if !batch.marks(id.index()).has(Marks::LAPSED) {
            self.leased -= 1;
        }
        self.releasing += 1;
        true
    }

    /// Starts to give a sealed or open delivery back while its epoch keeps it: the commit will
    /// report it lapsed, and a redelivery is handed out as a new message.
    pub(in crate::machine) fn start_expiry(&mut self, id: DeliveryId) -> bool {
        if self.stage(id) != Stage::Out {
            return false;
        }
        self.unindex(id);
        if let Some(batch) = self.batches.get_mut(id.batch()) {
            let place = batch.place(id.index());
            batch.set_stage(id.index(), Stage::Releasing);
            if !batch.marks(id.index()).has(Marks::LAPSED) {
                self.leased -= 1;
            }
            self.releasing += 1;
            self.forget_ack_id(place);
        }
        true
    }
}
