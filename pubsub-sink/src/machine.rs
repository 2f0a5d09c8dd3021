//! The sink as a pure machine: what it holds, and what happens next.
//!
//! Knows no clock, no random numbers, no tasks and no network. The host's calls are plain verbs;
//! what happened outside comes in through `handle_*`; what is to be done comes out of
//! [`poll_effect`](Machine::poll_effect), and when to look again out of
//! [`poll_timeout`](Machine::poll_timeout).
//!
//! A record is in exactly one place from `accept` to its verdict: in an open batch, in a closed
//! one, in a request, or with the failure handler.

mod answer;
mod batch;
mod cuts;
mod destinations;
mod effect;
mod figures;
mod inflight;
mod intake;
#[cfg(test)]
mod invariants;
mod isolate;
mod order;
mod rejections;
mod repair;
mod send;
mod stall;
#[cfg(test)]
mod tests;
mod timeout;

pub(crate) use effect::{
    Answer, Class, CutId, Effect, Failure, Notice, RejectionId, ReplyId, RequestId,
};
pub(crate) use inflight::Retry;
pub(crate) use intake::Refused;
pub(crate) use repair::Creation;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use connector_core::{
    CheckpointError, Epoch, Limits,
    ledger::{CommitId, Ledger},
};
use gcp_wire::TopicName;

use crate::{DestinationStats, SinkError, Stats, settings::Settings};
use batch::Spares;
use cuts::{Cut, Cuts};
use destinations::{DestinationId, Destinations};
use figures::Figures;
use inflight::Requests;
use order::LaneKey;
use rejections::Rejections;
use stall::Stall;

/// A wait for room after which it is worth telling who holds a shared budget.
const LONG_WAIT_FOR_ROOM: Duration = Duration::from_secs(10);

/// How the machine stands. Terminal states are sticky.
#[derive(Debug)]
enum Standing {
    Running,
    /// `close` was called and has until then.
    Closing(Option<Instant>),
    Ended(SinkError),
}

#[derive(Debug)]
pub(crate) struct Machine {
    settings: Settings,
    standing: Standing,
    /// The records' places and verdicts. A flushing sink keeps nothing but those.
    ledger: Ledger<()>,
    destinations: Destinations,
    /// Destinations that have something to send and may.
    ready: VecDeque<DestinationId>,
    /// Open batches that wait for company, by when they leave without.
    lingering: BTreeSet<(Instant, DestinationId, LaneKey)>,
    requests: Requests,
    /// Destinations whose missing topic is tried again, by when.
    repairs: BTreeSet<(Instant, DestinationId)>,
    rejections: Rejections,
    cuts: Cuts,
    /// A commit or a cut may have become complete since someone last looked.
    look_again: bool,
    stall: Stall,
    spares: Spares,
    effects: VecDeque<Effect>,
    next_reply: u64,
    /// What all records without a verdict hold of the budget.
    held: Limits,
    /// What got its verdict since the driver last gave it back to the budget.
    released: Limits,
    /// Since when the host waits for room.
    room_wanted: Option<Instant>,
    /// Whether that was told.
    room_told: bool,
    /// A timer may have to be set that the driver does not know of.
    timers_changed: bool,
    counters: Stats,
    figures: Figures,
}

impl Machine {
    /// A machine that goes on after `restored`, if any, which is committed: a flushing sink's state
    /// names nothing, so only the epoch counts.
    pub(crate) fn new(settings: Settings, restored: Option<Epoch>) -> (Self, Option<CommitId>) {
        let (ledger, commit) = match restored {
            Some(epoch) => {
                let (ledger, commit) = Ledger::restore(epoch, Vec::new());
                (ledger, Some(commit.id))
            }
            None => (Ledger::new(), None),
        };
        let machine = Self {
            standing: Standing::Running,
            ledger,
            destinations: Destinations::new(settings.max_destinations, settings.idle_destinations),
            ready: VecDeque::new(),
            lingering: BTreeSet::new(),
            requests: Requests::default(),
            repairs: BTreeSet::new(),
            rejections: Rejections::default(),
            cuts: Cuts::default(),
            look_again: commit.is_some(),
            stall: Stall::new(settings.progress_timeout),
            spares: Spares::default(),
            effects: VecDeque::new(),
            next_reply: 0,
            held: Limits::default(),
            released: Limits::default(),
            room_wanted: None,
            room_told: false,
            timers_changed: false,
            counters: Stats::default(),
            figures: Figures::new(settings.destination_stats),
            settings,
        };
        (machine, commit)
    }

