//! Responses coming in, and what they have in common with what is held.

use std::time::Instant;

use hashbrown::hash_table::Entry;

use super::{AckIds, Batch, Deliveries, Marks, MessageKey, Stage, key_in};
use crate::delivery::DeliveryId;

/// What an arriving delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::machine) enum Arrival {
    /// A message that is not held.
    New,
    /// A message that is held; this delivery's ack id took over from the earlier one, which was in
    /// this stage.
    Renewed(Stage),
    /// Another message than the held delivery's, under the same id. Nothing has changed yet: give
    /// the held one up, and let the new one arrive again.
    Namesake(DeliveryId),
}

impl Deliveries {
    /// Takes a response in. Each of its deliveries must then [`arrive`](Self::arrive).
    pub(in crate::machine) fn open(
        &mut self,
        now: Instant,
        published_by: i64,
        keys: Vec<MessageKey>,
        ack_ids: AckIds,
    ) -> u64 {
        let batch = self.next_batch;
        self.next_batch += 1;
        self.leased += keys.len();
        self.batches.insert(
            batch,
            Box::new(Batch::new(now, published_by, keys, ack_ids)),
        );
        batch
    }

    /// Finds out which deliveries of a batch that was just opened are of messages that are held
    /// already: those, few if any, must still [`arrive`](Self::arrive).
    pub(in crate::machine) fn arrive_together(&mut self, batch: u64) -> Vec<u16> {
        let (batches, ledger) = (&self.batches, &self.ledger);
        let mut held_already = Vec::new();
        let keys = batches.get(batch).map_or(&[][..], Batch::keys);
        let hash_of =
            |held: &DeliveryId| key_in(batches, ledger, *held).map_or(0, MessageKey::hash);
        self.index.reserve(keys.len(), hash_of);
        for (index, key) in (0u16..).zip(keys) {
            let is_it = |held: &DeliveryId| key_in(batches, ledger, *held) == Some(key);
            match self.index.entry(key.hash(), is_it, hash_of) {
                Entry::Vacant(place) => {
                    place.insert(DeliveryId::new(batch, index));
                }
                Entry::Occupied(_) => held_already.push(index),
            }
        }
        held_already
    }

    /// Finds out whether a delivery's message is held already. Then the delivery takes over: from
    /// here on the earlier ack id is worthless, whatever is sent is sent under the new one.
    ///
    /// A redelivery was published when the message was. What was published after everything that
    /// came with the held delivery is another message: ids are unique per topic only, and an
    /// emulator that was started again counts from "1" again.
    pub(in crate::machine) fn arrive(&mut self, id: DeliveryId, published: i64) -> Arrival {
        let (batches, ledger) = (&self.batches, &self.ledger);
        let Some(key) = key_in(batches, ledger, id) else {
            unreachable!("a delivery that has just been opened has its key");
        };
        let hash = key.hash();
        let found = self
            .index
            .find_mut(hash, |held| key_in(batches, ledger, *held) == Some(key));
        let Some(slot) = found else {
            self.index.insert_unique(hash, id, |held| {
                key_in(batches, ledger, *held).map_or(0, MessageKey::hash)
            });
            return Arrival::New;
        };
        let is_older = |batch: &Batch| batch.published_by() < published;
        if batches.get(slot.batch()).is_some_and(is_older) {
            return Arrival::Namesake(*slot);
        }
        let held = std::mem::replace(slot, id);
        self.take_over(held, id)
    }

    fn take_over(&mut self, held: DeliveryId, id: DeliveryId) -> Arrival {
        let Some(old) = self.batches.get_mut(held.batch()) else {
            unreachable!("what is indexed is held");
        };
        let stage = old.stage(held.index());
        let was_leased = !old.marks(held.index()).has(Marks::LAPSED);
        let (place, old_key) = match stage {
            Stage::Out | Stage::Acking => (Some(old.place(held.index())), None),
            Stage::Buffered | Stage::HostAcking | Stage::ReAcking => {
                (None, Some(old.take_key(held.index())))
            }
            Stage::Superseded | Stage::Releasing | Stage::Gone => {
                unreachable!("only what is held is indexed")
            }
        };
        old.set_stage(held.index(), Stage::Gone);
        if was_leased {
            self.leased -= 1;
        }
        self.drop_if_empty(held.batch());

        let Some(new) = self.batches.get_mut(id.batch()) else {
            unreachable!("a delivery that arrives was opened");
        };
        if stage != Stage::Buffered {
            new.set_stage(id.index(), stage);
        }
        new.mark(id.index(), Marks::RENEWED);
        if let Some(place) = place {
            new.set_place(id.index(), place);
            if let Some(saved) = &mut self.saved {
                saved.renew(place, new.ack_id(id.index()));
            }
            // The key lives in the ledger; this copy of it came with the response.
            drop(new.take_key(id.index()));
        }
        drop(old_key);

        let origin = self.origins.remove(&held).unwrap_or(held);
        self.forwards.insert(origin, id);
        self.origins.insert(id, origin);
        Arrival::Renewed(stage)
    }
}
