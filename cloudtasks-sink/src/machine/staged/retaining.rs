//! Committed tasks that are not created: refused ones, and those for which it is too late.

use std::collections::BTreeSet;
use std::time::Instant;

use connector_core::ledger::{Outcome, Standing};
use connector_core::{Cause, CheckpointError, Epoch};

use super::super::Machine;
use super::super::effect::{Effect, Report};
use super::super::inflight::{RecordId, Rejection, Stage, Target};
use crate::error::SinkError;
use crate::state::{KeptReason, KeptTask, StagedTask};
use crate::submitted::Submitted;

impl Machine {
    /// It is too late for this record, which has a stream.
    pub(super) fn expire(&mut self, now: Instant, id: RecordId) {
        if self.inflight.answered(id).is_some() {
            self.keep_late(now, id);
        }
    }

    /// It is too late for this record, which is neither staged, waiting nor sent.
    fn keep_late(&mut self, now: Instant, id: RecordId) {
        let asked = self.asks_for_its_queue(id);
        let record = self.inflight.get(id).map(|record| record.create());
        let queue = record.map(|create| create.queue.clone());
        self.keep(now, id, KeptReason::Expired, None);
        if asked && let Some(queue) = queue {
            self.ask_for(&queue);
        }
    }

    /// Looks at everything that waits for its turn in the pace of its queue.
    pub(super) fn expire_aside(&mut self, now: Instant) {
        let aside = self.gate.records().into_iter();
        let late: BTreeSet<RecordId> = aside
            .filter(|id| self.is_over(now, self.deadline_of(std::iter::once(*id))))
            .collect();
        self.gate.withdraw(now, &late);
        for id in late {
            self.keep_late(now, id);
        }
    }

    /// Looks at everything that waits for a stream.
    pub(super) fn expire_waiting(&mut self, now: Instant) {
        for id in self.inflight.waiting_ids() {
            let deadline = self.deadline_of(std::iter::once(id));
            if self.is_over(now, deadline) && self.inflight.withdraw(id) {
                self.keep_late(now, id);
            }
        }
    }

    /// The failure handler did not take a committed record: it is kept aside, and nothing else
    /// waits for it.
    pub(in super::super) fn keep_refused(
        &mut self,
        now: Instant,
        id: RecordId,
        rejection: &Rejection,
    ) {
        let cause = rejection.source.as_ref().map(Cause::to_string);
        self.keep(now, id, KeptReason::Refused, cause);
    }

    /// Moves a record that is neither staged, waiting nor sent out of the stage.
    fn keep(&mut self, now: Instant, id: RecordId, why: KeptReason, cause: Option<String>) {
        let Some(staged) = &mut self.staged else {
            return;
        };
        if !staged.quarantine.admits() {
            let (kept, limit) = (staged.quarantine.held().items, staged.quarantine.limit());
            self.fail(SinkError::QuarantineFull { kept, limit });
            return;
        }
        let Some(record) = self.inflight.remove(id) else {
            return;
        };
        let create = record.create();
        let task = KeptTask {
            task: StagedTask {
                queue: create.queue.clone(),
                task: create.request.task(),
                named: create.named,
                since: record.release.unwrap_or(staged.cut).since,
                released: true,
            },
            why,
            cause: cause.clone(),
        };
        staged.quarantine.push(now, task, Some(record.place));
        staged.stage.moved(now);
        let throttle = match why {
            KeptReason::Refused => &mut staged.refusals,
            KeptReason::Expired => &mut staged.expiries,
        };
        if let Some(times) = throttle.count(now) {
            self.effects.push_back(Effect::Report(Report::Kept {
                queue: create.queue.clone(),
                why,
                times,
                cause,
            }));
        }
        if record.submitted {
            let outcome = match (why, record.target) {
                (KeptReason::Refused, Target::Refused(_, rejection)) => Submitted::Rejected {
                    reason: rejection.reason,
                    cause: rejection.source,
                },
                (KeptReason::Refused | KeptReason::Expired, _) => Submitted::Expired,
            };
            self.effects.push_back(Effect::Submitted {
                record: id,
                outcome,
            });
        }
        match why {
            KeptReason::Refused => self.stats.refused += 1,
            KeptReason::Expired => self.stats.expired += 1,
        }
        self.free(record.held);
        // Its verdict needs a checkpoint, which the host is asked for.
        self.effects.push_back(Effect::Wake);
        self.advance(now);
    }

