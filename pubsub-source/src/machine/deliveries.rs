//! Every delivery the source holds, by id and by message.

mod acks;
mod arrival;
#[cfg(any(test, fuzzing))]
mod invariants;
mod ordering;
mod release;
#[cfg(test)]
mod tests;

pub(in crate::machine) use arrival::Arrival;

use std::{collections::BTreeMap, time::Instant};

use connector_core::{
    CheckpointError, Committed, Epoch,
    ledger::{Commit, CommitId, Ledger, Outcome, Place, Standing, View},
};
use hashbrown::HashTable;

use super::{
    ack_ids::AckIds,
    batch::{Batch, Marks, Stage},
    batches::Batches,
    key::MessageKey,
    saved_ack_ids::{AckIdsView, SavedAckIds},
};
use crate::delivery::DeliveryId;

/// All deliveries: in batches by id, in an index by message, in the ledger by epoch.
#[derive(Debug)]
pub(super) struct Deliveries {
    batches: Batches,
    next_batch: u64,
    /// The newest delivery of each held message. Never iterated.
    index: HashTable<DeliveryId>,
    ledger: Ledger<MessageKey>,
    /// From the delivery a host knows to the one that took over, and back. Only redeliveries of
    /// what is held are in here.
    forwards: BTreeMap<DeliveryId, DeliveryId>,
    origins: BTreeMap<DeliveryId, DeliveryId>,
    /// Deliveries whose lease is ours: not lapsed and not being given back.
    leased: usize,
    /// Deliveries in stage [`Stage::Releasing`].
    releasing: usize,
    /// Batches that went since they were last asked for.
    emptied: Vec<u64>,
    /// Where the next item of a committed epoch is looked for first.
    expected: DeliveryId,
    /// No message that was handed out was published later.
    newest_out: i64,
    /// What states are to name beside the messages' ids.
    saved: Option<SavedAckIds>,
}

impl Deliveries {
    pub(super) fn new(ledger: Ledger<MessageKey>, saves_ack_ids: bool) -> Self {
        Self {
            saved: saves_ack_ids.then(SavedAckIds::default),
            batches: Batches::default(),
            next_batch: 0,
            index: HashTable::new(),
            ledger,
            forwards: BTreeMap::new(),
            origins: BTreeMap::new(),
            leased: 0,
            releasing: 0,
            emptied: Vec::new(),
            expected: DeliveryId::new(0, 0),
            newest_out: i64::MIN,
        }
    }

    /// The delivery that stands for `id` now.
    pub(super) fn current(&self, id: DeliveryId) -> DeliveryId {
        if self.forwards.is_empty() {
            return id;
        }
        self.forwards.get(&id).copied().unwrap_or(id)
    }

    /// Whether another delivery stands for some that a host may know.
    pub(super) fn has_forwards(&self) -> bool {
        !self.forwards.is_empty()
    }

    /// The delivery that a host knows `id` by.
    pub(super) fn origin(&self, id: DeliveryId) -> DeliveryId {
        self.origins.get(&id).copied().unwrap_or(id)
    }

    /// The newest delivery of a message, while it is held.
    pub(super) fn find(&self, key: &MessageKey) -> Option<DeliveryId> {
        let is_it = |held: &DeliveryId| self.key(*held) == Some(key);
        self.index.find(key.hash(), is_it).copied()
    }

    pub(super) fn stage(&self, id: DeliveryId) -> Stage {
        self.stage_and_marks(id).0
    }

    pub(super) fn marks(&self, id: DeliveryId) -> Marks {
        self.stage_and_marks(id).1
    }

    /// Both with one look-up, for what is asked about very many deliveries.
    pub(super) fn stage_and_marks(&self, id: DeliveryId) -> (Stage, Marks) {
        let batch = self.batches.get(id.batch());
        batch.map_or((Stage::Gone, Marks::default()), |batch| {
            (batch.stage(id.index()), batch.marks(id.index()))
        })
    }

    pub(super) fn ack_id(&self, id: DeliveryId) -> Option<&[u8]> {
        let batch = self.batches.get(id.batch())?;
        (batch.stage(id.index()) != Stage::Gone).then(|| batch.ack_id(id.index()))
    }

    pub(super) fn key(&self, id: DeliveryId) -> Option<&MessageKey> {
        key_in(&self.batches, &self.ledger, id)
    }

