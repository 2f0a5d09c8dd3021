//! The records without a verdict.

mod deadlines;
mod records;

use std::collections::VecDeque;
use std::time::{Instant, SystemTime};

use connector_core::ledger::Place;
use connector_core::{Cause, Limits, RejectedReason};
use gcp_wire::QueueName;

use super::staged::Release;
use crate::naming::Named;
use crate::request::Request;
use deadlines::Deadlines;
use records::Records;

/// Names a record that the sink accepted. Ascending in the order of acceptance, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordId(u64);

impl RecordId {
    pub(super) const fn of(number: u64) -> Self {
        Self(number)
    }
}

#[cfg(test)]
impl RecordId {
    pub(super) const fn number(self) -> u64 {
        self.0
    }
}

/// A task to create.
#[derive(Debug, Clone)]
pub(crate) struct Create {
    pub(crate) queue: QueueName,
    pub(crate) request: Request,
    pub(crate) named: Named,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// For the commit of its epoch.
    Staged,
    /// For one of the connection's streams.
    Waiting,
    /// Sent, not answered.
    Sent,
    /// For a look at its queue, or for its turn in the queue's pace.
    Aside,
    /// Until its next attempt.
    Parked(Instant),
    /// For its queue to take tasks again.
    Held,
    /// Rejected; the failure handler has not said what becomes of it.
    WithHandler,
    /// Rejected when it was committed; the failure handler took it and has not flushed.
    Handled,
}

/// A record without a verdict.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) place: Place,
    pub(super) held: Limits,
    pub(super) stage: Stage,
    pub(super) target: Target,
    /// Whether somebody waits for this record's own outcome.
    pub(super) submitted: bool,
    /// Attempts whose answer was that it may go better next time.
    pub(super) transient: u32,
    /// Attempts whose answer was that the queue does not exist.
    pub(super) missing: u32,
    /// Attempts that were made.
    pub(super) attempts: u32,
    /// Whether an earlier attempt may have created the task without our learning of it. Of a task
    /// with a name this is asked at its first attempt only, for attempts of an earlier sink: after
    /// its own, `attempts` says as much.
    pub(super) ambiguous: bool,
    /// When it was committed and until when it may be sent; nothing while it is staged, and always
    /// nothing where tasks are not staged.
    pub(super) release: Option<Release>,
}

/// What a record is to become.
#[derive(Debug)]
pub(super) enum Target {
    Task(Create),
    /// Nothing: it was rejected. Its bytes are with the handler.
    Rejected(Rejection),
    /// Nothing, as it seems: the service refused it after its commit. It stays in the state until
    /// somebody else has it.
    Refused(Create, Rejection),
}

/// What is kept of a rejected record, for the error of a handler that ends the sink.
#[derive(Debug, Clone)]
pub(super) struct Rejection {
    pub(super) destination: String,
    pub(super) reason: RejectedReason,
    pub(super) source: Option<Cause>,
}

impl Record {
    pub(super) fn new(place: Place, held: Limits, target: Target, submitted: bool) -> Self {
        let stage = match &target {
            Target::Task(_) => Stage::Waiting,
            Target::Rejected(_) | Target::Refused(..) => Stage::WithHandler,
        };
        Self {
            place,
            held,
            stage,
            target,
            submitted,
            transient: 0,
            missing: 0,
            attempts: 0,
            ambiguous: false,
            release: None,
        }
    }

    /// The task of a record that is not rejected.
    pub(super) fn create(&self) -> &Create {
        match &self.target {
            Target::Task(create) | Target::Refused(create, _) => create,
            Target::Rejected(_) => unreachable!("what was rejected is neither sent nor answered"),
        }
    }

    /// The queue, or what the record named instead of one.
    pub(super) fn destination(&self) -> &str {
        match &self.target {
            Target::Task(create) | Target::Refused(create, _) => create.queue.as_str(),
            Target::Rejected(rejection) => &rejection.destination,
        }
    }
}

/// The records without a verdict, and who of them may be sent next.
#[derive(Debug)]
pub(super) struct InFlight {
    records: Records,
    waiting: VecDeque<RecordId>,
    streams: usize,
    sent: usize,
    staged: usize,
    deadlines: Deadlines,
    next: u64,
    held: Limits,
}

impl InFlight {
    pub(super) const fn new(streams: usize) -> Self {
        Self {
            records: Records::new(),
            waiting: VecDeque::new(),
            streams,
            sent: 0,
            staged: 0,
            deadlines: Deadlines::new(),
            next: 0,
            held: Limits::new(0, 0),
        }
    }

    /// The id that the next record will get: everything accepted so far lies below it.
    pub(super) const fn next_id(&self) -> RecordId {
        RecordId(self.next)
    }

    pub(super) fn insert(&mut self, record: Record) -> RecordId {
        let id = RecordId(self.next);
        self.next += 1;
        self.held.items += record.held.items;
        self.held.bytes += record.held.bytes;
        if let Some(release) = &record.release {
            self.deadlines.add(release);
        }
        match record.stage {
            Stage::Waiting => self.waiting.push_back(id),
            Stage::Staged => self.staged += 1,
            Stage::Aside
            | Stage::Sent
            | Stage::Parked(_)
            | Stage::Held
            | Stage::WithHandler
            | Stage::Handled => {}
        }
        self.records.push(id, record);
        id
    }

