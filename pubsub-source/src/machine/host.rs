//! What the host asks.

use std::time::{Duration, Instant};

use connector_core::{
    CheckpointError, Epoch, Limits,
    ledger::{CommitId, Outcome, Standing},
};

use super::{
    Effect, Machine, Notice, Parcel, Phase, SettleId,
    batch::{Marks, Stage},
    deliveries::runs_of,
    runs::Runs,
};
use crate::{
    delivery::{DeliveryId, Disposition},
    error::SettleError,
    state::{Named, SavedDeliveries, SourceState},
};

/// The longest the service holds a message back.
const LONGEST_DELAY: Duration = Duration::from_secs(600);

/// A lease that would become shorter by less than this part stays as it is, so that a cadence that
/// wobbles does not change it at every checkpoint.
const SHRINK: u32 = 4;

impl Machine {
    /// The next messages to hand out. The handle says with [`hand_out`](Self::hand_out) and
    /// [`withdraw`](Self::withdraw) what becomes of each.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Parcel> {
        match self.phase {
            Phase::Running => {}
            Phase::Closing { .. } | Phase::Closed { .. } => return None,
        }
        if self.flow.paused_since().is_some() {
            return None;
        }
        // The clock decides what is still ours, not whether the timer has fired.
        self.lapse(now);
        self.buffer.take()
    }

    /// Until when messages that the handle has taken may all be handed out without asking again.
    pub(crate) fn fresh_until(
        &self,
        deliveries: impl Iterator<Item = DeliveryId>,
    ) -> Option<Instant> {
        // Mostly all of one batch, which has one lease.
        let mut known = None;
        let ends = deliveries.map(|delivery| {
            let id = self.deliveries.current(delivery);
            // Only where the order of keys is kept.
            if self.runs.is_some() && self.deliveries.stage(id) == Stage::Superseded {
                return self.unleased_until(id);
            }
            match known {
                Some((batch, ends)) if batch == id.batch() => ends,
                Some(_) | None => {
                    let ends = self.leases.ends(id.batch());
                    known = Some((id.batch(), ends));
                    ends
                }
            }
        });
        // A lease that is not known is over.
        ends.min().flatten()
    }

    /// Whether every delivery has the lease of the batch that it came in.
    pub(crate) fn is_leased_by_batch(&self) -> bool {
        self.runs.is_none() && !self.deliveries.has_forwards()
    }

    /// These deliveries, of messages the handle had taken, were handed out: they are part of the
    /// open epoch.
    pub(crate) fn hand_out(&mut self, now: Instant, deliveries: &[DeliveryId], left: Limits) {
        if self.runs.is_none() && self.partials.is_empty() {
            for run in runs_of(deliveries) {
                if let [first, ..] = *run
                    && !self.deliveries.hand_out_run(first, run.len())
                {
                    for delivery in run {
                        self.deliveries.hand_out(*delivery);
                    }
                }
            }
        } else {
            for delivery in deliveries {
                self.finish_whole(*delivery);
                self.hand_out_one(*delivery);
            }
        }
        self.stats.handed_out += deliveries.len() as u64;
        self.buffer.handle_left(now, left, deliveries.len());
        self.watch_reading(now);
    }

    /// Whether a message that the handle has taken may still be handed out.
    pub(crate) fn is_deliverable(&self, delivery: DeliveryId) -> bool {
        match self.phase {
            Phase::Running => {}
            Phase::Closing { .. } | Phase::Closed { .. } => return false,
        }
        let id = self.deliveries.current(delivery);
        match self.deliveries.stage(id) {
            Stage::Buffered => {
                let marks = self.deliveries.marks(id);
                !marks.has(Marks::LAPSED) && !marks.has(Marks::REVOKED)
            }
            Stage::Superseded => !self.deliveries.marks(id).has(Marks::REVOKED),
            Stage::Out
            | Stage::Acking
            | Stage::HostAcking
            | Stage::ReAcking
            | Stage::Releasing
            | Stage::Gone => false,
        }
    }

    /// A message that the handle had taken was not handed out and never will be, since its lease is
    /// over or the source ends.
    pub(crate) fn withdraw(&mut self, now: Instant, delivery: DeliveryId, left: Limits) {
        self.let_go(now, delivery, left, Self::part_with);
    }

    /// A message that the handle had taken is of no use to the host: it is given back at once,
    /// whatever becomes of leases when the source ends.
    pub(crate) fn turn_down(&mut self, now: Instant, delivery: DeliveryId, left: Limits) {
        self.let_go(now, delivery, left, |machine, id| machine.give_back(id, 0));
    }

    fn let_go(
        &mut self,
        now: Instant,
        delivery: DeliveryId,
        left: Limits,
        part_with: impl FnOnce(&mut Self, DeliveryId),
    ) {
        let id = self.deliveries.current(delivery);
        self.withdraw_one(delivery);
        if self.deliveries.stage(id) == Stage::Buffered {
            let marks = self.deliveries.marks(id);
            if marks.has(Marks::LAPSED) {
                self.drop_buffered(id);
            } else if marks.has(Marks::REVOKED) {
                self.deliveries.settle(id, Outcome::Lapsed);
            } else {
                part_with(self, id);
            }
        }
        if self.deliveries.stage(id) == Stage::Superseded {
            self.deliveries.settle(id, Outcome::Lapsed);
        }
        self.buffer.handle_left(now, left, 0);
        self.tidy();
        self.watch_reading(now);
    }

    /// Closes the open epoch. The state is complete at once.
    pub(crate) fn snapshot(
        &mut self,
        now: Instant,
        epoch: Epoch,
    ) -> Result<SourceState, CheckpointError> {
        self.refuse_when_closed()?;
        let view = self.deliveries.seal(epoch)?;
        let ack_ids = self.deliveries.saved_ack_ids();
        self.stats.snapshots += 1;
        self.last_checkpoint = Some(now);
        self.late_told = false;
        self.cadence.handle_checkpoint(now);
        self.adapt_lease(now);
        self.compare_interval_with_hold();
        let waiting = self.deliveries.ledger().sealed_len();
        if let Some(notice) = self.commits.handle_checkpoint(now, waiting) {
            self.tell(notice);
        }
        let instance = std::sync::Arc::clone(&self.instance);
        if self.settings.saved_deliveries == SavedDeliveries::Nothing {
            return Ok(SourceState::empty(instance, &self.subscription).after(self.sought));
        }
        let lease_left = self.leases.next_end();
        let lease_left = lease_left.map(|ends| ends.saturating_duration_since(now));
        let held = Named {
            ids: view,
            published_by: self.deliveries.newest_out(),
            ack_ids,
            lease_left: lease_left.unwrap_or_default(),
        };
        let seen = self.seen.view(now);
        let unfinished = self.unfinished_messages(now);
        let behind = self.runs.as_ref().map_or_else(Vec::new, Runs::behind);
        let subscription = &self.subscription;
        let state = SourceState::live(instance, subscription, held, seen, unfinished);
        Ok(state.behind(behind).after(self.sought))
    }

    /// Releases every sealed epoch up to this one to be acknowledged.
    pub(crate) fn commit(
        &mut self,
        now: Instant,
        epoch: Epoch,
    ) -> Result<CommitId, CheckpointError> {
        self.refuse_when_closed()?;
        let commit = self.deliveries.commit(epoch)?;
        let released: usize = commit.released.iter().map(|segment| segment.len()).sum();
        self.commits.begin(now, commit.id, epoch);
        self.acks.release(commit.released);
        let held = self.deliveries.leased().saturating_sub(released);
        if self.need.handle_commit(now, released, held) {
            let messages = self.need.told();
            self.tell(Notice::LimitChanged { messages });
            self.streams.retell(now, messages, self.lease);
        }
        // Nothing has to be confirmed of an epoch without deliveries: its receipt is due now, and
        // no answer will come that could wake the driver.
        self.poll_committed(now);
        Ok(commit.id)
    }

    /// Folds an epoch into the next.
    pub(crate) fn abort(&mut self, epoch: Epoch) {
        if self.closed().is_none() {
            self.deliveries.abort(epoch);
        }
    }

    /// The host decides about single deliveries.
    pub(crate) fn expect_no_checkpoint(&mut self) {
        self.settles_itself = true;
    }

    /// Decides about one delivery of the open epoch. The verdict comes as an effect.
    pub(crate) fn settle(
        &mut self,
        delivery: DeliveryId,
        disposition: Disposition,
    ) -> Result<SettleId, SettleError> {
        if let Some(cause) = self.closed() {
            return Err(SettleError::Closed {
                cause: cause.clone(),
            });
        }
        let seconds = match disposition {
            Disposition::Ack | Disposition::Nack => 0,
            Disposition::NackAfter(delay) => whole_seconds(delay)?,
        };
        let id = self.deliveries.current(delivery);
        match self.deliveries.standing(id) {
            Standing::Open => {}
            Standing::Sealed(epoch) | Standing::Settling(epoch) => {
                return Err(SettleError::Sealed { delivery, epoch });
            }
            Standing::Gone => return Err(SettleError::Unknown { delivery }),
            // The stages of a ledger are complete; an unknown one is not the open epoch.
            _ => return Err(SettleError::Unknown { delivery }),
        }
        self.settles_itself = true;
        let settle = SettleId(self.next_settle);
        self.next_settle += 1;
        self.settles.insert(delivery, settle);
        match disposition {
            Disposition::Ack => {
                self.deliveries.start_host_ack(id);
                let lane = self.lane(id);
                self.acks.push(id, lane);
            }
            Disposition::Nack | Disposition::NackAfter(_) => self.give_back(id, seconds),
        }
        self.tidy();
        Ok(settle)
    }

    /// Empties the seen window: what comes again from here on is handed out.
    pub(crate) fn forget_seen(&mut self) {
        self.seen.clear();
        self.partials.clear();
    }

    fn refuse_when_closed(&self) -> Result<(), CheckpointError> {
        match self.closed() {
            Some(cause) => Err(CheckpointError::Closed {
                cause: cause.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Lets leases be as long as the cadence of checkpoints wants them.
    pub(super) fn adapt_lease(&mut self, now: Instant) {
        let wanted = self.cadence.lease();
        let much_shorter = wanted + wanted / SHRINK < self.lease;
        if wanted > self.lease || much_shorter {
            self.lease = wanted;
            self.streams.change_lease(now, wanted);
        }
    }

    /// Starts to give a delivery back.
    pub(super) fn give_back(&mut self, id: DeliveryId, seconds: u32) {
        let stage = self.deliveries.stage(id);
        let message = match (&self.runs, stage) {
            (Some(_), Stage::Out) => self.deliveries.key(id).cloned(),
            _ => None,
        };
        if self.deliveries.start_release(id) {
            self.releases.entry(seconds).or_default().push_back(id);
            if let Some(message) = message {
                self.note_release(id, &message);
            }
            self.break_run(id, stage == Stage::Buffered);
        }
    }

    /// Resolves what the host waits for about a delivery, if it does.
    pub(super) fn resolve_settle(&mut self, id: DeliveryId, lapsed: bool) {
        let origin = self.deliveries.origin(id);
        if let Some(settle) = self.settles.remove(&origin) {
            let mut committed = connector_core::Committed::default();
            if lapsed {
                committed.lapsed = 1;
            } else {
                committed.settled = 1;
            }
            self.effects
                .push_back(Effect::Settled { settle, committed });
        }
    }
}

fn whole_seconds(delay: Duration) -> Result<u32, SettleError> {
    let too_long = SettleError::DelayTooLong {
        asked: delay,
        limit: LONGEST_DELAY,
    };
    if delay > LONGEST_DELAY {
        return Err(too_long);
    }
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    u32::try_from(seconds).map_err(|_| too_long)
}