    // What the host asks.

    /// The host waits for room: whatever is batched leaves, and the wait is watched.
    pub(crate) fn await_room(&mut self, now: Instant) {
        if self.room_wanted.is_none() {
            self.room_wanted = Some(now);
            self.room_told = false;
            self.hurry(now);
        }
    }

    /// The host's wait for room ended.
    pub(crate) fn stop_awaiting_room(&mut self, now: Instant) {
        self.room_wanted = None;
        self.watch(now);
    }

    /// Cuts the stream of records. The cut is made when this returns.
    pub(crate) fn snapshot(
        &mut self,
        now: Instant,
        epoch: Epoch,
    ) -> Result<CutId, CheckpointError> {
        self.ledger.seal(epoch)?;
        Ok(self.cut(now, Cut::Snapshot(epoch)))
    }

    /// Everything up to `epoch` is durable at the host.
    pub(crate) fn commit(&mut self, epoch: Epoch) -> Result<CommitId, CheckpointError> {
        let commit = self.ledger.commit(epoch)?;
        self.look_again = true;
        Ok(commit.id)
    }

    /// `epoch` will never be durable: its records count as the next epoch's.
    pub(crate) fn abort(&mut self, now: Instant, epoch: Epoch) {
        if self.ledger.abort(epoch)
            && let Some(id) = self.cuts.abort(epoch)
        {
            self.effects
                .push_back(Effect::Resolve(id, Err(CheckpointError::Aborted { epoch })));
            self.watch(now);
        }
    }

    /// Waits for everything accepted.
    pub(crate) fn flush(&mut self, now: Instant) -> CutId {
        self.cut(now, Cut::Flush)
    }

    /// Waits for everything accepted, at most for `close_timeout`, and ends the sink.
    pub(crate) fn close(&mut self, now: Instant) -> CutId {
        if matches!(self.standing, Standing::Running) {
            self.standing = Standing::Closing(now.checked_add(self.settings.close_timeout));
        }
        self.cut(now, Cut::Close)
    }

    /// Ends the sink. The first cause stays.
    pub(crate) fn fail(&mut self, error: SinkError) {
        if matches!(self.standing, Standing::Ended(_)) {
            return;
        }
        // What is known already stays true, and is still told.
        while let Some((id, committed)) = self.ledger.poll_committed() {
            self.effects.push_back(Effect::Committed(id, committed));
        }
        self.standing = Standing::Ended(error);
        // Nothing more leaves, and what others share of the budget goes back at once.
        self.released.items += self.held.items;
        self.released.bytes += self.held.bytes;
        self.held = Limits::default();
        self.ready.clear();
        self.lingering.clear();
        self.requests = Requests::default();
        self.repairs.clear();
        self.rejections = Rejections::default();
        self.cuts = Cuts::default();
        self.counters.destinations_released += self.destinations.released();
        self.destinations = Destinations::new(
            self.settings.max_destinations,
            self.settings.idle_destinations,
        );
    }

    // What is next.

    /// What the driver does next.
    pub(crate) fn poll_effect(&mut self, now: Instant) -> Option<Effect> {
        if let Some(effect) = self.effects.pop_front() {
            return Some(effect);
        }
        if self.is_ended() {
            return None;
        }
        if let Some((id, rejected, place)) = self.rejections.hand_over() {
            rejected.epoch = intake::epoch_of(self.ledger.standing(place));
            self.counters.records_rejected += 1;
            self.figures.rejected(&rejected.destination);
            return Some(Effect::Handle {
                id,
                rejected: rejected.clone(),
            });
        }
        if self.look_again {
            if let Some((id, committed)) = self.ledger.poll_committed() {
                return Some(Effect::Committed(id, committed));
            }
            if self.begin_handler_flush() {
                return Some(Effect::FlushHandler);
            }
            self.look_again = false;
        }
        self.send_next(now)
    }

