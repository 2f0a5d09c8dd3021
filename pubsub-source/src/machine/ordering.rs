//! Where the order of keys is kept: what arrives, and what is dropped for it.

use std::time::{Duration, Instant};

use connector_core::ledger::Outcome;

use super::{
    Acks, Machine, MessageKey, Phase,
    acks::Lane,
    batch::{Marks, Stage},
    deliveries::Arrival,
    runs::{Fate, KeyNo, Known, Passage, Runs},
};
use crate::{delivery::DeliveryId, error::SourceError, message::Message, settings::Settings};

/// How much longer than a lease the service may take to deliver a message again that nobody holds:
/// an extension of ours that was on its way counts from its evaluation, and requests carry a
/// deadline of some seconds.
const REDELIVERY: Duration = Duration::from_secs(60);

/// The longest lease that is asked for on a subscription with exactly-once delivery, whatever the
/// settings say.
const LONG_LEASE: Duration = Duration::from_secs(60);

/// The longest that the service holds a message back, in seconds.
const LONGEST_DELAY: u64 = 600;

/// How long a message stays fresh whose lease is another delivery's: a year.
const UNLEASED: Duration = Duration::from_secs(31_536_000);

impl Machine {
    /// Begins to keep the order of keys, as a restored state left it.
    pub(super) fn keep_order(
        settings: &Settings,
        floor: i64,
        behind: Vec<std::sync::Arc<str>>,
    ) -> (Option<Runs>, Acks) {
        if !settings.message_ordering {
            return (None, Acks::default());
        }
        let patience = settings.max_extension.max(LONG_LEASE) + REDELIVERY;
        let runs = Runs::new(patience, floor, behind);
        (Some(runs), Acks::in_lanes())
    }

    /// The subscription says whether it keeps the order of keys.
    pub(super) fn follow_ordering(&mut self, now: Instant, kept: bool) {
        if self.runs.is_some() && !kept {
            let subscription = self.subscription.clone();
            self.fail(now, SourceError::Unordered { subscription });
        }
    }

    /// The lane in which a delivery is acknowledged.
    pub(super) fn lane(&self, id: DeliveryId) -> Option<Lane> {
        let runs = self.runs.as_ref()?;
        runs.lane(self.deliveries.ordering_key(id)?)
    }

    /// A message with a key arrives. Answers whether it waits to be handed out.
    pub(super) fn arrive_in_order(
        &mut self,
        now: Instant,
        sent: Instant,
        message: &Message,
        published: i64,
    ) -> bool {
        let id = message.delivery;
        let Some(name) = self.deliveries.key(id).cloned() else {
            return false;
        };
        let mut held = self.deliveries.find(&name);
        if let Some(namesake) = held
            && self.deliveries.published_by(namesake) < published
        {
            self.abandon(namesake);
            held = None;
        }
        if self.closed().is_some() {
            // It is given back, unless it takes over from something that is not. Even what a durable
            // epoch names: the host may be behind, and need it again.
            let new = self.deliveries.arrive(id, published) == Arrival::New;
            if !new {
                self.renewed(now, id);
            }
            return new;
        }
        let known = match held {
            Some(held) if self.deliveries.stage(held) == Stage::Buffered => {
                Known::Waits(self.deliveries.passage(held))
            }
            Some(held) => Known::Held(self.deliveries.passage(held)),
            None if self.seen.suppresses(&name, published) => Known::Seen,
            None => Known::Nothing,
        };
        let Some(runs) = &mut self.runs else {
            return false;
        };
        // A message keeps the key that it came with first, whatever a redelivery says: the service
        // never gives it another, and its place is in the order of that one.
        let kept = held.and_then(|held| self.deliveries.ordering_key(held));
        let key = kept.unwrap_or_else(|| runs.key(&message.ordering_key));
        let fate = runs.arrive(now, sent, key, id, (published, &name), known);
        match (fate, held) {
            (Fate::HandOut(passage), held) => {
                if let Some(held) = held {
                    self.stats.repeated += 1;
                    self.give_way(now, held, id);
                }
                self.deliveries.arrive(id, published);
                self.deliveries.set_ordering(id, key, passage);
                if let Some(runs) = &mut self.runs {
                    runs.queue(key, id, (published, name), passage);
                }
                true
            }
            (Fate::Suppress, Some(held)) => {
                let passage = self.deliveries.passage(held);
                let revoked = self.deliveries.marks(held).has(Marks::REVOKED);
                self.deliveries.arrive(id, published);
                self.deliveries.set_ordering(id, key, passage);
                if revoked && self.deliveries.stage(id) == Stage::Buffered {
                    self.deliveries.mark_revoked(id);
                }
                self.renewed(now, id);
                false
            }
            (Fate::Suppress, None) => {
                self.deliveries.arrive(id, published);
                self.deliveries.set_ordering(id, key, Passage::default());
                self.re_ack(id);
                false
            }
            (Fate::Drop { wait }, held) => {
                if let Some(held) = held {
                    self.give_way(now, held, id);
                }
                self.deliveries.arrive(id, published);
                self.drop_behind(id, wait);
                false
            }
        }
    }

