//! Deliveries that are acknowledged.

use connector_core::ledger::{Outcome, Place};

use super::{Batch, Deliveries, MessageKey, Stage};
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

    /// The places of the deliveries that are expected to be acknowledged next, at most `most`: the
    /// first, and how many follow it.
    pub(in crate::machine) fn expected_run(&self, most: usize) -> Option<(Place, usize)> {
        let batch = self.batches.get(self.expected.batch())?;
        let index = self.expected.index();
        let out = batch.count_in(Stage::Out, index, most);
        if out == 0 {
            return None;
        }
        batch.place_run(index, out)
    }

    /// Starts to acknowledge so many of the expected deliveries, whose epoch is committed. Answers
    /// the first, and their ack ids.
    pub(in crate::machine) fn start_run(
        &mut self,
        count: usize,
    ) -> Option<(DeliveryId, impl Iterator<Item = &[u8]> + '_)> {
        let first = self.expected;
        let run = first.index()..first.index() + count;
        let batch = self.batches.get_mut(first.batch())?;
        batch.set_stages(run.clone(), Stage::Acking);
        self.expected = if run.end < batch.len() {
            first.after(count)
        } else {
            DeliveryId::new(first.batch() + 1, 0)
        };
        Some((first, batch.ack_ids(run)))
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

    /// Gives deliveries of a committed epoch their verdict, confirmed and nothing more to be said of
    /// them, which lie one after the other in one batch. Answers false, and changes nothing, when
    /// there is more of one of them: it lapsed, came again or was tried again, or is not being
    /// acknowledged as part of an epoch.
    ///
    /// The short way of [`settle`](Self::settle), for what is asked about very many deliveries.
    pub(in crate::machine) fn settle_acked(&mut self, first: DeliveryId, count: usize) -> bool {
        let run = first.index()..first.index() + count;
        let Some(batch) = self.batches.get_mut(first.batch()) else {
            return false;
        };
        if !self.origins.is_empty() || !batch.are_plainly(Stage::Acking, run.clone()) {
            return false;
        }
        let Some((place, follow)) = batch.place_run(first.index(), count) else {
            return false;
        };
        let Some(keys) = self.ledger.run(place, count).filter(|_| follow == count) else {
            return false;
        };
        for (index, key) in (0..count).zip(keys) {
            let id = first.after(index);
            if let Ok(entry) = self.index.find_entry(key.hash(), |held| *held == id) {
                entry.remove();
            }
        }
        let settled = self.ledger.settle_run(place, count, Outcome::Settled);
        debug_assert!(
            settled,
            "what is being acknowledged is part of a committed epoch"
        );
        batch.set_stages(run, Stage::Gone);
        self.leased -= count;
        self.drop_if_empty(first.batch());
        true
    }
}
