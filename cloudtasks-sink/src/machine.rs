//! Every decision of the sink, without a clock, a network or a task.
//!
//! A record is *waiting* for a stream, *sent*, *parked* until its next attempt, or *with the
//! handler*, until it has a verdict. The ledger knows to which epoch it belongs; barriers know who
//! waits until everything before some point has its verdict.

mod answer;
mod barrier;
mod effect;
mod handling;
mod inflight;
mod parking;
mod phase;
mod settings;
mod throttle;

pub(crate) use answer::Answer;
pub(crate) use effect::{Effect, Report};
pub(crate) use handling::JobId;
pub(crate) use inflight::{Create, RecordId};
pub use settings::RetryBudget;
pub(crate) use settings::Settings;

use std::collections::VecDeque;
use std::time::Instant;

use connector_core::ledger::{CommitId, Ledger, Outcome, Standing};
use connector_core::{
    Cause, CheckpointError, Epoch, Limits, ProgressWatch, Rejected, RejectedReason, Verdict,
};
use gcp_wire::RpcError;
use gcp_wire::proto::tasks::Task;
use prost::Message;

use crate::Stats;
use crate::error::SinkError;
use crate::naming::Named;
use crate::state::CONNECTOR;
use crate::submitted::Submitted;
use answer::Meaning;
use barrier::{Barriers, Waiter};
use handling::Handling;
use inflight::{InFlight, Record, Rejection, Stage, Target};
use parking::Parking;
use phase::Phase;
use throttle::Throttle;

/// The sink without its shell.
#[derive(Debug)]
pub(crate) struct Machine {
    settings: Settings,
    phase: Phase,
    ledger: Ledger<RecordId>,
    inflight: InFlight,
    parking: Parking,
    handling: Handling,
    barriers: Barriers,
    /// The outcome of the host's flush, until it is fetched.
    flushed: Option<Result<(), CheckpointError>>,
    watch: ProgressWatch,
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

/// What keeps a task from being created for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failing {
    Service,
    Queue,
}

/// What the host asks.
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
            parking: Parking::default(),
            handling: Handling::default(),
            barriers: Barriers::default(),
            flushed: None,
            watch: ProgressWatch::new(settings.progress_timeout),
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

    /// Whether the sink takes records. After a terminal error the first call gets the error itself.
    pub(crate) fn check_open(&mut self) -> Result<(), SinkError> {
        self.phase.check_open()
    }

    /// Takes a task to create. `submitted` asks for an [`Effect::Submitted`].
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        create: Create,
        submitted: bool,
    ) -> Result<RecordId, SinkError> {
        self.phase.check_open()?;
        let held = Limits::new(1, create.request.bytes.len());
        Ok(self.insert(now, held, Target::Task(create), submitted))
    }

    /// Takes a record that was rejected before it could be sent.
    pub(crate) fn reject(
        &mut self,
        now: Instant,
        rejected: Rejected,
        submitted: bool,
    ) -> Result<RecordId, SinkError> {
        self.phase.check_open()?;
        let bytes = rejected.payload.as_ref().map_or(0, bytes::Bytes::len);
        let rejection = Rejection {
            destination: rejected.destination.clone(),
            reason: rejected.reason,
            source: rejected.source.clone(),
        };
        let held = Limits::new(1, bytes);
        let id = self.insert(now, held, Target::Rejected(rejection), submitted);
        self.stats.rejected += 1;
        self.handling.push(id, Box::new(rejected));
        Ok(id)
    }

    /// Counts a record that makes no task.
    pub(crate) const fn skip(&mut self) {
        self.stats.skipped += 1;
    }

    /// Seals the open epoch; an [`Effect::Snapshot`] follows when everything in it has its verdict
    /// and the failure handler has flushed.
    pub(crate) fn snapshot(&mut self, now: Instant, epoch: Epoch) -> Result<(), CheckpointError> {
        self.phase.check_alive()?;
        self.ledger.seal(epoch)?;
        self.barriers
            .add(Waiter::Snapshot(epoch), self.inflight.next_id());
        self.advance(now);
        Ok(())
    }

    /// Commits; an [`Effect::Committed`] follows when everything in it has its verdict.
    pub(crate) fn commit(&mut self, epoch: Epoch) -> Result<CommitId, CheckpointError> {
        self.phase.check_alive()?;
        let commit = self.ledger.commit(epoch)?;
        self.report_commits();
        Ok(commit.id)
    }

    /// Folds an epoch into the next one; its snapshot resolves to `Aborted`.
    pub(crate) fn abort(&mut self, epoch: Epoch) {
        if self.phase.check_alive().is_ok() && self.ledger.abort(epoch) {
            self.give_up_snapshot(epoch);
        }
    }

    /// Starts waiting until everything accepted so far has its verdict.
    pub(crate) fn start_flush(&mut self, now: Instant) {
        self.cancel_flush();
        if self.phase.has_ended() {
            return;
        }
        self.barriers.add(Waiter::Flush, self.inflight.next_id());
        self.advance(now);
    }

    /// Stops waiting for a flush.
    pub(crate) fn cancel_flush(&mut self) {
        self.barriers.remove(Waiter::Flush);
        self.flushed = None;
    }

    /// The outcome of the flush, once there is one. The end of the sink is its outcome too.
    pub(crate) fn poll_flushed(&mut self) -> Option<Result<(), SinkError>> {
        if let Some(outcome) = self.flushed.take() {
            return Some(outcome.map_err(|source| SinkError::HandlerFlush { source }));
        }
        self.phase.ended()
    }

    /// Lets the sink end as soon as everything accepted has its verdict, and by its budget at the
    /// latest. Asked twice, the first call's deadline stands. Answers whether this was the first.
    pub(crate) fn close(&mut self, now: Instant) -> bool {
        let started = self.phase.start_closing(now, self.settings.close_timeout);
        if started {
            self.barriers.add(Waiter::Close, self.inflight.next_id());
            self.advance(now);
        }
        started
    }

    /// How the sink ended; nothing while it has not.
    pub(crate) fn poll_closed(&mut self) -> Option<Result<(), SinkError>> {
        self.phase.ended()
    }

    /// Ends the sink. What has no verdict never gets one.
    pub(crate) fn fail(&mut self, error: SinkError) {
        if self.phase.fail(error) {
            self.end();
        }
    }
}