    /// The failure handler took a committed record. It leaves the state when the handler has
    /// flushed.
    pub(in super::super) fn await_flush(&mut self, now: Instant, id: RecordId) {
        if let Some(record) = self.inflight.get_mut(id) {
            record.stage = Stage::Handled;
            let _job = self.handling.flush(now);
        }
    }

    /// The failure handler answered to a flush.
    pub(in super::super) fn after_handler_flush(&mut self, now: Instant, is_ok: bool) {
        let handled: Vec<RecordId> = self
            .inflight
            .iter()
            .filter(|(_, record)| record.stage == Stage::Handled)
            .map(|(id, _)| id)
            .collect();
        let Some(staged) = &mut self.staged else {
            return;
        };
        if handled.is_empty() {
            return;
        }
        if !is_ok {
            staged.flush_failures = staged.flush_failures.saturating_add(1);
            let delay = self
                .settings
                .transient
                .backoff()
                .delay(staged.flush_failures);
            staged.flush_again = Some(now.checked_add(delay).unwrap_or(now));
            return;
        }
        staged.flush_failures = 0;
        if !self.handling.is_durable() {
            // More was handled since that flush began.
            let _job = self.handling.flush(now);
            return;
        }
        for id in handled {
            let Rejection { reason, source, .. } = self.rejection(id);
            let outcome = Submitted::Rejected {
                reason,
                cause: source,
            };
            self.settle(now, id, Outcome::Retained, outcome);
        }
    }

    /// The time that [`staged_timeout`](Machine::staged_timeout) named has come.
    pub(in super::super) fn handle_staged_timeout(&mut self, now: Instant) {
        let limit = self.settings.progress_timeout;
        let Some(staged) = &mut self.staged else {
            return;
        };
        let due = staged.holds.due(now);
        let flush = staged.flush_again.is_some_and(|due| due <= now);
        if flush {
            staged.flush_again = None;
            let _job = self.handling.flush(now);
        }
        let standing = staged.stage.standing(now).filter(|after| *after >= limit);
        let is_full = !staged.stage.limit().admits(self.inflight.held());
        if standing.is_some() {
            staged.stage.moved(now);
        }
        for queue in due {
            self.ask_for(&queue);
        }
        self.give_up_on_checkpoint(now);
        if let Some(after) = standing
            && is_full
            && self.inflight.staged() > 0
        {
            let held = self.inflight.held();
            self.fail(SinkError::StageFull {
                items: held.items,
                bytes: held.bytes,
                after,
            });
        }
    }

    /// No checkpoint came that would name what was kept aside: it has its verdict, and commits are
    /// told as unconfirmed until one does, so that no mark is written.
    fn give_up_on_checkpoint(&mut self, now: Instant) {
        let limit = self.settings.progress_timeout;
        let (Some(staged), ledger) = (&mut self.staged, &mut self.ledger) else {
            return;
        };
        let any = staged.quarantine.give_up(now, limit, |place| {
            match ledger.settle(place, Outcome::Retained) {
                Standing::Settling(epoch) | Standing::Sealed(epoch) => epoch,
                Standing::Open | Standing::Gone | _ => Epoch::default(),
            }
        });
        if any {
            self.report_commits();
        }
    }

    /// Why no commit is confirmed now, if anything that is or was kept aside is in memory only.
    pub(in super::super) fn unconfirmed(&self) -> Option<CheckpointError> {
        let staged = self.staged.as_ref()?;
        let (pending, epoch) = staged.quarantine.unconfirmed()?;
        Some(CheckpointError::Unconfirmed {
            epoch,
            pending,
            after: self.settings.progress_timeout,
        })
    }
}