    /// Makes a buffered delivery part of the open epoch. Answers false when it is not buffered.
    pub(super) fn hand_out(&mut self, id: DeliveryId) -> bool {
        let id = self.current(id);
        let Some(batch) = self.batches.get_mut(id.batch()) else {
            return false;
        };
        let stage = batch.stage(id.index());
        if stage != Stage::Buffered && stage != Stage::Superseded {
            return false;
        }
        let place = self.ledger.add(batch.take_key(id.index()));
        self.newest_out = self.newest_out.max(batch.published_by());
        if let Some(saved) = &mut self.saved {
            let lapsed = batch.marks(id.index()).has(Marks::LAPSED);
            let leased = stage == Stage::Buffered && !lapsed;
            let ack_id = if leased {
                batch.ack_id(id.index())
            } else {
                &[]
            };
            saved.add(&self.ledger, place, ack_id);
        }
        if stage == Stage::Superseded {
            // The epoch keeps it; the delivery that took over is acknowledged with its own.
            batch.set_stage(id.index(), Stage::Gone);
            self.forget_origin(id);
            self.drop_if_empty(id.batch());
            return true;
        }
        batch.set_place(id.index(), place);
        batch.set_stage(id.index(), Stage::Out);
        true
    }

    /// Makes buffered deliveries part of the open epoch, which lie one after the other in one batch.
    /// Answers false, and changes nothing, when they are to be handed out one by one.
    pub(super) fn hand_out_run(&mut self, first: DeliveryId, count: usize) -> bool {
        let run = first.index()..first.index() + count;
        let Some(batch) = self.batches.get_mut(first.batch()) else {
            return false;
        };
        let plain = self.saved.is_none()
            && self.forwards.is_empty()
            && batch.are_plainly(Stage::Buffered, run.clone());
        if plain {
            batch.move_out(run, &mut self.ledger);
            self.newest_out = self.newest_out.max(batch.published_by());
        }
        plain
    }

    /// What was published later than this is another message than `id`'s, in nanoseconds since the
    /// Unix epoch.
    pub(super) fn published_by(&self, id: DeliveryId) -> i64 {
        self.batches
            .get(id.batch())
            .map_or(i64::MIN, |batch| batch.published_by())
    }

    /// What was published later than this was not handed out, in nanoseconds since the Unix epoch.
    pub(super) fn newest_out(&self) -> i64 {
        self.newest_out
    }

    /// The epoch stage of a delivery that is out.
    pub(super) fn standing(&self, id: DeliveryId) -> Standing {
        let Some(batch) = self.batches.get(id.batch()) else {
            return Standing::Gone;
        };
        match batch.stage(id.index()) {
            Stage::Out | Stage::Acking => self.ledger.standing(batch.place(id.index())),
            Stage::Buffered
            | Stage::HostAcking
            | Stage::ReAcking
            | Stage::Superseded
            | Stage::Releasing
            | Stage::Gone => Standing::Gone,
        }
    }

    /// Notes that a delivery's lease ended. Answers the stage it was in, `Gone` when it had lapsed
    /// before.
    pub(super) fn lapse(&mut self, id: DeliveryId) -> Stage {
        let Some(batch) = self.batches.get_mut(id.batch()) else {
            return Stage::Gone;
        };
        let stage = batch.stage(id.index());
        if stage == Stage::Gone || batch.marks(id.index()).has(Marks::LAPSED) {
            return Stage::Gone;
        }
        batch.mark(id.index(), Marks::LAPSED);
        if stage != Stage::Releasing && stage != Stage::Superseded {
            self.leased -= 1;
        }
        if stage == Stage::Out || stage == Stage::Acking {
            let place = batch.place(id.index());
            self.forget_ack_id(place);
        }
        stage
    }

    /// The next state names no ack id for an item of the ledger.
    fn forget_ack_id(&mut self, place: Place) {
        if let Some(saved) = &mut self.saved {
            saved.forget(place);
        }
    }

    pub(super) fn mark_retried(&mut self, id: DeliveryId) {
        if let Some(batch) = self.batches.get_mut(id.batch())
            && id.index() < batch.len()
        {
            batch.mark(id.index(), Marks::RETRIED);
        }
    }

    /// Gives a delivery its verdict and forgets it. Answers its message's key, unless it is gone or
    /// was being given back.
    pub(super) fn settle(&mut self, id: DeliveryId, outcome: Outcome) -> Option<MessageKey> {
        let (stage, marks) = self.stage_and_marks(id);
        let key = match stage {
            Stage::Gone => return None,
            Stage::Releasing | Stage::Superseded => None,
            Stage::Buffered | Stage::Out | Stage::Acking | Stage::HostAcking | Stage::ReAcking => {
                self.key(id).cloned()
            }
        };
        if let Some(key) = &key {
            self.unindex_as(id, key.hash());
        }
        let batch = self.batches.get_mut(id.batch())?;
        match stage {
            Stage::Out | Stage::Acking => {
                self.ledger.settle(batch.place(id.index()), outcome);
            }
            Stage::Buffered | Stage::HostAcking | Stage::ReAcking | Stage::Superseded => {
                drop(batch.take_key(id.index()));
            }
            Stage::Releasing => self.releasing -= 1,
            Stage::Gone => {}
        }
        batch.set_stage(id.index(), Stage::Gone);
        let leased = stage != Stage::Releasing && stage != Stage::Superseded;
        if leased && !marks.has(Marks::LAPSED) {
            self.leased -= 1;
        }
        self.forget_origin(id);
        self.drop_if_empty(id.batch());
        key
    }

