//! Random histories against a naive model: every record gets one verdict, every receipt resolves
//! once and not too early, and the budget is what is held.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use connector_core::Verdict;
use connector_core::ledger::CommitId;
use gcp_wire::proto::tasks::{Queue, Task};
use gcp_wire::{Code, QueueName, RpcError};
use proptest::prelude::*;
use prost::Message;

use super::super::*;
use super::script::{create, created, failed, rejected, settings};
use crate::naming::Named;

#[derive(Debug, Clone)]
enum Step {
    Accept { named: Named, bytes: usize },
    Reject,
    Snapshot,
    Abort(usize),
    Commit(usize),
    Flush,
    Answer(usize, Reply),
    Verdict(usize),
    HandlerFlush { at: usize, is_ok: bool },
    Wait(u64),
    Look { at: usize, is_ok: bool },
    Close,
}

#[derive(Debug, Clone, Copy)]
enum Reply {
    Created,
    Exists,
    Transient,
    Missing,
    Refused,
}

fn step() -> impl Strategy<Value = Step> {
    let named = prop_oneof![
        Just(Named::ByService),
        Just(Named::Minted),
        Just(Named::ByKey)
    ];
    let reply = prop_oneof![
        6 => Just(Reply::Created),
        1 => Just(Reply::Exists),
        2 => Just(Reply::Transient),
        1 => Just(Reply::Missing),
        1 => Just(Reply::Refused),
    ];
    prop_oneof![
        8 => (named, 1usize..50).prop_map(|(named, bytes)| Step::Accept { named, bytes }),
        1 => Just(Step::Reject),
        2 => Just(Step::Snapshot),
        1 => any::<usize>().prop_map(Step::Abort),
        2 => any::<usize>().prop_map(Step::Commit),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(at, is_ok)| Step::Look { at, is_ok }),
        1 => Just(Step::Flush),
        8 => (any::<usize>(), reply).prop_map(|(at, reply)| Step::Answer(at, reply)),
        2 => any::<usize>().prop_map(Step::Verdict),
        2 => (any::<usize>(), any::<bool>())
            .prop_map(|(at, is_ok)| Step::HandlerFlush { at, is_ok }),
        3 => (1u64..3_000).prop_map(Step::Wait),
        1 => Just(Step::Close),
    ]
}

/// What the model knows of the world outside the machine.
#[derive(Debug)]
struct World {
    machine: Machine,
    now: Instant,
    /// Records accepted and without a verdict, with what each holds.
    held: BTreeMap<RecordId, Limits>,
    /// Creates without an answer.
    under_way: Vec<(RecordId, Named)>,
    looks: Vec<QueueName>,
    /// Rejected records that went to the handler.
    with_handler: Vec<(JobId, RecordId)>,
    /// Records that were handed over, and which one of all each was, from 1.
    handed: BTreeMap<RecordId, usize>,
    /// Records by the label that their task or destination carries.
    labels: BTreeMap<String, RecordId>,
    /// Records that were sent at least once.
    sent: BTreeSet<RecordId>,
    flushing: Vec<(JobId, usize)>,
    handled: usize,
    durable: usize,
    /// Epochs that wait for their receipt, with the records before their cut.
    snapshots: BTreeMap<Epoch, BTreeSet<RecordId>>,
    epochs: Vec<Epoch>,
    commits: BTreeSet<CommitId>,
    released: Limits,
    charged: Limits,
    ended: bool,
}

impl World {
    /// `gated`: queues are looked at, and have a pace.
    fn new(gated: bool) -> Self {
        let mut settings = settings();
        settings.streams = 4;
        settings.queue_looks = gated;
        settings.pacing.rate = gated.then_some(20.0);
        Self {
            machine: Machine::new(settings, None),
            now: crate::driver::clock::now(),
            held: BTreeMap::new(),
            under_way: Vec::new(),
            looks: Vec::new(),
            with_handler: Vec::new(),
            handed: BTreeMap::new(),
            labels: BTreeMap::new(),
            sent: BTreeSet::new(),
            flushing: Vec::new(),
            handled: 0,
            durable: 0,
            snapshots: BTreeMap::new(),
            epochs: Vec::new(),
            commits: BTreeSet::new(),
            released: Limits::new(0, 0),
            charged: Limits::new(0, 0),
            ended: false,
        }
    }

    fn charge(&mut self, label: String, record: RecordId, held: Limits) {
        self.charged = sum(self.charged, held);
        self.held.insert(record, held);
        self.labels.insert(label, record);
    }