    /// A staged record may leave. Does nothing to any other.
    pub(super) fn release(&mut self, id: RecordId, release: Release) {
        if let Some(record) = self.records.get_mut(id)
            && record.stage == Stage::Staged
        {
            record.stage = Stage::Waiting;
            self.deadlines.add(&release);
            record.release = Some(release);
            self.staged -= 1;
            self.waiting.push_back(id);
        }
    }

    /// A record that was held back goes behind those that wait.
    pub(super) fn requeue(&mut self, id: RecordId) {
        if let Some(record) = self.records.get_mut(id) {
            record.stage = Stage::Waiting;
            self.waiting.push_back(id);
        }
    }

    /// A record whose next attempt is due goes ahead of those that were never sent: it is older.
    pub(super) fn resume(&mut self, id: RecordId) {
        if let Some(record) = self.records.get_mut(id) {
            record.stage = Stage::Waiting;
            self.waiting.push_front(id);
        }
    }

    /// Whether one more record may be sent.
    pub(super) const fn has_stream(&self) -> bool {
        self.sent < self.streams
    }

    /// The record that is sent next, unless something else holds it back.
    pub(super) fn first_in_line(&self) -> Option<(RecordId, &Record)> {
        let id = *self.waiting.front()?;
        self.records.get(id).map(|record| (id, record))
    }

    /// Takes the first record out of the line, until it is sent.
    pub(super) fn set_aside(&mut self, id: RecordId) {
        self.leave_line(id);
        if let Some(record) = self.records.get_mut(id) {
            record.stage = Stage::Aside;
        }
    }

    /// Sends the first record in line, or one that was set aside.
    pub(super) fn send(&mut self, id: RecordId) {
        self.leave_line(id);
        if let Some(record) = self.records.get_mut(id) {
            record.stage = Stage::Sent;
            self.sent += 1;
        }
    }

    fn leave_line(&mut self, id: RecordId) {
        if self.waiting.front() == Some(&id) {
            self.waiting.pop_front();
        }
    }

    /// The record, if it was sent and not answered. Its stream is free from here on, and the caller
    /// gives it another stage or removes it.
    pub(super) fn answered(&mut self, id: RecordId) -> Option<&mut Record> {
        let record = self
            .records
            .get_mut(id)
            .filter(|record| record.stage == Stage::Sent)?;
        self.sent -= 1;
        Some(record)
    }

    pub(super) fn get_mut(&mut self, id: RecordId) -> Option<&mut Record> {
        self.records.get_mut(id)
    }

    pub(super) fn get(&self, id: RecordId) -> Option<&Record> {
        self.records.get(id)
    }

    /// Takes a record out that is neither staged, nor waiting, nor sent.
    pub(super) fn remove(&mut self, id: RecordId) -> Option<Record> {
        let record = self.records.remove(id)?;
        self.held.items -= record.held.items;
        self.held.bytes -= record.held.bytes;
        if let Some(release) = &record.release {
            self.deadlines.remove(release);
        }
        Some(record)
    }

    /// The oldest record without a verdict.
    pub(super) fn oldest(&self) -> Option<(RecordId, &Record)> {
        self.records.iter().next()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) const fn sent(&self) -> usize {
        self.sent
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The records that wait for a stream, in order.
    pub(super) fn waiting_ids(&self) -> Vec<RecordId> {
        self.waiting.iter().copied().collect()
    }

    /// Takes a record out of those that wait for a stream, to be removed. Answers whether it was
    /// among them.
    pub(super) fn withdraw(&mut self, id: RecordId) -> bool {
        let Some(at) = self.waiting.iter().position(|waiting| *waiting == id) else {
            return false;
        };
        self.waiting.remove(at);
        true
    }

    /// Records that wait for the commit of their epoch.
    pub(super) const fn staged(&self) -> usize {
        self.staged
    }

    /// The first of the recovery deadlines, by the time of day.
    pub(super) fn nearest_deadline(&self) -> Option<SystemTime> {
        self.deadlines.first()
    }

    pub(super) const fn held(&self) -> Limits {
        self.held
    }

    /// Forgets every record; answers what they held.
    pub(super) fn clear(&mut self) -> Limits {
        self.records.clear();
        self.waiting.clear();
        self.sent = 0;
        self.staged = 0;
        self.deadlines.clear();
        std::mem::take(&mut self.held)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RecordId, &Record)> {
        self.records.iter()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        let of = |stage: fn(&Stage) -> bool| {
            self.records
                .values()
                .filter(|record| stage(&record.stage))
                .count()
        };
        assert_eq!(
            of(|stage| matches!(stage, Stage::Sent)),
            self.sent,
            "sent ones are counted"
        );
        assert!(
            self.sent <= self.streams,
            "no more are sent than there are streams"
        );
        assert_eq!(
            of(|stage| matches!(stage, Stage::Waiting)),
            self.waiting.len()
        );
        assert_eq!(of(|stage| matches!(stage, Stage::Staged)), self.staged);
        for id in &self.waiting {
            assert_eq!(
                self.records.get(*id).map(|record| record.stage),
                Some(Stage::Waiting)
            );
        }
        let sum = self
            .records
            .values()
            .fold(Limits::new(0, 0), |sum, record| {
                Limits::new(sum.items + record.held.items, sum.bytes + record.held.bytes)
            });
        assert_eq!(sum, self.held, "the budget is the sum of what is held");
        let mut deadlines = Deadlines::new();
        let releases = self.records.values().filter_map(|record| record.release);
        releases.for_each(|release| deadlines.add(&release));
        assert_eq!(
            deadlines, self.deadlines,
            "they are those of what is released"
        );
    }
}
