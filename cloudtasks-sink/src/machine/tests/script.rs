//! A machine, a clock that stands still, and what the machine asked for so far.

use std::time::Duration;

use connector_core::ledger::CommitId;
use connector_core::{BoxError, Rejected, RejectedReason, Verdict};
use gcp_wire::proto::tasks::Task;
use gcp_wire::{Code, QueueName, RpcError};

use super::super::*;
use crate::naming::Named;
use crate::request::Request;
use crate::state::CONNECTOR;

pub(super) fn queue() -> QueueName {
    "projects/demo/locations/l/queues/q".parse().unwrap()
}

pub(super) fn created(name: &str) -> Answer {
    Answer::Created(name.to_owned())
}

pub(super) fn failed(code: Code) -> Answer {
    Answer::Failed(RpcError::status("CreateTask", code, "scripted"))
}

pub(super) fn rejected(destination: &str) -> Rejected {
    let cause = Cause::from(BoxError::from("scripted"));
    Rejected::new(CONNECTOR, destination, RejectedReason::Encoding).source(cause)
}

/// A create whose task is named by its label, so that tests can tell them apart.
pub(super) fn create(label: &str, named: Named) -> Create {
    let task = Task {
        name: label.to_owned(),
        ..Task::default()
    };
    Create {
        queue: queue(),
        request: Request::new(&queue(), &task),
        named,
    }
}

/// The defaults, but for the looks at queues, of which few tests speak.
pub(super) fn settings() -> Settings {
    Settings {
        queue_looks: false,
        ..crate::options::Options::default().machine()
    }
}

pub(super) struct Script {
    pub(super) machine: Machine,
    pub(super) now: Instant,
    seen: Vec<Effect>,
}

impl Script {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        Self::of(Machine::new(settings, None))
    }

    pub(super) fn restored(epoch: u64) -> Self {
        Self::of(Machine::new(settings(), Some(Epoch::new(epoch))))
    }

    pub(super) fn of(machine: Machine) -> Self {
        Self {
            machine,
            now: crate::driver::clock::now(),
            seen: Vec::new(),
        }
    }

    pub(super) fn size(&self, label: &str) -> usize {
        create(label, Named::ByKey).request.bytes.len()
    }

    pub(super) fn accept(&mut self, label: &str, named: Named) -> RecordId {
        let taken = self.machine.accept(self.now, create(label, named), false);
        self.machine.check_invariants();
        taken.unwrap()
    }

    pub(super) fn try_accept(&mut self, label: &str) -> Result<RecordId, SinkError> {
        self.machine
            .accept(self.now, create(label, Named::ByKey), false)
    }

    pub(super) fn submit(&mut self, label: &str) -> RecordId {
        self.machine
            .accept(self.now, create(label, Named::ByKey), true)
            .unwrap()
    }

    pub(super) fn reject(&mut self, destination: &str) -> RecordId {
        self.machine
            .reject(self.now, rejected(destination), false)
            .unwrap()
    }

    pub(super) fn snapshot(&mut self, epoch: u64) -> Result<(), CheckpointError> {
        let taken = self.machine.snapshot(self.now, Epoch::new(epoch));
        self.machine.check_invariants();
        taken
    }

    pub(super) fn answer(&mut self, record: RecordId, answer: Answer) {
        self.machine.handle_answer(self.now, record, answer, 0.5);
        self.machine.check_invariants();
    }

    pub(super) fn verdict(&mut self, job: JobId, verdict: Result<Verdict, CheckpointError>) {
        self.machine.handle_verdict(self.now, job, verdict);
        self.machine.check_invariants();
    }

    pub(super) fn flushed(&mut self, job: JobId, is_ok: bool) {
        let outcome = if is_ok {
            Ok(())
        } else {
            Err(CheckpointError::driver_gone())
        };
        self.machine.handle_handler_flushed(self.now, job, outcome);
        self.machine.check_invariants();
    }

    /// Lets time pass and tells the machine.
    pub(super) fn advance(&mut self, by: Duration) {
        self.now += by;
        self.machine.handle_timeout(self.now);
        self.machine.check_invariants();
    }

    pub(super) fn stats(&self) -> Stats {
        self.machine.stats()
    }

    /// The error the next call gets.
    pub(super) fn error(&mut self) -> SinkError {
        self.machine.check_open().unwrap_err()
    }

    /// Whether the sink has ended, and said so once.
    pub(super) fn ended(&mut self) -> bool {
        let ended = self.take(|effect| matches!(effect, Effect::Ended).then_some(()));
        assert!(ended.len() <= 1, "an end comes once");
        !ended.is_empty()
    }

    pub(super) fn ended_silently(&self) -> bool {
        self.machine.failure().is_some()
    }

    /// Everything asked for and not looked at.
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        self.drain();
        std::mem::take(&mut self.seen)
    }

    pub(super) fn sent(&mut self) -> Vec<RecordId> {
        self.take(|effect| match effect {
            Effect::Create { record, .. } => Some(*record),
            _ => None,
        })
    }

    pub(super) fn requests(&mut self) -> Vec<(QueueName, bytes::Bytes)> {
        self.take(|effect| match effect {
            Effect::Create { queue, request, .. } => Some((queue.clone(), request.clone())),
            _ => None,
        })
    }

    pub(super) fn handled(&mut self) -> Vec<(JobId, Rejected)> {
        self.take(|effect| match effect {
            Effect::Handle { job, rejected } => Some((*job, (**rejected).clone())),
            _ => None,
        })
    }

    pub(super) fn flushes(&mut self) -> Vec<JobId> {
        self.take(|effect| match effect {
            Effect::FlushHandler { job } => Some(*job),
            _ => None,
        })
    }

    /// The snapshots that resolved, and whether they are complete.
    pub(super) fn snapshots(&mut self) -> Vec<(u64, bool)> {
        self.take(|effect| match effect {
            Effect::Snapshot { epoch, outcome } => Some((epoch.get(), outcome.is_ok())),
            _ => None,
        })
    }

    /// The commits that resolved, with what was settled and retained.
    pub(super) fn commits(&mut self) -> Vec<(CommitId, usize, usize)> {
        self.take(|effect| match effect {
            Effect::Committed { commit, committed } => {
                Some((*commit, committed.settled, committed.retained))
            }
            _ => None,
        })
    }

    pub(super) fn reports(&mut self) -> Vec<Report> {
        self.take(|effect| match effect {
            Effect::Report(report) => Some(report.clone()),
            _ => None,
        })
    }

    pub(super) fn released(&mut self) -> Limits {
        let released = self.take(|effect| match effect {
            Effect::Release(amount) => Some(*amount),
            _ => None,
        });
        released.into_iter().fold(Limits::new(0, 0), |sum, amount| {
            Limits::new(sum.items + amount.items, sum.bytes + amount.bytes)
        })
    }

    pub(super) fn woke_host(&mut self) -> bool {
        !self
            .take(|effect| matches!(effect, Effect::Wake).then_some(()))
            .is_empty()
    }

    fn drain(&mut self) {
        while let Some(effect) = self.machine.poll_effect(self.now) {
            self.machine.check_invariants();
            self.seen.push(effect);
        }
    }

    fn take<T>(&mut self, mut wanted: impl FnMut(&Effect) -> Option<T>) -> Vec<T> {
        self.drain();
        let mut found = Vec::new();
        self.seen.retain(|effect| match wanted(effect) {
            Some(value) => {
                found.push(value);
                false
            }
            None => true,
        });
        found
    }
}
