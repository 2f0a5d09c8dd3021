//! The sink as a pure machine: what it holds, and what happens next.
//!
//! Knows no clock, no random numbers, no tasks and no network. The host's calls are plain verbs;
//! what happened outside comes in through `handle_*`; what is to be done comes out of
//! [`poll_effect`](Machine::poll_effect), and when to look again out of
//! [`poll_timeout`](Machine::poll_timeout).
//!
//! A record is in exactly one place from `accept` to its verdict: in the stage (of a staged sink),
//! in its backlog, in an open batch, in a closed one, in a request, with the failure handler, or in
//! quarantine.

mod answer;
mod backlog;
mod batch;
mod cuts;
mod destinations;
mod dismissed;
mod effect;
mod figures;
mod host;
mod inflight;
mod intake;
#[cfg(any(test, fuzzing))]
mod invariants;
mod isolate;
mod order;
mod quarantine;
mod rejections;
mod repair;
mod send;
mod stage;
mod staging;
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
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Delivery, SinkError, Stats,
    settings::Settings,
    staged::{Entry, Quarantined, Staged},
    state::Named,
};
use backlog::Backlog;
use batch::Spares;
use connector_core::{
    Epoch, Limits,
    ledger::{CommitId, Ledger},
};
use cuts::{Cut, Cuts};
use destinations::{DestinationId, Destinations};
use dismissed::Dismissed;
use figures::{Figures, count_rejected};
use inflight::Requests;
use order::LaneKey;
use quarantine::Quarantine;
use rejections::Rejections;
use stage::Stage;
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
    /// The records' places and verdicts, and a staged sink's messages.
    ledger: Ledger<Entry>,
    stage: Stage,
    backlog: Backlog,
    dismissed: Dismissed,
    quarantine: Quarantine,
    /// Commits whose outcome was not told, with their epoch.
    commits: BTreeMap<CommitId, Epoch>,
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
    /// Watches that a host with a full stage takes checkpoints.
    stage_full: Stall,
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

/// What a saved state leaves to do.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) epoch: Epoch,
    /// Committed, by being restored.
    pub(crate) messages: Vec<Arc<Staged>>,
    pub(crate) quarantined: Vec<Arc<Quarantined>>,
}

impl Machine {
    /// A machine that goes on after `restored`, if anything, which is committed.
    pub(crate) fn new(settings: Settings, restored: Option<Resumed>) -> (Self, Option<CommitId>) {
        let mut backlog = Backlog::default();
        let mut held = Limits::default();
        let mut counters = Stats::default();
        let (ledger, commit, kept) = match restored {
            Some(Resumed {
                epoch,
                messages,
                quarantined,
            }) => {
                counters.records_restored = messages.len() as u64;
                held.items = messages.len();
                held.bytes = messages.iter().map(|message| message.bytes).sum();
                let entries = messages.into_iter().map(Entry::Staged).collect();
                let (ledger, commit) = Ledger::restore(epoch, entries);
                for (place, entry) in commit.released.iter().flat_map(|segment| segment.iter()) {
                    if let Entry::Staged(staged) = entry {
                        backlog.push(&staged.topic, place, || false);
                    }
                }
                (ledger, Some((commit.id, epoch)), quarantined)
            }
            None => (Ledger::new(), None, Vec::new()),
        };
        let machine = Self {
            standing: Standing::Running,
            ledger,
            stage: Stage::new(settings.stage),
            backlog,
            dismissed: Dismissed::new(settings.retry.delays),
            quarantine: Quarantine::new(settings.quarantine, kept),
            commits: commit.into_iter().collect(),
            destinations: Destinations::new(settings.max_destinations, settings.idle_destinations),
            ready: VecDeque::new(),
            lingering: BTreeSet::new(),
            requests: Requests::default(),
            repairs: BTreeSet::new(),
            rejections: Rejections::default(),
            cuts: Cuts::default(),
            look_again: commit.is_some(),
            stall: Stall::new(settings.progress_timeout),
            stage_full: Stall::new(settings.progress_timeout),
            spares: Spares::default(),
            effects: VecDeque::new(),
            next_reply: 0,
            held,
            released: Limits::default(),
            room_wanted: None,
            room_told: false,
            timers_changed: false,
            counters,
            figures: Figures::new(settings.destination_stats),
            settings,
        };
        (machine, commit.map(|(id, _)| id))
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
            count_rejected(&mut self.figures, &rejected.destination);
            return Some(Effect::Handle {
                id,
                rejected: rejected.clone(),
            });
        }
        if self.look_again {
            if let Some(effect) = self.next_committed() {
                return Some(effect);
            }
            if self.begin_handler_flush() {
                return Some(Effect::FlushHandler);
            }
            self.look_again = false;
            // What a restore commits is awaited too, from the first look on: `new` knows no clock.
            self.watch(now);
        }
        if self.can_move() {
            self.move_backlog(now);
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
            || self.can_move()
            || self.can_send()
    }