    fn forget_origin(&mut self, id: DeliveryId) {
        if let Some(origin) = self.origins.remove(&id) {
            self.forwards.remove(&origin);
        }
    }

    /// Gives a verdict to an item of the ledger whose delivery is gone. Answers whether it had none.
    pub(super) fn settle_place(&mut self, place: Place, outcome: Outcome) -> bool {
        self.ledger.settle(place, outcome) != Standing::Gone
    }

    fn unindex(&mut self, id: DeliveryId) {
        let Some(hash) = self.key(id).map(MessageKey::hash) else {
            return;
        };
        self.unindex_as(id, hash);
    }

    fn unindex_as(&mut self, id: DeliveryId, hash: u64) {
        if let Ok(entry) = self.index.find_entry(hash, |held| *held == id) {
            entry.remove();
        }
    }

    fn drop_if_empty(&mut self, batch: u64) {
        if self.batches.get(batch).is_some_and(|held| held.live() == 0) {
            self.batches.remove(batch);
            self.emptied.push(batch);
        }
    }

    /// The batches that have no delivery left since the last call.
    pub(super) fn take_emptied(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.emptied)
    }

    /// The ids of a batch's deliveries, gone ones included.
    pub(super) fn ids_of(&self, batch: u64) -> impl Iterator<Item = DeliveryId> + use<> {
        let count = self.batches.get(batch).map_or(0, |batch| batch.len());
        ids(batch, count)
    }

    /// Every batch, oldest first.
    pub(super) fn batches(&self) -> impl Iterator<Item = u64> + '_ {
        self.batches.iter().map(|(number, _)| number)
    }

    /// The oldest batch from `from` on, and when it was received.
    pub(super) fn oldest_from(&self, from: u64) -> Option<(u64, Instant)> {
        let (number, batch) = self.batches.from(from).next()?;
        Some((number, batch.received()))
    }

    /// Deliveries whose lease is ours.
    pub(super) fn leased(&self) -> usize {
        self.leased
    }

    /// Deliveries that are being given back.
    pub(super) fn releasing(&self) -> usize {
        self.releasing
    }

    pub(super) fn seal(&mut self, epoch: Epoch) -> Result<View<MessageKey>, CheckpointError> {
        self.ledger.seal(epoch)?;
        Ok(self.ledger.view())
    }

    /// The ack ids of what a state names that is taken now, where it is to name them.
    pub(super) fn saved_ack_ids(&mut self) -> Option<AckIdsView> {
        let ledger = &self.ledger;
        self.saved.as_mut().map(|saved| saved.view(ledger))
    }

    pub(super) fn commit(&mut self, epoch: Epoch) -> Result<Commit<MessageKey>, CheckpointError> {
        self.ledger.commit(epoch)
    }

    pub(super) fn abort(&mut self, epoch: Epoch) {
        self.ledger.abort(epoch);
    }

    pub(super) fn poll_committed(&mut self) -> Option<(CommitId, Committed)> {
        self.ledger.poll_committed()
    }

    pub(super) fn ledger(&self) -> &Ledger<MessageKey> {
        &self.ledger
    }
}

/// The parts of a list of deliveries that lie one after the other in one batch.
pub(super) fn runs_of(ids: &[DeliveryId]) -> impl Iterator<Item = &[DeliveryId]> {
    // The last delivery of a full batch is followed by the first of the next one.
    ids.chunk_by(|one, next| one.after(1) == *next && one.batch() == next.batch())
}

fn ids(batch: u64, count: usize) -> impl Iterator<Item = DeliveryId> {
    (0..=u16::MAX)
        .take(count)
        .map(move |index| DeliveryId::new(batch, index))
}

fn key_in<'a>(
    batches: &'a Batches,
    ledger: &'a Ledger<MessageKey>,
    id: DeliveryId,
) -> Option<&'a MessageKey> {
    let batch = batches.get(id.batch())?;
    match batch.stage(id.index()) {
        Stage::Buffered | Stage::HostAcking | Stage::ReAcking | Stage::Superseded => {
            batch.key(id.index())
        }
        Stage::Out | Stage::Acking => ledger.get(batch.place(id.index())),
        Stage::Releasing | Stage::Gone => None,
    }
}