    /// Whether a message without a key is held with one: then it has its place in the order.
    pub(super) fn is_held_in_order(&self, id: DeliveryId, published: i64) -> bool {
        let name = self.deliveries.key(id);
        let held = name.and_then(|name| self.deliveries.find(name));
        held.is_some_and(|held| {
            self.deliveries.published_by(held) >= published
                && self.deliveries.ordering_key(held).is_some()
        })
    }

    /// Drops a message that arrives before what comes before it, which is awaited for no longer
    /// than `wait`.
    ///
    /// It comes again behind that. Should that be gone, it would come again at the end of each
    /// lease; where attempts are counted, the wait would then cost several, and as many as are
    /// allowed. So there it is given back for the time after the wait. Elsewhere its lease runs
    /// out, so that another subscriber who has room may go on with the key.
    fn drop_behind(&mut self, id: DeliveryId, wait: Duration) {
        self.stats.dropped_behind += 1;
        // A second more for the fraction, and one for how exactly it is known when it was sent.
        let seconds = wait.as_secs().saturating_add(2).min(LONGEST_DELAY);
        let holds_back = self.counts_attempts && !wait.is_zero();
        if holds_back && self.deliveries.start_release(id) {
            let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
            self.releases.entry(seconds).or_default().push_back(id);
        } else {
            self.deliveries.settle(id, Outcome::Lapsed);
        }
    }

    /// What is held of a message gives way to its redelivery, which is handed out.
    fn give_way(&mut self, now: Instant, held: DeliveryId, to: DeliveryId) {
        match self.deliveries.stage(held) {
            Stage::Buffered => {
                let queued = self.deliveries.origin(held);
                self.deliveries.supersede(held);
                self.await_lease(now, queued, to);
                self.let_unleased_out(held.batch());
            }
            Stage::Out => self.deliveries.supersede(held),
            Stage::Acking | Stage::HostAcking | Stage::ReAcking => {
                let lapsed = self.lose(held);
                self.remember_lapsed(now, lapsed.into_iter().collect());
            }
            Stage::Superseded | Stage::Releasing | Stage::Gone => {}
        }
    }

    /// Of a batch without a lease that is extended no confirmation comes: what waits for it is
    /// leased as other deliveries, or keeps only its place in the order.
    pub(super) fn let_unleased_out(&mut self, batch: u64) {
        if !self.buffer.awaits(batch) {
            return;
        }
        let mut ids = self.deliveries.ids_of(batch);
        if !ids.any(|id| self.is_extendable(id)) {
            self.buffer.confirm(batch);
        }
    }

