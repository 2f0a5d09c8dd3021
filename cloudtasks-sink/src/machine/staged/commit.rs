//! Tasks that leave the stage: committed, restored, held back.

use std::time::Instant;

use connector_core::Epoch;
use connector_core::ledger::{Commit, CommitId, Ledger, Outcome, SegmentView};
use gcp_wire::{Code, QueueName, RpcError};

use super::super::batch::CallId;
use super::super::effect::{Effect, Report};
use super::super::inflight::{Create, Record, RecordId, Stage, Target};
use super::super::settings::RetryBudget;
use super::super::{Limits, Machine};
use super::holds::LONGEST;
use super::{Deadline, Release, Staged, StagedSettings};
use crate::state::KeptTask;

/// What restored states name, made ready for the machine.
#[derive(Debug, Default)]
pub(crate) struct RestoredTasks {
    /// Each with its window, and whether an earlier attempt may have created it.
    pub(crate) tasks: Vec<(Create, Release, bool)>,
    pub(crate) kept: Vec<KeptTask>,
}

impl Machine {
    /// Keeps tasks in the state until they are committed; those of `restored` are committed at once,
    /// by the commit that is answered.
    pub(crate) fn staging(
        mut self,
        now: Instant,
        wall: std::time::SystemTime,
        settings: StagedSettings,
        newest: Option<Epoch>,
        restored: RestoredTasks,
    ) -> (Self, Option<CommitId>) {
        let mut staged = Staged::new(settings, now, wall);
        for task in restored.kept {
            staged.quarantine.push(now, task, None);
        }
        self.staged = Some(staged);
        if let Some(batches) = &mut self.batches {
            // No clock ends a staging sink that waits, and names make another call harmless.
            batches.ask_again_after(self.settings.progress_timeout);
        }
        let Some(epoch) = newest else {
            return (self, None);
        };
        let ids: Vec<RecordId> = (0..).map(RecordId::of).take(restored.tasks.len()).collect();
        let (ledger, commit) = Ledger::restore(epoch, ids);
        self.ledger = ledger;
        let places = commit.released.iter().flat_map(SegmentView::iter);
        for ((place, _), (create, release, ambiguous)) in places.zip(restored.tasks) {
            let held = Limits::new(1, create.request.bytes.len());
            let mut record = Record::new(place, held, Target::Task(create), false);
            record.release = Some(release);
            record.ambiguous = ambiguous;
            self.inflight.insert(record);
        }
        self.report_commits();
        (self, Some(commit.id))
    }

    /// What the records in hand take of the stage.
    pub(crate) const fn held(&self) -> Limits {
        self.inflight.held()
    }

    /// What was staged up to `epoch`, which is durable, may leave.
    pub(in super::super) fn release(&mut self, epoch: Epoch, commit: &Commit<RecordId>) {
        let Some(staged) = &mut self.staged else {
            return;
        };
        let ids = commit.released.iter().flat_map(SegmentView::iter);
        for (_, id) in ids {
            self.inflight.release(*id, staged.cut);
        }
        for place in staged.quarantine.durable(epoch) {
            self.ledger.settle(place, Outcome::Retained);
        }
    }

    /// Takes the next record that is to be sent: not too late, and for a queue that takes tasks.
    pub(in super::super) fn next_to_send(&mut self, now: Instant) -> Option<RecordId> {
        loop {
            let id = self.send_next(now)?;
            let record = self.inflight.get(id)?;
            let Some(staged) = &mut self.staged else {
                return Some(id);
            };
            if let Some(release) = record.release
                && release.deadline().is_over(now, staged.wall)
            {
                self.expire(now, id);
                self.expire_aside(now);
                continue;
            }
            if !staged.holds.takes(&record.create().queue, id) {
                return Some(id);
            }
            if let Some(record) = self.inflight.answered(id) {
                record.stage = Stage::Held;
            }
        }
    }

    /// Until when these records may be sent, by the first of them.
    pub(in super::super) fn deadline_of(
        &self,
        records: impl Iterator<Item = RecordId>,
    ) -> Option<Deadline> {
        records
            .filter_map(|id| Some(self.inflight.get(id)?.release?.deadline()))
            .reduce(Deadline::min)
    }

    /// Whether it is too late for something to be sent.
    pub(in super::super) fn is_over(&self, now: Instant, deadline: Option<Deadline>) -> bool {
        let (Some(staged), Some(deadline)) = (&self.staged, deadline) else {
            return false;
        };
        deadline.is_over(now, staged.wall)
    }

    /// CreateTask was not called: it had become too late.
    pub(crate) fn handle_late(&mut self, now: Instant, id: RecordId) {
        let is_sent = self
            .inflight
            .get(id)
            .is_some_and(|record| record.stage == Stage::Sent);
        if is_sent {
            self.expire(now, id);
        }
    }

    /// BatchCreateTasks was not called: for some of its tasks it had become too late.
    pub(crate) fn handle_late_batch(&mut self, now: Instant, call: CallId) {
        let Some(batches) = &mut self.batches else {
            return;
        };
        for id in batches.take_back(call) {
            // Those for which it is not late go into another call.
            if self.inflight.answered(id).is_some() {
                self.inflight.requeue(id);
            }
        }
        // Looked at one by one here, for the others are not sent before something else happens.
        self.expire_waiting(now);
    }

    /// The queue of this record takes no tasks: all of its tasks wait, the others go on.
    pub(in super::super) fn hold_back(
        &mut self,
        now: Instant,
        id: RecordId,
        error: RpcError,
        random: f64,
    ) {
        let RetryBudget { first, .. } = self.settings.missing;
        let (Some(staged), Some(record)) = (&mut self.staged, self.inflight.get_mut(id)) else {
            return;
        };
        record.stage = Stage::Held;
        let queue = record.create().queue.clone();
        staged.holds.fail(&queue, id, now, |failures| {
            let budget = RetryBudget::new(u32::MAX, first, LONGEST.max(first));
            budget.backoff().jittered(failures, random)
        });
        let waiting = staged.holds.len();
        if staged.holding.count(now).is_some() {
            self.effects.push_back(Effect::Report(Report::Holding {
                queue,
                waiting,
                error,
            }));
        }
        // A host that waits for room may be the one that has to make it.
        self.effects.push_back(Effect::Wake);
    }

    /// Whether the record is the one by which a queue is asked that took no tasks.
    pub(in super::super) fn asks_for_its_queue(&self, id: RecordId) -> bool {
        let (Some(staged), Some(record)) = (&self.staged, self.inflight.get(id)) else {
            return false;
        };
        staged.holds.asks(&record.create().queue, id)
    }

    /// The queue of this record answered as one that takes tasks does.
    pub(in super::super) fn queue_answers(&mut self, id: RecordId) {
        let (Some(staged), Some(record)) = (&mut self.staged, self.inflight.get(id)) else {
            return;
        };
        for waiting in staged.holds.open(&record.create().queue) {
            self.inflight.requeue(waiting);
        }
    }

    /// Lets the next task ask for a queue.
    pub(super) fn ask_for(&mut self, queue: &QueueName) {
        if let Some(staged) = &mut self.staged
            && let Some(next) = staged.holds.next_asks(queue)
        {
            self.inflight.resume(next);
        }
    }
}

/// Whether an answer closes a queue to us rather than the whole service: rights come back.
pub(in super::super) fn is_denied(error: &RpcError) -> bool {
    error.credentials_error().is_none()
        && matches!(error.code(), Code::PermissionDenied | Code::Unauthenticated)
}