    /// What goes back to the budget: called once, given back once.
    pub(crate) fn take_released(&mut self) -> Limits {
        std::mem::take(&mut self.released)
    }

    // What is so.

    /// Whether the driver has to look: there is something to do, or another timer to set.
    pub(crate) fn needs_driver(&self) -> bool {
        self.timers_changed || self.released != Limits::default() || self.has_effects()
    }

    /// Whether [`poll_effect`](Self::poll_effect) may have something.
    fn has_effects(&self) -> bool {
        !self.effects.is_empty()
            || self.is_ended()
            || self.rejections.has_next()
            || self.look_again
            || self.can_send()
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.standing, Standing::Ended(_))
    }

    /// Why the sink ended, if it did.
    pub(crate) fn ended(&self) -> Option<&SinkError> {
        match &self.standing {
            Standing::Ended(error) => Some(error),
            Standing::Running | Standing::Closing(_) => None,
        }
    }

    /// Whether more destinations are in use than allowed, so that no record is admitted.
    pub(crate) fn is_crowded(&self) -> bool {
        self.destinations.is_crowded()
    }

    /// What all records without a verdict hold.
    pub(crate) fn held(&self) -> Limits {
        self.held
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            destinations_released: self.counters.destinations_released
                + self.destinations.released(),
            in_flight_records: self.held.items as u64,
            in_flight_bytes: self.held.bytes as u64,
            in_flight_requests: self.requests.len() as u64,
            parked_records: self.requests.parked() as u64,
            pending_verdicts: self.rejections.pending() as u64,
            destinations: self.destinations.len() as u64,
            ..self.counters
        }
    }

    /// What the sink did for each topic, as far as that was asked for.
    pub(crate) const fn destination_stats(&self) -> &BTreeMap<TopicName, DestinationStats> {
        self.figures.all()
    }

    /// What changed of it since the last call.
    #[cfg(feature = "metrics")]
    pub(crate) fn take_changed_destinations(&mut self) -> Vec<(TopicName, DestinationStats)> {
        self.figures.take_changed()
    }

    // Between the parts.

    fn cut(&mut self, now: Instant, cut: Cut) -> CutId {
        let id = self.cuts.add(cut);
        self.look_again = true;
        self.hurry(now);
        id
    }

    /// Whether someone waits, so that no batch waits for company.
    fn is_urgent(&self) -> bool {
        self.room_wanted.is_some() || !self.cuts.is_empty() || self.is_crowded()
    }

    /// Someone waits from now on.
    fn hurry(&mut self, now: Instant) {
        for (_, destination, lane) in std::mem::take(&mut self.lingering) {
            self.enqueue(now, destination, &lane);
        }
        self.watch(now);
        self.timers_changed = true;
    }

    /// Watches for progress exactly while the host waits for something of ours.
    fn watch(&mut self, now: Instant) {
        let wanted = !self.cuts.is_empty() || (self.room_wanted.is_some() && self.held.items > 0);
        self.stall.watch(now, wanted && !self.is_ended());
    }

    /// Something completed.
    fn progress(&mut self, now: Instant) {
        self.stall.progress(now);
        self.watch(now);
    }

    fn begin_handler_flush(&mut self) -> bool {
        let (ledger, held) = (&self.ledger, self.held.items);
        self.cuts.begin_flush(|cut| match cut {
            Cut::Snapshot(epoch) => ledger.is_drained(epoch),
            Cut::Flush | Cut::Close => held == 0,
        })
    }

    fn linger(&self) -> Option<Duration> {
        (!self.settings.linger.is_zero() && !self.is_urgent()).then_some(self.settings.linger)
    }
}
