//! Every decision of the sink, without a clock, a network or a task.
//!
//! A record is *waiting* for a stream, *sent*, *parked* until its next attempt, or *with the
//! handler*, until it has a verdict. The ledger knows to which epoch it belongs; barriers know who
//! waits until everything before some point has its verdict.

mod answer;
mod attempts;
mod barrier;
mod batch;
mod batching;
mod cuts;
mod effect;
mod figures;
mod gate;
mod handling;
mod inflight;
mod intake;
#[cfg(any(test, fuzzing))]
mod invariants;
mod looking;
mod parking;
mod phase;
mod room;
mod sending;
mod settings;
mod shortage;
mod staged;
mod streak;
mod throttle;
mod verdicts;

pub(crate) use answer::Answer;
pub(crate) use batch::CallId;
pub(crate) use effect::{Effect, Report};
pub(crate) use gate::Pacing;
pub use gate::Ramp;
pub(crate) use handling::JobId;
pub(crate) use inflight::{Create, RecordId};
pub(crate) use settings::Settings;
pub use settings::{Batch, RetryBudget};
pub(crate) use staged::{Release, RestoredTasks, StagedSettings};

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use connector_core::ledger::{Ledger, Outcome};
use connector_core::{Cause, CheckpointError, Epoch, Limits, ProgressWatch};
use gcp_wire::{Code, QueueName};

use crate::error::SinkError;
use crate::submitted::Submitted;
use crate::{DestinationStats, Stats};
use barrier::Barriers;
use batch::Batches;
use figures::Figures;
use gate::Gate;
use handling::Handling;
use inflight::InFlight;
use parking::Parking;
use phase::Phase;
use room::RoomWait;
use shortage::Shortage;
use staged::Staged;
use streak::Streak;
use throttle::Throttle;

/// The sink without its shell.
#[derive(Debug)]
pub(crate) struct Machine {
    settings: Settings,
    phase: Phase,
    ledger: Ledger<RecordId>,
    inflight: InFlight,
    gate: Gate,
    parking: Parking,
    /// The calls that create many tasks, where records are not created one by one.
    batches: Option<Batches>,
    /// What is part of the state until its commit, where tasks are created on commit.
    staged: Option<Staged>,
    handling: Handling,
    barriers: Barriers,
    /// The outcome of the host's flush, until it is fetched.
    flushed: Option<Result<(), CheckpointError>>,
    watch: ProgressWatch,
    room: RoomWait,
    shortage: Shortage,
    streak: Streak,
    figures: Figures,
    effects: VecDeque<Effect>,
    freed: Limits,
    stats: Stats,
    /// Everything accepted has its verdict and the handler has flushed, while closing.
    may_end: bool,
    /// The end came and was not told yet.
    end_untold: bool,
    /// Records that had no verdict when the sink ended.
    abandoned: usize,
    retrying: Throttle,
    strange: Throttle,
}

impl Machine {
    /// A machine that goes on above `restored`, the newest epoch that was durable.
    pub(crate) fn new(settings: Settings, restored: Option<Epoch>) -> Self {
        let ledger = restored.map_or_else(Ledger::new, |epoch| {
            let (mut ledger, _nothing) = Ledger::restore(epoch, Vec::new());
            // The commit of nothing, which nobody waits for.
            let _done = ledger.poll_committed();
            ledger
        });
        Self {
            settings,
            phase: Phase::Running,
            ledger,
            inflight: InFlight::new(settings.streams),
            gate: Gate::new(settings.queue_looks, settings.pacing),
            parking: Parking::default(),
            batches: None,
            staged: None,
            handling: Handling::default(),
            barriers: Barriers::default(),
            flushed: None,
            watch: ProgressWatch::new(settings.progress_timeout),
            room: RoomWait::default(),
            shortage: Shortage::default(),
            streak: Streak::new(settings.max_consecutive_rejections),
            figures: Figures::new(settings.destination_stats),
            effects: VecDeque::new(),
            freed: Limits::default(),
            stats: Stats::default(),
            may_end: false,
            end_untold: false,
            abandoned: 0,
            retrying: Throttle::default(),
            strange: Throttle::default(),
        }
    }

    /// Ends the sink. What has no verdict never gets one.
    pub(crate) fn fail(&mut self, error: SinkError) {
        if self.phase.fail(error) {
            self.end();
        }
    }

    /// The host waits for room.
    pub(crate) fn await_room(&mut self, now: Instant) {
        if !self.phase.has_ended() {
            self.room.start(now);
            self.host_waits(now);
        }
    }

    /// The host has got room.
    pub(crate) fn get_room(&mut self) {
        self.room.end();
        self.host_goes_on();
    }

    /// Whether the sink takes records. After a terminal error the first call gets the error itself.
    pub(crate) fn check_open(&mut self) -> Result<(), SinkError> {
        self.phase.check_open()
    }
}

/// What happened.
impl Machine {
    /// The time that `poll_timeout` named has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.phase.has_ended() {
            return;
        }
        while let Some(id) = self.parking.pop_due(now) {
            self.inflight.resume(id);
        }
        if let Some(batches) = &mut self.batches {
            batches.handle_timeout(now);
        }
        self.gate.handle_timeout(now);
        if self.shortage.overdue(now) {
            let (streams, waiting) = (self.settings.streams, self.inflight.len());
            let report = Report::FewStreams { streams, waiting };
            self.effects.push_back(Effect::Report(report));
        }
        if let Some(after) = self.room.overdue(now) {
            let report = Report::WaitingForRoom { after };
            self.effects.push_back(Effect::Report(report));
        }
        self.handle_staged_timeout(now);
        let pending = self.inflight.len();
        let limit = self.settings.progress_timeout;
        if let Some(since) = self.handling.oldest()
            && now.saturating_duration_since(since) >= limit
        {
            self.fail(SinkError::HandlerStalled {
                pending,
                after: limit,
            });
        } else if let Some(after) = self.watch.expired(now) {
            let oldest = self.inflight.oldest();
            let destination = oldest.map(|(_, record)| record.destination().to_owned());
            let destination = destination.unwrap_or_default();
            self.fail(SinkError::Stalled {
                destination,
                pending,
                after,
            });
        } else if let Some(after) = self.phase.close_expired(now) {
            self.fail(SinkError::CloseExpired { pending, after });
        }
    }
}