    /// A delivery's lease is over, or it was given back. What waits behind it in the order of its
    /// key is dropped: the service delivers it again, after this one. Where all that waits is given
    /// back, so is this.
    pub(super) fn break_run(&mut self, id: DeliveryId, give_back: bool) {
        match self.phase {
            Phase::Running => {}
            Phase::Closing { .. } | Phase::Closed { .. } => return,
        }
        let Some(key) = self.deliveries.ordering_key(id) else {
            return;
        };
        let origin = self.deliveries.origin(id);
        let dropped = match &mut self.runs {
            Some(runs) => runs.cut(key, origin),
            None => return,
        };
        for queued in &dropped {
            let id = self.deliveries.current(*queued);
            match self.deliveries.stage(id) {
                Stage::Buffered if give_back => {
                    if self.deliveries.start_release(id) {
                        self.releases.entry(0).or_default().push_back(id);
                    }
                }
                Stage::Buffered | Stage::Superseded => self.deliveries.mark_revoked(id),
                Stage::Out
                | Stage::Acking
                | Stage::HostAcking
                | Stage::ReAcking
                | Stage::Releasing
                | Stage::Gone => {}
            }
        }
        if !dropped.is_empty() {
            self.revoked += 1;
            self.unsifted = true;
        }
    }

    /// Everything that waits to be handed out is about to be given back.
    pub(super) fn break_all_runs(&mut self) {
        let revoked = self.runs.as_mut().map_or_else(Vec::new, Runs::cut_all);
        for queued in revoked {
            let id = self.deliveries.current(queued);
            self.deliveries.mark_revoked(id);
        }
    }

    /// A message in the buffer will not be handed out: its delivery is given back already.
    pub(super) fn leave_queue(&mut self, delivery: DeliveryId) {
        self.withdraw_one(delivery);
        let id = self.deliveries.current(delivery);
        if self.deliveries.stage(id) == Stage::Superseded {
            self.deliveries.settle(id, Outcome::Lapsed);
        }
    }

    /// A message that was handed out is given back, and will come again.
    pub(super) fn note_release(&mut self, id: DeliveryId, message: &MessageKey) {
        let passage = self.deliveries.passage(id);
        if let (Some(runs), Some(key)) = (&mut self.runs, self.deliveries.ordering_key(id)) {
            runs.release(key, message, passage);
            // It may have been handed out before, in an epoch that is durable now; it was given back
            // to come out again.
            self.seen.remove(message);
        }
    }

    /// A message that the handle had taken was handed out.
    pub(super) fn hand_out_one(&mut self, delivery: DeliveryId) {
        let key = self.key_of_waiting(delivery);
        self.deliveries.hand_out(delivery);
        if let (Some(runs), Some(key)) = (&mut self.runs, key) {
            runs.handle_out(key, delivery);
        }
    }

    /// A message that was to be handed out will not be.
    pub(super) fn withdraw_one(&mut self, delivery: DeliveryId) {
        let id = self.deliveries.current(delivery);
        let revoked = self.deliveries.marks(id).has(Marks::REVOKED);
        let key = self.key_of_waiting(delivery);
        if let (Some(runs), Some(key)) = (&mut self.runs, key) {
            runs.handle_withdrawn(key, delivery);
            self.stats.dropped_behind += u64::from(revoked);
        }
    }

    /// The ordering key of a message that waits, also of one whose delivery is given back and gone.
    fn key_of_waiting(&self, delivery: DeliveryId) -> Option<KeyNo> {
        let id = self.deliveries.current(delivery);
        let key = self.deliveries.ordering_key(id);
        key.or_else(|| self.runs.as_ref()?.revoked_key(delivery))
    }

    /// Until when a message stays fresh that only keeps a place in the order.
    pub(super) fn unleased_until(&self, id: DeliveryId) -> Option<Instant> {
        let (_, received) = self.deliveries.oldest_from(id.batch())?;
        received.checked_add(UNLEASED)
    }

    /// Forgets the keys that nothing depends on, once there are many.
    pub(super) fn sweep_keys(&mut self, now: Instant) {
        if let Some(runs) = &mut self.runs
            && runs.is_crowded()
        {
            runs.sweep(now, &self.deliveries.ordering_keys());
        }
    }
}
