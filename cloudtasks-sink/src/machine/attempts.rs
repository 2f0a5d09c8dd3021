//! Attempts to create a task, and what their answers mean for its record.

use std::time::Instant;

use connector_core::ledger::Outcome;
use connector_core::{Cause, Rejected, RejectedReason};
use gcp_wire::RpcError;

use super::Machine;
use super::answer::{self, Answer, Meaning};
use super::effect::{Effect, Report};
use super::figures::count_rejected;
use super::inflight::{Create, RecordId, Rejection, Stage, Target};
use super::staged::is_denied;
use crate::error::SinkError;
use crate::naming::Named;
use crate::state::{CONNECTOR, name_in};
use crate::submitted::Submitted;

/// What keeps a task from being created for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failing {
    Service,
    Queue,
}

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
        let is_named = record.create().named != Named::ByService;
        let queue = record.create().queue.clone();
        match answer {
            Answer::Created(name) => {
                self.queue_answers(id);
                self.stats.created += 1;
                self.figures.count(&queue, |stats| stats.created += 1);
                self.streak.end();
                self.settle(now, id, Outcome::Settled, Submitted::Created { name });
            }
            Answer::Failed(error) => match answer::meaning(&error) {
                Meaning::Exists if is_named => {
                    self.queue_answers(id);
                    self.exists(now, id);
                }
                meaning @ (Meaning::Exists
                | Meaning::Transient
                | Meaning::QueueMissing
                | Meaning::Refused
                | Meaning::Hopeless) => {
                    self.figures.failed(error.code());
                    self.fail_attempt(now, id, meaning, error, random);
                }
            },
            // Its name makes another attempt harmless, and its deadline bounds them.
            Answer::Spent { error, .. } | Answer::Unknown(error) if self.stages() => {
                self.retry(now, id, error, Failing::Service, random);
            }
            Answer::Spent { attempts, error } => {
                let pending = self.inflight.len();
                self.fail(SinkError::RetriesSpent {
                    queue,
                    attempts,
                    pending,
                    source: error,
                });
            }
            Answer::Unknown(error) => self.give_up(id, error),
        }
    }
}

impl Machine {
    fn fail_attempt(
        &mut self,
        now: Instant,
        id: RecordId,
        meaning: Meaning,
        error: RpcError,
        random: f64,
    ) {
        match meaning {
            Meaning::Transient if self.asks_for_its_queue(id) => {
                self.hold_back(now, id, error, random);
            }
            Meaning::QueueMissing if self.stages() => self.hold_back(now, id, error, random),
            Meaning::Hopeless if self.stages() && is_denied(&error) => {
                self.hold_back(now, id, error, random);
            }
            Meaning::Transient => self.retry(now, id, error, Failing::Service, random),
            Meaning::QueueMissing => self.retry(now, id, error, Failing::Queue, random),
            Meaning::Refused => {
                self.queue_answers(id);
                self.refuse(id, error);
            }
            // A name that the service gave itself cannot be taken: something is badly wrong.
            Meaning::Exists | Meaning::Hopeless => self.give_up(id, error),
        }
    }

    /// Ends the sink, since no attempt will fare better.
    fn give_up(&mut self, id: RecordId, source: RpcError) {
        let pending = self.inflight.len();
        if let Some(record) = self.inflight.get(id) {
            let queue = record.create().queue.clone();
            self.fail(SinkError::Refused {
                queue,
                pending,
                source,
            });
        }
    }

    pub(super) fn next_create(&mut self, now: Instant) -> Option<Effect> {
        let id = self.next_to_send(now)?;
        let record = self.inflight.get_mut(id)?;
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
            not_after: record.release.map(|release| release.deadline().wall()),
        };
        record.attempts += 1;
        Some(effect)
    }

    /// A task of the record's name exists already.
    fn exists(&mut self, now: Instant, id: RecordId) {
        self.stats.duplicates += 1;
        self.streak.end();
        let mut name = String::new();
        if let Some(record) = self.inflight.get(id) {
            let Create {
                queue,
                request,
                named,
            } = record.create();
            self.figures.count(queue, |stats| stats.duplicates += 1);
            if *named == Named::Minted && record.attempts == 1 && !record.ambiguous {
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
                name = name_in(&request.task());
            }
        }
        self.settle(now, id, Outcome::Settled, Submitted::Duplicate { name });
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
        *failures = failures.saturating_add(1);
        let attempts = *failures;
        // A committed task has until its deadline.
        if attempts >= budget.attempts && record.release.is_none() {
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
        let queue = record.create().queue.clone();
        let source = error.clone();
        let is_committed = record.release.is_some();
        // What was committed is kept aside at worst, and the quarantine has a bound of its own.
        if !is_committed {
            self.streak
                .extend(id, |count| SinkError::TooManyRejections {
                    count,
                    queue,
                    source,
                });
        }
        let rejection = Rejection {
            destination: record.destination().to_owned(),
            reason: RejectedReason::Refused,
            source: Some(Cause::new(error)),
        };
        let payload = record.create().request.task();
        let mut rejected =
            Rejected::new(CONNECTOR, rejection.destination.clone(), rejection.reason)
                .payload(payload);
        rejected.source.clone_from(&rejection.source);
        // The bytes go to the handler; the permit stays until its verdict.
        record.target = if is_committed {
            Target::Refused(record.create().clone(), rejection)
        } else {
            Target::Rejected(rejection)
        };
        record.stage = Stage::WithHandler;
        self.stats.rejected += 1;
        count_rejected(&mut self.figures, &rejected.destination);
        self.handling.push(id, Box::new(rejected));
    }
}
