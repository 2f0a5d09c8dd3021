//! What a restored source does first: it commits what the states name.

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use connector_core::{Committed, ledger::Outcome};

use super::{
    AckIds, Effect, Machine, MessageKey, RestoredGroup, RestoredHeld, Runs, deliveries::Arrival,
};
use crate::delivery::DeliveryId;

/// How far the commit of what restored states name has come.
#[derive(Debug, Default)]
pub(super) struct RestoredCommit {
    /// Until the first poll.
    held: Vec<(i64, RestoredHeld)>,
    /// Ids that the states name, whether or not they can be acknowledged now.
    named: usize,
    /// Batches below are of restored deliveries, under the ack ids that states name.
    batches: u64,
    /// Restored deliveries without a verdict.
    pending: usize,
    committed: Committed,
}

impl Machine {
    pub(super) fn restore(&mut self, now: Instant, mut groups: Vec<RestoredGroup>) {
        let lifetime = self.seen_lifetime();
        // The newest last, whatever the order of the states: of what two of them name, the group
        // that came last stands for it, and the oldest leave a full window first.
        groups.sort_by_key(|group| group.published_by);
        for group in groups {
            let remaining = group.remaining.map_or(lifetime, |left| left.min(lifetime));
            self.seen
                .admit(now, group.ids, group.published_by, remaining);
            if let Some(held) = group.held {
                self.restored.held.push((group.published_by, held));
            }
        }
        self.restored.named = self.seen.len();
        // The restored ledger answers for the commit of an empty epoch, which nobody called.
        while self.deliveries.poll_committed().is_some() {}
        self.note_overflow();
    }

    /// Acknowledges what can be, with the first poll.
    pub(super) fn commit_restored(&mut self, now: Instant) {
        let mut held = std::mem::take(&mut self.restored.held);
        // Of a key in which the host is behind, what is named comes out again, so it must come.
        if self.runs.as_ref().is_some_and(Runs::is_behind) {
            held.clear();
        }
        // The newest first: what two states name is then a redelivery and no namesake.
        held.sort_by_key(|(published_by, _)| Reverse(*published_by));
        for (published_by, held) in held {
            self.acknowledge_restored(now, published_by, held);
        }
        // What has no ack id cannot be acknowledged before it comes again.
        let unheld = self.restored.named.saturating_sub(self.restored.pending);
        self.restored.committed.lapsed += unheld;
    }

    fn acknowledge_restored(&mut self, now: Instant, published_by: i64, held: RestoredHeld) {
        let RestoredHeld {
            keys,
            ack_ids,
            lease_left,
        } = held;
        // An ack id whose lease is over is worth little, and one that somebody else may have got
        // since must not be used: what comes again is recognised instead.
        if lease_left.is_zero() {
            return;
        }
        let mut ids = AckIds::default();
        let mut batch_keys = Vec::new();
        let mut left = keys.into_iter().enumerate().peekable();
        while let Some((at, key)) = left.next() {
            let ack_id = ack_ids.get(at);
            // Two states may name it: the newer one, which came first, has the newer ack id.
            let held = self.deliveries.find(&key).is_some();
            // An id that left the full window, or was forgotten, is not recognised later either: it
            // comes again.
            let known = self.seen.suppresses(&key, published_by);
            if known && !held && !ack_id.is_empty() && ids.push(ack_id) {
                batch_keys.push(key);
            }
            let full = batch_keys.len() == DeliveryId::MAX_BATCH || left.peek().is_none();
            if full && !batch_keys.is_empty() {
                let (keys, ids) = (std::mem::take(&mut batch_keys), std::mem::take(&mut ids));
                self.open_restored(now, published_by, keys, ids, lease_left);
            }
        }
    }

    fn open_restored(
        &mut self,
        now: Instant,
        published_by: i64,
        keys: Vec<MessageKey>,
        ack_ids: AckIds,
        lease_left: Duration,
    ) {
        // Clocks differ, and were perhaps put back.
        let lease_left = lease_left.min(self.settings.max_extension);
        let batch = self.deliveries.open(now, published_by, keys, ack_ids);
        self.restored.batches = batch + 1;
        for id in self.deliveries.ids_of(batch) {
            match self.deliveries.arrive(id, published_by) {
                Arrival::New => {
                    self.restored.pending += 1;
                    self.deliveries.start_re_ack(id);
                }
                // Of two ack ids in one state either may be the newer one. The message is recognised
                // in any case.
                Arrival::Renewed(_) => {}
                Arrival::Namesake(_) => unreachable!("the newest came first"),
            }
            // A redelivery may have left the service before: it is not handed out either.
            self.deliveries.mark_retried(id);
            // Its key is known only when it comes again.
            self.acks.push(id, None);
        }
        self.leases.start(batch, now, lease_left, 0.0);
        self.need.handle_held(self.deliveries.leased());
    }

    /// A delivery that may be a restored one is about to get its verdict.
    pub(super) fn count_restored(&mut self, id: DeliveryId, outcome: Outcome) {
        if self.restored.pending == 0 || self.deliveries.origin(id).batch() >= self.restored.batches
        {
            return;
        }
        if outcome == Outcome::Settled {
            self.restored.committed.settled += 1;
        } else {
            self.restored.committed.lapsed += 1;
        }
        self.restored.pending -= 1;
        if let Some(committed) = self.restored() {
            self.effects.push_back(Effect::Restored { committed });
        }
    }

    /// Whether a delivery goes by an ack id that a restored state names. Its source may have given
    /// it back after the cut, as one that is closed does: an OK proves nothing then.
    pub(super) fn is_restored(&self, id: DeliveryId) -> bool {
        id.batch() < self.restored.batches
    }

    /// What became of what restored states name, once all of it has a verdict.
    pub(crate) fn restored(&self) -> Option<Committed> {
        let finished = self.is_started() && self.restored.pending == 0;
        finished.then_some(self.restored.committed)
    }
}
