//! The driver's part: does what the machine wants done, and keeps the books.

use std::time::{Duration, Instant};

use connector_core::{CheckpointError, Epoch, Limits};
use gcp_wire::proto::tasks::{BatchCreateTasksRequest, CreateTaskRequest};
use prost::Message as _;

use super::{Host, Twice};
use crate::machine::{Effect, RecordId};

/// Turns of the driver at one instant that are no loop.
const TURNS: usize = 20_000;

impl Host {
    pub(super) fn charge(&mut self, amount: Limits) {
        self.held = Limits::new(
            self.held.items + amount.items,
            self.held.bytes + amount.bytes,
        );
    }

    pub(super) fn snapshot(&mut self, epoch: u64) {
        let before = self.epoch;
        let wanted = Epoch::new(epoch);
        match self.machine.snapshot(self.now, wanted) {
            Ok(()) => {
                assert!(
                    before.is_none_or(|before| epoch > before),
                    "epochs increase"
                );
                assert!(self.snapshots.insert(wanted), "a name is given once");
                self.epoch = Some(epoch);
                assert_eq!(self.machine.saved_tasks().is_some(), self.machine.stages());
            }
            Err(CheckpointError::OutOfOrder { .. }) => {
                assert!(before.is_some_and(|before| epoch <= before))
            }
            Err(CheckpointError::Closed { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    pub(super) fn commit(&mut self, epoch: u64) {
        match self.machine.commit(Epoch::new(epoch)) {
            Ok(commit) => assert!(self.commits.insert(commit), "a name is given once"),
            Err(CheckpointError::Unknown { .. }) => {
                assert!(self.epoch.is_none_or(|newest| epoch > newest));
            }
            Err(CheckpointError::Closed { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Time passes, and the driver does at each moment what is due then.
    pub(super) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        let mut turns = 0;
        while let Some(due) = self.machine.poll_timeout().filter(|due| *due <= end) {
            turns = if due > self.now { 0 } else { turns + 1 };
            assert!(turns < TURNS, "the driver goes round in circles");
            self.wait_until(due.max(self.now));
            self.machine.handle_timeout(self.now);
            self.machine.check_invariants();
            self.perform(TURNS);
        }
        self.wait_until(end);
    }

    fn wait_until(&mut self, moment: Instant) {
        let passed = moment.saturating_duration_since(self.now);
        self.now = moment;
        self.wall = self.wall.checked_add(passed).unwrap_or(self.wall);
        self.machine.handle_time_of_day(self.wall);
    }

    /// Performs so many effects. A driver performs all before it waits.
    pub(super) fn perform(&mut self, most: usize) {
        for _ in 0..most {
            let Some(effect) = self.machine.poll_effect(self.now) else {
                let held = self.machine.held();
                assert_eq!(self.held, held, "the budget is what is held");
                return;
            };
            self.machine.check_invariants();
            assert!(!self.ended, "the end comes last: {effect:?}");
            self.see(effect);
        }
        assert!(most < TURNS, "the driver goes round in circles");
    }

    fn see(&mut self, effect: Effect) {
        match effect {
            Effect::Create {
                record,
                queue,
                request,
                ..
            } => {
                let request = CreateTaskRequest::decode(request).expect("a request is whole");
                assert_eq!(request.parent, queue.as_str());
                self.send(record);
                if self.mistake == Some(Twice::Sent) {
                    self.send(record);
                }
            }
            Effect::CreateBatch {
                call,
                queue,
                request,
                ..
            } => {
                let request = BatchCreateTasksRequest::decode(request).expect("a call is whole");
                assert_eq!(request.parent, queue.as_str());
                let tasks = request.requests.len();
                assert!((1..=100).contains(&tasks), "{tasks} tasks in a call");
                let known = self.sizes.insert(call, tasks);
                assert!(
                    known.is_none_or(|known| known == tasks),
                    "a call stays as it is"
                );
                assert!(!self.calls.contains(&call) && !self.reads.contains(&call));
                self.calls.push(call);
            }
            Effect::ReadOperation { call, operation } => {
                assert!(!operation.is_empty());
                assert!(!self.calls.contains(&call) && !self.reads.contains(&call));
                self.reads.push(call);
            }
            Effect::ReadQueue { queue } => {
                assert!(
                    !self.looks.contains(&queue),
                    "a queue is looked at once at a time"
                );
                self.looks.push(queue);
            }
            Effect::Handle { job, .. } => {
                assert!(
                    !self.handling.contains(&job),
                    "a record is handed over once"
                );
                self.handling.push(job);
            }
            Effect::FlushHandler { job } => {
                assert!(!self.flushing.contains(&job), "a name is given once");
                self.flushing.push(job);
            }
            Effect::Release(amount) => {
                let times = 1 + usize::from(self.mistake == Some(Twice::Released));
                let items = self.held.items.checked_sub(times * amount.items);
                let bytes = self.held.bytes.checked_sub(times * amount.bytes);
                let (Some(items), Some(bytes)) = (items, bytes) else {
                    panic!("more is given back than is held");
                };
                self.held = Limits::new(items, bytes);
            }
            Effect::Snapshot { epoch, .. } => {
                if self.mistake == Some(Twice::Resolved) {
                    self.snapshots.remove(&epoch);
                }
                assert!(self.snapshots.remove(&epoch), "a snapshot resolves once");
            }
            Effect::Committed { commit, .. } | Effect::Unconfirmed { commit, .. } => {
                assert!(self.commits.remove(&commit), "a commit resolves once");
            }
            Effect::Submitted { record, .. } => {
                assert!(self.submitted.remove(&record), "an answer is given once");
            }
            Effect::Wake | Effect::Report(_) => {}
            Effect::Ended => self.ended = true,
        }
    }

    fn send(&mut self, record: RecordId) {
        assert!(
            !self.records.contains(&record),
            "a record is under way once"
        );
        self.records.push(record);
    }

    /// Nothing happens any more but time, until no timer is left or an hour has passed: what is
    /// committed is tried for as long as its name is remembered, and what is staged waits for its
    /// commit.
    pub(super) fn rest(&mut self) {
        self.machine.get_room();
        self.machine.handle_time_of_day(self.wall);
        self.perform(TURNS);
        let end = self.now + Duration::from_secs(3_600);
        while let Some(due) = self.machine.poll_timeout().filter(|due| *due < end) {
            self.pass(due.saturating_duration_since(self.now));
        }
        if self.ended {
            assert_eq!(self.held, Limits::new(0, 0), "an end gives back everything");
        }
    }
}