/// What happened.
impl Machine {
    /// CreateTask was answered. `random` is uniform in `0.0..1.0`.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        id: RecordId,
        answer: Answer,
        random: f64,
    ) {
        let Some(record) = self.inflight.answered(id) else {
            return;
        };
        let queue = record.create().queue.clone();
        let is_named = record.create().named != Named::ByService;
        match answer {
            Answer::Created(name) => {
                self.stats.created += 1;
                self.settle(now, id, Outcome::Settled, Submitted::Created { name });
            }
            Answer::Failed(error) => match answer::meaning(&error) {
                Meaning::Exists if is_named => self.exists(now, id),
                Meaning::Transient => self.retry(now, id, error, Failing::Service, random),
                Meaning::QueueMissing => self.retry(now, id, error, Failing::Queue, random),
                Meaning::Refused => self.refuse(id, error),
                // A name that the service gave itself cannot be taken: something is badly wrong.
                Meaning::Exists | Meaning::Hopeless => {
                    let pending = self.inflight.len();
                    self.fail(SinkError::Denied {
                        queue,
                        pending,
                        source: error,
                    });
                }
            },
        }
    }

    /// The failure handler answered for a rejected record.
    pub(crate) fn handle_verdict(
        &mut self,
        now: Instant,
        job: JobId,
        verdict: Result<Verdict, CheckpointError>,
    ) {
        let Some(id) = self.handling.verdict(job) else {
            return;
        };
        match verdict {
            Ok(Verdict::Drop) => {
                let Rejection {
                    reason,
                    source: cause,
                    ..
                } = self.rejection(id);
                self.settle(
                    now,
                    id,
                    Outcome::Retained,
                    Submitted::Rejected { reason, cause },
                );
            }
            // A verdict that this build does not know does not say that the record is dealt with.
            Ok(Verdict::Fail | _) => {
                let Rejection {
                    destination,
                    reason,
                    source,
                } = self.rejection(id);
                self.fail(SinkError::Rejected {
                    destination,
                    reason,
                    source,
                });
            }
            Err(source) => self.fail(SinkError::Handler { source }),
        }
    }

    /// The failure handler answered to a flush.
    pub(crate) fn handle_handler_flushed(
        &mut self,
        now: Instant,
        job: JobId,
        outcome: Result<(), CheckpointError>,
    ) {
        if !self.handling.flushed(job, outcome.is_ok()) {
            return;
        }
        for (waiter, outcome) in self.barriers.flushed(job, &outcome) {
            self.pass(waiter, outcome);
        }
        self.advance(now);
    }

    /// The time that `poll_timeout` named has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.phase.has_ended() {
            return;
        }
        while let Some(id) = self.parking.pop_due(now) {
            self.inflight.resume(id);
        }
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
        if let Some(effect) = self.effects.pop_front() {
            return Some(effect);
        }
        if self.freed != Limits::default() {
            return Some(Effect::Release(std::mem::take(&mut self.freed)));
        }
        if std::mem::take(&mut self.end_untold) {
            return Some(Effect::Ended);
        }
        if let Some((job, id, mut rejected)) = self.handling.next(now) {
            rejected.epoch =
                self.inflight
                    .get(id)
                    .and_then(|record| match self.ledger.standing(record.place) {
                        Standing::Sealed(epoch) | Standing::Settling(epoch) => Some(epoch),
                        Standing::Open | Standing::Gone | _ => None,
                    });
            return Some(Effect::Handle { job, rejected });
        }
        if let Some(job) = self.handling.next_flush() {
            return Some(Effect::FlushHandler { job });
        }
        self.next_create()
    }

    /// When to call `handle_timeout`.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.phase.has_ended() {
            return None;
        }
        [
            self.parking.next_due(),
            self.handling.deadline(self.settings.progress_timeout),
            self.watch.deadline(),
            self.phase.deadline(),
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
        Stats {
            in_flight: number(sent),
            parked: number(parked),
            waiting: number(waiting),
            with_handler: number(self.inflight.len() - sent - parked - waiting),
            pending: number(self.inflight.len()),
            pending_bytes: number(self.inflight.held().bytes),
            ..self.stats
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.inflight.len()
    }

    /// Checks what only this type can break.
    #[cfg(test)]
    fn check_invariants(&self) {
        self.ledger.check_invariants();
        self.inflight.check_invariants();
        let mut parked = 0;
        let mut with_handler = Vec::new();
        for (id, record) in self.inflight.iter() {
            assert_ne!(
                self.ledger.standing(record.place),
                Standing::Gone,
                "it has no verdict"
            );
            match record.stage {
                Stage::Waiting | Stage::Sent => {}
                Stage::Parked(due) => {
                    assert!(
                        self.parking.contains(id, due),
                        "a parked record has a due time"
                    );
                    parked += 1;
                }
                Stage::WithHandler => with_handler.push(id),
            }
        }
        assert_eq!(parked, self.parking.len(), "nothing else is parked");
        let mut handled = self.handling.records();
        handled.sort_unstable();
        assert_eq!(
            with_handler, handled,
            "the handler has the rejected ones and no other"
        );
        if self.phase.has_ended() {
            assert!(self.inflight.is_empty() && self.barriers.is_empty());
            assert_eq!(self.poll_timeout(), None, "an end waits for nothing");
        } else {
            assert_eq!(
                self.ledger.len(),
                self.inflight.len(),
                "the ledger knows the same records"
            );
            assert_eq!(self.watch.deadline().is_some(), !self.inflight.is_empty());
        }
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
    fn insert(&mut self, now: Instant, held: Limits, target: Target, submitted: bool) -> RecordId {
        let place = self.ledger.add(self.inflight.next_id());
        self.stats.accepted += 1;
        self.watch.arm(now);
        self.inflight
            .insert(Record::new(place, held, target, submitted))
    }

    fn next_create(&mut self) -> Option<Effect> {
        let (id, record) = self.inflight.send_next()?;
        let Create {
            queue,
            request,
            named,
        } = record.create();
        let bytes = request.bytes.clone();
        self.stats.attempts += 1;
        if record.attempts == 0 {
            self.stats.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        } else {
            self.stats.retries += 1;
            if record.ambiguous && *named == Named::ByService {
                self.stats.ambiguous_retries += 1;
            }
        }
        let effect = Effect::Create {
            record: id,
            queue: queue.clone(),
            request: bytes,
        };
        record.attempts += 1;
        Some(effect)
    }

    /// A task of the record's name exists already.
    fn exists(&mut self, now: Instant, id: RecordId) {
        self.stats.duplicates += 1;
        let mut name = String::new();
        if let Some(record) = self.inflight.get(id) {
            let Create {
                queue,
                request,
                named,
            } = record.create();
            if *named == Named::Minted && record.attempts == 1 {
                self.stats.unexpected_duplicates += 1;
                if let Some(times) = self.strange.count(now) {
                    let report = Report::UnexpectedDuplicate {
                        queue: queue.clone(),
                        times,
                    };
                    self.effects.push_back(Effect::Report(report));
                }
            }
            if record.submitted {
                // Our own encoding always decodes.
                name = Task::decode(request.task.clone())
                    .map(|task| task.name)
                    .unwrap_or_default();
            }
        }
        self.settle(now, id, Outcome::Settled, Submitted::Duplicate { name });
    }

    fn settle(&mut self, now: Instant, id: RecordId, outcome: Outcome, submitted: Submitted) {
        let Some(record) = self.inflight.remove(id) else {
            return;
        };
        self.ledger.settle(record.place, outcome);
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

    fn retry(
        &mut self,
        now: Instant,
        id: RecordId,
        error: RpcError,
        failing: Failing,
        random: f64,
    ) {
        let pending = self.inflight.len();
        let Some(record) = self.inflight.get_mut(id) else {
            return;
        };
        let queue = record.create().queue.clone();
        let (failures, budget) = match failing {
            Failing::Service => (&mut record.transient, self.settings.transient),
            Failing::Queue => (&mut record.missing, self.settings.missing),
        };
        *failures += 1;
        let attempts = *failures;
        if attempts >= budget.attempts {
            self.fail(match failing {
                Failing::Service => SinkError::RetriesSpent {
                    queue,
                    attempts,
                    pending,
                    source: error,
                },
                Failing::Queue => SinkError::QueueMissing {
                    queue,
                    attempts,
                    pending,
                    source: error,
                },
            });
            return;
        }
        record.ambiguous |= error.is_ambiguous();
        // The server's own wish counts, but not beyond what the host chose as the longest delay.
        let wish = error.retry_after().unwrap_or_default().min(budget.cap);
        let delay = budget.backoff().jittered(attempts, random).max(wish);
        // Beyond the end of the clock there is no later; at once is the one time that comes.
        let due = now.checked_add(delay).unwrap_or(now);
        record.stage = Stage::Parked(due);
        self.parking.park(id, due);
        if let Some(failures) = self.retrying.count(now) {
            self.effects.push_back(Effect::Report(Report::Retrying {
                queue,
                failures,
                error,
            }));
        }
    }

    /// The service refused this one task.
    fn refuse(&mut self, id: RecordId, error: RpcError) {
        let Some(record) = self.inflight.get_mut(id) else {
            return;
        };
        let rejection = Rejection {
            destination: record.destination().to_owned(),
            reason: RejectedReason::Refused,
            source: Some(Cause::new(error)),
        };
        let payload = record.create().request.task.clone();
        let mut rejected =
            Rejected::new(CONNECTOR, rejection.destination.clone(), rejection.reason)
                .payload(payload);
        rejected.source.clone_from(&rejection.source);
        // The bytes go to the handler; the permit stays until its verdict.
        record.target = Target::Rejected(rejection);
        record.stage = Stage::WithHandler;
        self.stats.rejected += 1;
        self.handling.push(id, Box::new(rejected));
    }

    /// What the handler's verdict is about.
    fn rejection(&self, id: RecordId) -> Rejection {
        match self.inflight.get(id).map(|record| &record.target) {
            Some(Target::Rejected(rejection)) => rejection.clone(),
            Some(Target::Task(_)) | None => {
                unreachable!("the handler has a verdict on rejected records only")
            }
        }
    }

    fn give_up_snapshot(&mut self, epoch: Epoch) {
        if self.barriers.remove(Waiter::Snapshot(epoch)) {
            let outcome = Err(CheckpointError::Aborted { epoch });
            self.effects.push_back(Effect::Snapshot { epoch, outcome });
        }
    }

    /// Lets everyone pass who waits for nothing any more.
    fn advance(&mut self, now: Instant) {
        self.report_commits();
        let oldest = self.inflight.oldest().map(|(id, _)| id);
        if self.handling.is_durable() {
            while let Some(waiter) = self.barriers.pop_passed(oldest) {
                self.pass(waiter, Ok(()));
            }
        } else {
            let handling = &mut self.handling;
            self.barriers.start_flush(oldest, || handling.flush(now));
        }
        // A snapshot may still wait for an earlier flush of the handler than closing does.
        if self.may_end && self.barriers.is_empty() && self.phase.finish_closing() {
            self.end();
        }
    }

    fn pass(&mut self, waiter: Waiter, outcome: Result<(), CheckpointError>) {
        match waiter {
            Waiter::Snapshot(epoch) => {
                let outcome = outcome.map_err(|error| CheckpointError::Incomplete {
                    epoch,
                    cause: Cause::new(error),
                });
                self.effects.push_back(Effect::Snapshot { epoch, outcome });
            }
            Waiter::Flush => {
                self.flushed = Some(outcome);
                self.effects.push_back(Effect::Wake);
            }
            Waiter::Close => match outcome {
                Ok(()) => self.may_end = true,
                Err(source) => self.fail(SinkError::HandlerFlush { source }),
            },
        }
    }

    fn report_commits(&mut self) {
        while let Some((commit, committed)) = self.ledger.poll_committed() {
            self.effects
                .push_back(Effect::Committed { commit, committed });
        }
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
        self.handling.clear();
        self.barriers.clear();
        self.watch.disarm();
        self.effects.push_back(Effect::Wake);
        self.end_untold = true;
    }
}

#[cfg(test)]
mod tests;
