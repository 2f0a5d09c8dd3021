//! A host, a service and a failure handler that do what bytes say.

mod driver;
mod service;
mod setup;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use arbitrary::{Arbitrary, Unstructured};
use connector_core::ledger::CommitId;
use connector_core::{
    BoxError, Cause, CheckpointError, Epoch, Limits, Rejected, RejectedReason, Verdict,
};
use gcp_wire::QueueName;

use super::operation::{Decision, Operation, Setup};
use crate::Resolution;
use crate::driver::clock;
use crate::machine::{CallId, JobId, Machine, RecordId};
use crate::state::CONNECTOR;
use setup::{create, queue};

/// Operations of one history. Longer ones find nothing that several short ones do not.
const LONGEST: usize = 400;

/// Whatever a host, a service, a failure handler and time do, in whatever order: the machine's
/// invariants hold after each of it, the budget is what is held, every receipt resolves at most
/// once, and the driver comes to rest.
pub fn sink_machine(bytes: &[u8]) {
    history(bytes, None);
}

/// What a planted mistake does twice: what comes out of the machine is falsified as if the
/// machine had done so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    /// Room is given back twice.
    Released,
    /// A receipt resolves twice.
    Resolved,
    /// A record is sent twice at once.
    Sent,
}

pub(super) fn history(bytes: &[u8], mistake: Option<Twice>) {
    let mut bytes = Unstructured::new(bytes);
    let Ok(setup) = Setup::arbitrary(&mut bytes) else {
        return;
    };
    let mut host = Host::new(setup, mistake);
    for _ in 0..LONGEST {
        if bytes.is_empty() {
            break;
        }
        let Ok(operation) = Operation::arbitrary(&mut bytes) else {
            break;
        };
        host.run(operation);
    }
    host.rest();
}

struct Host {
    mistake: Option<Twice>,
    machine: Machine,
    now: Instant,
    wall: SystemTime,
    /// Names of tasks given so far.
    names: u32,
    records: Vec<RecordId>,
    calls: Vec<CallId>,
    reads: Vec<CallId>,
    /// How many tasks each call has.
    sizes: BTreeMap<CallId, usize>,
    looks: Vec<QueueName>,
    handling: Vec<JobId>,
    flushing: Vec<JobId>,
    submitted: BTreeSet<RecordId>,
    snapshots: BTreeSet<Epoch>,
    commits: BTreeSet<CommitId>,
    /// The newest epoch.
    epoch: Option<u64>,
    /// What the budget says is held.
    held: Limits,
    ended: bool,
}

fn pick<T>(from: &mut Vec<T>, at: u8) -> Option<T> {
    let at = usize::from(at) % from.len().max(1);
    (at < from.len()).then(|| from.swap_remove(at))
}

impl Host {
    fn run(&mut self, operation: Operation) {
        self.machine.handle_time_of_day(self.wall);
        self.apply(operation);
        self.machine.check_invariants();
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Accept {
                queue: to,
                named,
                size,
                asked,
            } => {
                self.names += 1;
                let staged = self.machine.stages();
                let create = create(&queue(to), self.names, size, named, staged);
                let held = Limits::new(1, create.request.bytes.len());
                let taken = self.machine.accept(self.now, create, asked);
                self.take(taken.ok(), held, asked);
            }
            Operation::Reject { asked } => {
                let cause = Cause::from(BoxError::from("fuzzed"));
                let rejected = Rejected::new(CONNECTOR, "unresolved", RejectedReason::Encoding);
                let taken = self.machine.reject(self.now, rejected.source(cause), asked);
                self.take(taken.ok(), Limits::new(1, 0), asked);
            }
            Operation::Skip => drop(self.machine.skip()),
            Operation::Perform(count) => self.perform(usize::from(count)),
            Operation::Answer { at, reply } => self.answer_one(at, reply),
            Operation::AnswerBatch { at, reply, outcome } => self.answer_call(at, reply, outcome),
            Operation::AnswerRead { at, reply, outcome } => self.answer_read(at, reply, outcome),
            Operation::Late { at, batch } => self.come_late(at, batch),
            Operation::Look { at, queue } => self.look(at, queue),
            Operation::Decide { at, verdict } => {
                let verdict = match verdict {
                    Decision::Drop => Ok(Verdict::Drop),
                    Decision::Fail => Ok(Verdict::Fail),
                    Decision::Broken => Err(CheckpointError::driver_gone()),
                };
                if let Some(job) = pick(&mut self.handling, at) {
                    self.machine.handle_verdict(self.now, job, verdict);
                }
            }
            Operation::EndFlush { at, works } => {
                if let Some(job) = pick(&mut self.flushing, at) {
                    let failed = || Err(CheckpointError::driver_gone());
                    let outcome = if works { Ok(()) } else { failed() };
                    self.machine.handle_handler_flushed(self.now, job, outcome);
                }
            }
            Operation::Snapshot { ahead } => {
                self.snapshot(self.newest().saturating_add(u64::from(ahead % 4)));
            }
            Operation::SnapshotAt(epoch) => self.snapshot(epoch),
            Operation::Commit { back } => self.commit(self.newest().saturating_sub(back.into())),
            Operation::CommitAt(epoch) => self.commit(epoch),
            Operation::Abort { back } => {
                let epoch = self.newest().saturating_sub(back.into());
                self.machine.abort(Epoch::new(epoch));
            }
            Operation::AbortAt(epoch) => self.machine.abort(Epoch::new(epoch)),
            Operation::Flush => {
                self.machine.start_flush(self.now);
                drop(self.machine.poll_flushed());
            }
            Operation::CancelFlush => self.machine.cancel_flush(),
            Operation::AwaitRoom(true) => self.machine.await_room(self.now),
            Operation::AwaitRoom(false) => self.machine.get_room(),
            Operation::Pass { millis } => self.pass(Duration::from_millis(millis.into())),
            Operation::Sleep { minutes } => {
                // Long enough for every timer, and for the days in which names are remembered to
                // pass in a few of these.
                self.pass(Duration::from_secs(60 * u64::from(minutes % 600)));
            }
            Operation::Step { minutes } => self.step(minutes),
            Operation::Resolve { at, again } => self.resolve(at, again),
            Operation::Close => {
                self.machine.close(self.now);
                drop(self.machine.poll_closed());
            }
        }
    }

    fn take(&mut self, record: Option<RecordId>, held: Limits, asked: bool) {
        let Some(record) = record else { return };
        self.charge(held);
        if asked {
            assert!(self.submitted.insert(record), "a name is given once");
        }
    }

    /// The time of day is set anew.
    fn step(&mut self, minutes: i16) {
        let by = Duration::from_secs(60 * u64::from(minutes.unsigned_abs()));
        let stepped = if minutes < 0 {
            self.wall.checked_sub(by)
        } else {
            self.wall.checked_add(by)
        };
        self.wall = stepped.unwrap_or(self.wall);
        self.machine.handle_time_of_day(self.wall);
    }

    fn resolve(&mut self, at: u8, again: bool) {
        let kept = self.machine.kept();
        let name = match kept.get(usize::from(at % 8)) {
            Some(task) => task.name(),
            None => "of no task".to_owned(),
        };
        let resolution = match (again, at % 2) {
            (true, _) => Resolution::Force,
            (false, 0) => Resolution::Discard,
            (false, _) => Resolution::MarkCommitted,
        };
        if let Ok(staged) = self.machine.resolve(self.now, &name, resolution) {
            self.charge(staged);
        }
    }

    /// The newest epoch, or the first that there may be.
    fn newest(&self) -> u64 {
        self.epoch.unwrap_or_default()
    }
}