    fn step(&mut self, step: Step) {
        let pick = |at: usize, len: usize| (len > 0).then(|| at % len.max(1));
        match step {
            Step::Accept { named, bytes } => {
                let label = format!("{}{}", self.labels.len(), "x".repeat(bytes));
                let create = create(&label, named);
                let held = Limits::new(1, create.request.bytes.len());
                if let Ok(record) = self.machine.accept(self.now, create, false) {
                    self.charge(label, record, held);
                }
            }
            Step::Reject => {
                let label = format!("{}r", self.labels.len());
                if let Ok(record) = self.machine.reject(self.now, rejected(&label), false) {
                    self.charge(label, record, Limits::new(1, 0));
                }
            }
            Step::Snapshot => {
                let epoch = self.epochs.last().copied().unwrap_or_default().next();
                if self.machine.snapshot(self.now, epoch).is_ok() {
                    self.epochs.push(epoch);
                    self.snapshots
                        .insert(epoch, self.held.keys().copied().collect());
                }
            }
            Step::Abort(at) => {
                if let Some(at) = pick(at, self.epochs.len()) {
                    self.machine.abort(self.epochs[at]);
                }
            }
            Step::Commit(at) => {
                if let Some(at) = pick(at, self.epochs.len())
                    && let Ok(commit) = self.machine.commit(self.epochs[at])
                {
                    self.commits.insert(commit);
                }
            }
            Step::Flush => {
                self.machine.start_flush(self.now);
                let outcome = self.machine.poll_flushed();
                if matches!(outcome, Some(Ok(()))) && !self.ended {
                    assert!(
                        self.held.is_empty(),
                        "a flush is done when nothing is pending"
                    );
                }
                self.machine.cancel_flush();
            }
            Step::Answer(at, reply) => {
                if let Some(at) = pick(at, self.under_way.len()) {
                    let (record, named) = self.under_way.swap_remove(at);
                    self.answer(record, named, reply);
                }
            }
            Step::Verdict(at) => {
                if let Some(at) = pick(at, self.with_handler.len()) {
                    let (job, record) = self.with_handler.swap_remove(at);
                    self.machine
                        .handle_verdict(self.now, job, Ok(Verdict::Drop));
                    self.held.remove(&record);
                }
            }
            Step::HandlerFlush { at, is_ok } => {
                if let Some(at) = pick(at, self.flushing.len()) {
                    let (job, covers) = self.flushing.swap_remove(at);
                    if is_ok {
                        self.durable = self.durable.max(covers);
                    }
                    let outcome = if is_ok {
                        Ok(())
                    } else {
                        Err(CheckpointError::driver_gone())
                    };
                    self.machine.handle_handler_flushed(self.now, job, outcome);
                }
            }
            Step::Wait(millis) => {
                self.now += Duration::from_millis(millis);
                self.machine.handle_timeout(self.now);
            }
            Step::Look { at, is_ok } => {
                if let Some(at) = pick(at, self.looks.len()) {
                    let queue = self.looks.swap_remove(at);
                    self.look(queue, is_ok);
                }
            }
            Step::Close => {
                self.machine.close(self.now);
            }
        }
        self.machine.check_invariants();
        self.drain();
    }

    fn look(&mut self, queue: QueueName, is_ok: bool) {
        let answer = if is_ok {
            Ok(Queue::default())
        } else {
            Err(RpcError::status("GetQueue", Code::PermissionDenied, "no"))
        };
        self.machine.handle_queue(self.now, queue, answer);
    }

    fn answer(&mut self, record: RecordId, named: Named, reply: Reply) {
        let answer = match reply {
            Reply::Created => created("n"),
            // Of a name that the service gives itself it does not say so.
            Reply::Exists if named == Named::ByService => created("n"),
            Reply::Exists => failed(Code::AlreadyExists),
            Reply::Transient => failed(Code::Unavailable),
            Reply::Missing => failed(Code::NotFound),
            Reply::Refused => failed(Code::InvalidArgument),
        };
        if matches!(reply, Reply::Created | Reply::Exists) {
            self.held.remove(&record);
        }
        self.machine.handle_answer(self.now, record, answer, 0.5);
    }