/// What to do next.
impl Machine {
    /// The next thing to do. To be drained after every call of the others.
    pub(crate) fn poll_effect(&mut self, now: Instant) -> Option<Effect> {
        if let Some(effect) = self.next_told() {
            return Some(effect);
        }
        let next = self
            .next_for_handler(now)
            .or_else(|| self.next_look())
            .or_else(|| {
                if self.batches.is_some() {
                    self.next_batch(now)
                } else {
                    self.next_create(now)
                }
            })
            // Looking for the next one may have ended the sink, or found a queue to look at first.
            .or_else(|| self.next_told())
            .or_else(|| self.next_look());
        if next.is_none() {
            let is_short = self.lacks_streams();
            self.shortage.observe(now, is_short);
        }
        next
    }

    /// The next thing that is so, and only has to be told.
    fn next_told(&mut self) -> Option<Effect> {
        if let Some(effect) = self.effects.pop_front() {
            return Some(effect);
        }
        if self.freed != Limits::default() {
            return Some(Effect::Release(std::mem::take(&mut self.freed)));
        }
        std::mem::take(&mut self.end_untold).then_some(Effect::Ended)
    }

    /// When to call `handle_timeout`.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.phase.has_ended() {
            return None;
        }
        [
            self.parking.next_due(),
            self.batches.as_ref().and_then(Batches::next_due),
            self.gate.next_look_due(),
            // Without a stream, an answer decides.
            self.gate.next_due().filter(|_| self.inflight.has_stream()),
            self.shortage.deadline(),
            self.handling.deadline(self.settings.progress_timeout),
            self.watch.deadline(),
            self.phase.deadline(),
            self.room.deadline(),
            self.staged_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

/// What is so.
impl Machine {
    pub(crate) fn stats(&self) -> Stats {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let sent = self.inflight.sent();
        let (parked, waiting) = (self.parking.len(), self.inflight.waiting());
        let aside = self.gate.aside();
        let states = self.gate.states();
        let stopped = states.filter(|(_, state)| state.is_stopped()).count();
        let ((held, kept), staged) = (self.held_and_kept(), self.inflight.staged());
        Stats {
            in_flight: number(sent),
            parked: number(parked),
            waiting: number(waiting),
            held_back: number(aside),
            staged: number(staged),
            held: number(held),
            kept: number(kept),
            with_handler: number(
                self.inflight.len() - sent - parked - waiting - aside - staged - held,
            ),
            pending: number(self.inflight.len()),
            pending_bytes: number(self.inflight.held().bytes),
            consecutive_rejections: self.streak.length().into(),
            queues_stopped: number(stopped),
            window_used_percent: self.window_used(),
            ..self.stats
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.inflight.len()
    }

    /// The numbers of the first queues, as many as were asked for.
    pub(crate) const fn destination_stats(&self) -> &BTreeMap<QueueName, DestinationStats> {
        self.figures.by_destination()
    }

    /// Failed attempts by what the service, or the connection, said.
    pub(crate) const fn failures(&self) -> &BTreeMap<Code, u64> {
        self.figures.failures()
    }

    /// The numbers of queues, and of failures, that changed since the last call.
    #[cfg(feature = "metrics")]
    pub(crate) const fn figures(&mut self) -> &mut Figures {
        &mut self.figures
    }

    /// Why the sink takes nothing any more.
    pub(crate) fn cause(&self) -> Cause {
        self.phase.cause()
    }

    /// The error the sink ended with, and how many records had no verdict then.
    pub(crate) fn failure(&self) -> Option<(usize, SinkError)> {
        self.phase
            .error()
            .map(|error| (self.abandoned, error.clone()))
    }
}

impl Machine {
    fn settle(&mut self, now: Instant, id: RecordId, outcome: Outcome, submitted: Submitted) {
        let Some(record) = self.inflight.remove(id) else {
            return;
        };
        self.ledger.settle(record.place, outcome);
        self.stage_moved(now, id);
        self.free(record.held);
        if record.submitted {
            self.effects.push_back(Effect::Submitted {
                record: id,
                outcome: submitted,
            });
        }
        self.watch.progress(now);
        if self.inflight.is_empty() {
            self.watch.disarm();
        }
        self.advance(now);
    }

    fn free(&mut self, held: Limits) {
        self.freed.items += held.items;
        self.freed.bytes += held.bytes;
    }

    /// Forgets what can have no verdict any more. The receipts still open learn of the end from
    /// [`Effect::Ended`].
    fn end(&mut self) {
        self.abandoned = self.inflight.len();
        let held = self.inflight.clear();
        self.free(held);
        self.parking.clear();
        self.gate.clear();
        self.shortage = Shortage::default();
        if let Some(batches) = &mut self.batches {
            batches.clear();
        }
        self.handling.clear();
        self.barriers.clear();
        self.clear_stage();
        self.watch.disarm();
        self.room.end();
        self.effects.push_back(Effect::Wake);
        self.end_untold = true;
    }
}

#[cfg(test)]
mod tests;