    pub(crate) fn delivery(&self) -> Delivery {
        self.settings.delivery
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

    /// What the sink itself has to find a verdict for: everything but what waits for a commit.
    pub(crate) fn owed(&self) -> usize {
        self.held.items.saturating_sub(self.stage.waiting().items)
    }

    pub(crate) fn stats(&self) -> Stats {
        let staged = self.stage.waiting();
        Stats {
            staged_records: staged.items as u64,
            staged_bytes: staged.bytes as u64,
            quarantined_records: self.quarantine.kept().len() as u64,
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

    // Between the parts.

    fn cut(&mut self, now: Instant, cut: Cut, named: Named) -> CutId {
        let id = self.cuts.add(cut, self.rejections.arrivals(), named);
        self.look_again = true;
        self.hurry(now);
        id
    }

    /// The next commit whose outcome is known.
    fn next_committed(&mut self) -> Option<Effect> {
        loop {
            let (id, committed) = self.ledger.poll_committed()?;
            // One that was given up is not told again.
            if self.commits.remove(&id).is_some() {
                return Some(Effect::Committed(id, Ok(committed)));
            }
        }
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

    /// Watches for progress exactly while the host waits for something of ours: in a staged sink
    /// also for what it has committed. A full stage waits for the host.
    fn watch(&mut self, now: Instant) {
        let (running, owed) = (!self.is_ended(), self.owed() > 0);
        let awaited = self.room_wanted.is_some() || self.is_staged();
        let wanted = !self.cuts.is_empty() || (awaited && owed);
        self.stall.watch(now, wanted && running);
        if self.is_staged() {
            let full = self.room_wanted.is_some() && !owed && self.held.items > 0;
            self.stage_full.watch(now, full && running);
            let aside = self.quarantine.owed();
            let only_aside =
                aside > 0 && !self.commits.is_empty() && self.ledger.settling_len() == aside;
            self.quarantine.watch(now, only_aside && running);
        }
    }

    /// Something completed.
    fn progress(&mut self, now: Instant) {
        self.stall.progress(now);
        self.watch(now);
    }

    fn begin_handler_flush(&mut self) -> bool {
        let (ledger, rejections) = (&self.ledger, &self.rejections);
        let (owed, staged) = (self.owed(), self.is_staged());
        let wanted = self.dismissed.wants_flush();
        let begun = self.cuts.begin_flush(wanted, |cut, behind| match cut {
            Cut::Snapshot(_) | Cut::Flush if staged => rejections.decided(behind),
            Cut::Snapshot(epoch) => ledger.is_drained(epoch),
            Cut::Flush | Cut::Close => owed == 0,
        });
        if begun {
            self.dismissed.begin_flush();
        }
        begun
    }

    /// How long a batch waits for company. Never in a staged sink: all of a commit is there at once,
    /// and its host waits for it.
    fn linger(&self) -> Option<Duration> {
        let lingers = !self.settings.linger.is_zero() && !self.is_staged() && !self.is_urgent();
        lingers.then_some(self.settings.linger)
    }
}