    fn drain(&mut self) {
        while let Some(effect) = self.machine.poll_effect(self.now) {
            self.machine.check_invariants();
            assert!(!self.ended, "the end comes last: {effect:?}");
            self.see(effect);
        }
        if self.machine.failure().is_some() || self.ended {
            self.held.clear();
        }
        let held = self
            .held
            .values()
            .fold(Limits::new(0, 0), |all, one| sum(all, *one));
        assert_eq!(
            sum(self.released, held),
            self.charged,
            "what is not held was given back"
        );
    }

    fn see(&mut self, effect: Effect) {
        match effect {
            Effect::Create { record, .. } => {
                assert!(
                    self.held.contains_key(&record),
                    "only what has no verdict is sent"
                );
                assert!(!self.under_way.iter().any(|(other, _)| *other == record));
                let named = self.machine.inflight.get(record).unwrap().create().named;
                self.under_way.push((record, named));
                self.sent.insert(record);
                assert!(self.under_way.len() <= 4);
            }
            Effect::CreateBatch { .. } | Effect::ReadOperation { .. } => {
                unreachable!("records are created one by one")
            }
            Effect::ReadQueue { queue } => self.looks.push(queue),
            Effect::Handle { job, rejected } => {
                let label = match rejected.payload {
                    Some(payload) => Task::decode(payload).unwrap().name,
                    None => rejected.destination,
                };
                let record = self.labels[&label];
                self.handled += 1;
                let before = self.handed.insert(record, self.handled);
                assert_eq!(before, None, "a record is handed over once");
                self.with_handler.push((job, record));
            }
            Effect::FlushHandler { job } => self.flushing.push((job, self.handled)),
            Effect::Release(amount) => self.released = sum(self.released, amount),
            Effect::Snapshot { epoch, outcome } => {
                let covered = self
                    .snapshots
                    .remove(&epoch)
                    .expect("a snapshot resolves once");
                if outcome.is_ok() {
                    assert!(
                        covered.iter().all(|record| !self.held.contains_key(record)),
                        "a snapshot covers everything before its cut"
                    );
                    let handed = covered.iter().filter_map(|record| self.handed.get(record));
                    assert!(
                        handed.max().is_none_or(|last| *last <= self.durable),
                        "the handler has flushed what it was given of the cut"
                    );
                }
            }
            Effect::Committed { commit, .. } => {
                assert!(self.commits.remove(&commit), "a commit resolves once");
            }
            Effect::Unconfirmed { .. } => unreachable!("nothing is kept aside"),
            Effect::Submitted { .. } => panic!("nobody asked"),
            Effect::Wake | Effect::Report(_) => {}
            Effect::Ended => self.ended = true,
        }
    }

    /// The faults stop and everything is answered.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if let Some((record, named)) = self.under_way.pop() {
                self.answer(record, named, Reply::Created);
            } else if !self.with_handler.is_empty() {
                self.step(Step::Verdict(0));
            } else if !self.flushing.is_empty() {
                self.step(Step::HandlerFlush { at: 0, is_ok: true });
            } else if let Some(queue) = self.looks.pop() {
                self.look(queue, true);
            } else if self.machine.stats().parked + self.machine.stats().held_back > 0 {
                let due = self.machine.poll_timeout().unwrap();
                self.now = self.now.max(due);
                self.machine.handle_timeout(self.now);
            } else {
                break;
            }
            self.drain();
        }
    }
}

fn sum(a: Limits, b: Limits) -> Limits {
    Limits::new(a.items + b.items, a.bytes + b.bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_record_gets_a_verdict_and_every_receipt_resolves_once(
        steps in proptest::collection::vec(step(), 1..120),
        gated in any::<bool>(),
    ) {
        let mut world = World::new(gated);
        for step in steps {
            world.step(step);
        }
        world.settle();
        if world.machine.failure().is_none() {
            prop_assert!(world.held.is_empty(), "{:?}", world.held);
            prop_assert!(world.snapshots.is_empty(), "{:?}", world.snapshots);
            // A queue is looked at for as long as there is a sink.
            if !gated || world.ended {
                let timer = world.machine.poll_timeout();
                prop_assert_eq!(timer, None, "no timer without anything pending");
            }
            let last = world.epochs.last().copied();
            if let Some(last) = last && !world.ended {
                let commit = world.machine.commit(last).unwrap();
                world.commits.insert(commit);
                world.drain();
                prop_assert!(world.commits.is_empty(), "{:?}", world.commits);
            }
        }
        let stats = world.machine.stats();
        prop_assert_eq!(stats.attempts - stats.retries, world.sent.len() as u64);
        prop_assert!(stats.created + stats.duplicates + stats.rejected <= stats.accepted);
    }
}
