//! What the service answers to requests.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use connector_core::ledger::Outcome;

use super::{
    CallId, CallMethod, Machine, MessageKey, Notice,
    batch::{Marks, Stage},
    calls::{Call, Errand},
    cutting::is_acking,
    deliveries::runs_of,
};
use crate::delivery::DeliveryId;

/// An acknowledgement that took longer than this may have been evaluated after a redelivery had
/// left: the message then comes once more although it is acknowledged.
const SLOW: Duration = Duration::from_secs(1);

/// Failed tries of one request after which an operator is told, once per doubling.
const ATTEMPTS_TOLD: u32 = 4;

/// What the service says about one ack id, on a subscription with exactly-once delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdVerdict {
    /// Send it again.
    Again,
    /// The ack id is worth nothing any more.
    Worthless,
}

/// How a request ended, as far as the machine must know. What ends the source is told apart.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Done.
    Done,
    /// These ack ids have a verdict of their own; the others are done, or must be sent again.
    Mixed {
        verdicts: BTreeMap<String, IdVerdict>,
        others_done: bool,
    },
    /// Not done, or not known to be done; a later try may succeed, not before this long.
    Again(Option<Duration>),
    /// Refused for what is in it.
    Refused,
}

impl Machine {
    /// A request was answered, or was given up.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        random: f64,
        call: CallId,
        answer: Answer,
    ) {
        let Some(answered) = self.calls.handle_answer(call) else {
            return;
        };
        let (call, sent) = (answered.call, answered.sent);
        match answer {
            Answer::Done => {
                self.leases
                    .handle_latency(now.saturating_duration_since(sent));
                self.done(now, random, call, sent);
            }
            Answer::Mixed {
                verdicts,
                others_done,
            } => {
                let default = (!others_done).then_some(IdVerdict::Again);
                let verdict = |ack_id: &str| verdicts.get(ack_id).copied().or(default);
                self.mixed(now, random, call, sent, verdict);
            }
            Answer::Again(least) => self.again(now, random, call, least),
            Answer::Refused => self.refused(now, random, call),
        }
        self.tidy();
        self.watch_reading(now);
        self.advance_closing(now);
    }

    fn done(&mut self, now: Instant, random: f64, call: Call, sent: Instant) {
        match call.errand {
            Errand::Acknowledge => self.acknowledged(now, call.ids, sent),
            Errand::Release(_) => {
                for id in call.ids {
                    self.released(id);
                }
            }
            Errand::Extend(seconds) => {
                let ends = sent + Duration::from_secs(u64::from(seconds));
                // Batch by batch: there may be very many ids, and a batch has one lease.
                for ids in call.ids.chunk_by(|one, next| one.batch() == next.batch()) {
                    self.extended(now, random, ids, Some(ends));
                }
            }
        }
    }

    fn acknowledged(&mut self, now: Instant, ids: Vec<DeliveryId>, sent: Instant) {
        // What was sent more than once is marked.
        let slow = now.saturating_duration_since(sent) > SLOW;
        // Mostly there is nothing to be said about an acknowledgement but that it is there.
        let plain = !slow && self.settles.is_empty();
        let mut lapsed = Vec::new();
        let mut crossing = Vec::new();
        let mut published_by = i64::MIN;
        let mut others = Vec::new();
        for run in runs_of(&ids) {
            let [first, ..] = *run else { continue };
            // What was restored is acknowledged as part of no epoch, and never goes this way.
            if plain && self.deliveries.settle_acked(first, run.len()) {
                self.stats.acknowledged += run.len() as u64;
            } else {
                others.extend_from_slice(run);
            }
        }
        for id in others {
            let (stage, marks) = self.deliveries.stage_and_marks(id);
            if !is_acking(stage) {
                continue;
            }
            // An acknowledgement after the lease's end is accepted and may still do nothing; with
            // exactly-once delivery the service would have said so.
            let outcome = if marks.has(Marks::LAPSED) && !self.answers_for_each(sent) {
                Outcome::Lapsed
            } else {
                Outcome::Settled
            };
            let doubtful = self.is_restored(id) && !self.answers_for_each(sent);
            self.count_ack(stage, outcome);
            self.count_restored(id, outcome);
            self.resolve_settle(id, outcome == Outcome::Lapsed);
            // Of the delivery itself: what is re-acknowledged was handed out by an earlier run.
            published_by = published_by.max(self.deliveries.published_by(id));
            let Some(key) = self.deliveries.settle(id, outcome) else {
                continue;
            };
            let evident = marks.has(Marks::RENEWED) || marks.has(Marks::RETRIED);
            match (stage, outcome) {
                (Stage::ReAcking, Outcome::Lapsed) => {}
                // It stays in the window, with its guard and its whole lifetime: if it comes again,
                // that delivery is acknowledged and uses it up.
                (Stage::ReAcking, _) if doubtful => {}
                (Stage::ReAcking, _) => {
                    self.seen.remove(&key);
                    if slow || evident {
                        crossing.push(key);
                    }
                }
                (Stage::HostAcking, Outcome::Lapsed) => crossing.push(key),
                (_, Outcome::Lapsed) => lapsed.push(key),
                _ if slow || evident => crossing.push(key),
                _ => {}
            }
        }
        self.remember(now, lapsed, published_by, self.seen_lifetime());
        self.remember(now, crossing, published_by, self.lease);
    }

    fn count_ack(&mut self, stage: Stage, outcome: Outcome) {
        match stage {
            Stage::Acking | Stage::HostAcking if outcome == Outcome::Lapsed => {
                self.stats.lapsed += 1;
            }
            Stage::Acking | Stage::HostAcking | Stage::ReAcking => self.stats.acknowledged += 1,
            Stage::Buffered | Stage::Out | Stage::Superseded | Stage::Releasing | Stage::Gone => {}
        }
    }

    fn released(&mut self, id: DeliveryId) {
        if self.deliveries.stage(id) == Stage::Releasing {
            self.stats.released += 1;
            self.resolve_settle(id, false);
            self.deliveries.settle(id, Outcome::Settled);
        }
    }

    /// Deliveries of one batch need no extension any more, or have got one until `ends`.
    pub(super) fn extended(
        &mut self,
        now: Instant,
        random: f64,
        ids: &[DeliveryId],
        ends: Option<Instant>,
    ) {
        let Some(batch) = ids.first().map(|id| id.batch()) else {
            return;
        };
        // An extension that was asked for after the lease's end has no effect, whatever is said.
        let extended = match ends {
            Some(_) => ids.iter().filter(|id| self.is_extendable(**id)).count(),
            None => 0,
        };
        self.stats.extended += extended as u64;
        let ends = ends.filter(|_| extended > 0);
        let whole = self
            .leases
            .handle_extended(batch, ids.len(), ends, self.lease, random);
        if whole && self.leases.ends(batch).is_some_and(|ends| ends > now) {
            self.buffer.confirm(batch);
        } else {
            self.let_unleased_out(batch);
        }
    }

    /// Some ids of a request were refused one by one; the others are done.
    fn mixed(
        &mut self,
        now: Instant,
        random: f64,
        call: Call,
        sent: Instant,
        verdict: impl Fn(&str) -> Option<IdVerdict>,
    ) {
        let (mut done, mut again, mut worthless) = (Vec::new(), Vec::new(), Vec::new());
        for id in call.ids {
            let ack_id = self.deliveries.ack_id(id);
            let ack_id = ack_id.and_then(|ack_id| std::str::from_utf8(ack_id).ok());
            match ack_id.and_then(&verdict) {
                None => done.push(id),
                Some(IdVerdict::Again) => again.push(id),
                Some(IdVerdict::Worthless) => worthless.push(id),
            }
        }
        let part = |ids| Call {
            errand: call.errand,
            ids,
            attempts: call.attempts,
            lane: call.lane,
        };
        self.give_up(now, part(worthless));
        self.done(now, random, part(done), sent);
        if !again.is_empty() {
            self.again(now, random, part(again), None);
        }
    }

    /// Sends a request again later, without those for which it is too late.
    fn again(&mut self, now: Instant, random: f64, mut call: Call, least: Option<Duration>) {
        if call.attempts >= ATTEMPTS_TOLD && call.attempts.is_power_of_two() {
            self.tell(Notice::CallFails {
                method: match call.errand {
                    Errand::Acknowledge => CallMethod::Acknowledge,
                    Errand::Release(_) | Errand::Extend(_) => CallMethod::ModifyAckDeadline,
                },
                attempts: call.attempts,
            });
        }
        if let Errand::Acknowledge = call.errand {
            let (late, rest) = call
                .ids
                .into_iter()
                .filter(|id| is_acking(self.deliveries.stage(*id)))
                .partition(|id| self.deliveries.marks(*id).has(Marks::LAPSED));
            call.ids = rest;
            for id in &call.ids {
                self.deliveries.mark_retried(*id);
            }
            self.give_up(
                now,
                Call {
                    errand: call.errand,
                    ids: late,
                    attempts: call.attempts,
                    lane: call.lane,
                },
            );
        }
        if !call.ids.is_empty() {
            self.calls.retry(now, random, call, least);
        }
    }

    /// The service refuses a request as a whole, which says nothing about most of its ids: halves
    /// are tried, down to the one that is refused alone.
    fn refused(&mut self, now: Instant, random: f64, mut call: Call) {
        if call.ids.len() <= 1 {
            self.give_up(now, call);
            return;
        }
        let half = call.ids.split_off(call.ids.len() / 2);
        call.attempts = 0;
        let lane = call.lane;
        let errand = call.errand;
        self.calls.retry(now, random, call, None);
        if lane.is_some() {
            // One request at a time: the other half waits for its turn.
            for id in half.into_iter().rev() {
                self.acks.unpop(id, lane);
            }
            return;
        }
        let half = Call {
            errand,
            ids: half,
            attempts: 0,
            lane,
        };
        self.calls.retry(now, random, half, None);
    }

    /// The ack ids of these deliveries are worth nothing: they come again.
    fn give_up(&mut self, now: Instant, call: Call) {
        let mut lapsed = Vec::new();
        let mut over = Vec::new();
        for id in call.ids {
            match call.errand {
                Errand::Acknowledge => {
                    self.break_run(id, false);
                    lapsed.extend(self.lose(id));
                }
                Errand::Release(_) => self.released(id),
                Errand::Extend(_) => {
                    self.extended(now, 0.0, &[id], None);
                    over.push(id);
                }
            }
        }
        self.lapse_deliveries(&over);
        self.remember_lapsed(now, lapsed);
    }

    /// Gives a delivery that was being acknowledged the verdict that its lease was lost. Answers
    /// the key of one that is part of a durable epoch.
    pub(super) fn lose(&mut self, id: DeliveryId) -> Option<MessageKey> {
        let stage = self.deliveries.stage(id);
        if !is_acking(stage) {
            return None;
        }
        if stage != Stage::ReAcking {
            self.stats.lapsed += 1;
        }
        self.count_restored(id, Outcome::Lapsed);
        self.resolve_settle(id, true);
        let key = self.deliveries.settle(id, Outcome::Lapsed)?;
        // What is re-acknowledged is in the window still; what the host settled by itself is
        // promised to nobody.
        (stage == Stage::Acking).then_some(key)
    }

    /// Lets ids of a durable epoch into the seen window: they may come again.
    pub(super) fn remember_lapsed(&mut self, now: Instant, keys: Vec<MessageKey>) {
        let published_by = self.deliveries.newest_out();
        self.remember(now, keys, published_by, self.seen_lifetime());
    }

    fn remember(
        &mut self,
        now: Instant,
        keys: Vec<MessageKey>,
        published_by: i64,
        lifetime: Duration,
    ) {
        self.seen.admit(now, keys, published_by, lifetime);
        self.note_overflow();
    }
}
