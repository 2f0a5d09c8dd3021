//! A machine, a service and a failure handler, moved by hand.

mod service;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use connector_core::{
    Cause, CheckpointError, Committed, Epoch, RejectedReason, Verdict, ledger::CommitId,
};
use gcp_wire::{TopicName, proto::pubsub::PublishRequest};
use prost::Message as _;

use crate::{
    MessageError, PublishMessage, Published, SinkError, clock,
    machine::{CutId, Effect, Machine, Notice, Refused, RejectionId, ReplyId, RequestId, Retry},
    message,
    settings::Settings,
    staged::Identity,
};
pub(super) use service::failure;
use service::number_of;

/// A record: its number, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) number: u32,
    pub(super) topic: TopicName,
    pub(super) key: Option<String>,
    /// The service refuses it.
    pub(super) poisoned: bool,
}

/// A request at the service.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: RequestId,
    pub(super) request: PublishRequest,
    pub(super) encoded: Bytes,
    pub(super) deadline: Duration,
}

pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) now: Instant,
    pub(super) records: Vec<Record>,
    pub(super) calls: Vec<Call>,
    /// The names of every request ever sent.
    known: BTreeSet<RequestId>,
    /// Every request ever sent.
    pub(super) sent: Vec<PublishRequest>,
    /// What the service stored, per topic and key, in order.
    pub(super) stored: Vec<u32>,
    pub(super) stored_by_key: BTreeMap<(String, String), Vec<u32>>,
    /// Topics that do not exist.
    pub(super) missing: BTreeSet<String>,
    pub(super) creating: Vec<TopicName>,
    /// Refused and without a verdict of the handler.
    undecided: BTreeSet<u32>,
    pub(super) handling: Vec<(RejectionId, u32)>,
    /// Given to the handler, durable with its next flush.
    pub(super) handled: BTreeSet<u32>,
    pub(super) durable: BTreeSet<u32>,
    pub(super) flushing: Option<BTreeSet<u32>>,
    /// Snapshots and flushes that wait, with the number of records before them.
    pub(super) cuts: BTreeMap<CutId, (Option<Epoch>, usize)>,
    pub(super) resolved: Vec<(Option<Epoch>, Result<(), CheckpointError>)>,
    pub(super) commits: BTreeSet<CommitId>,
    pub(super) committed: Vec<Committed>,
    /// Commits that the sink does not wait for any more.
    pub(super) given_up: Vec<CheckpointError>,
    pub(super) answers: Vec<(ReplyId, Published)>,
    pub(super) notices: Vec<Notice>,
    pub(super) epoch: Epoch,
}

pub(super) fn topic(number: u8) -> TopicName {
    TopicName::new("demo", &format!("topic-{number}")).unwrap()
}

/// Of the record with this number, or the message that was staged as that.
pub(super) fn identity(number: usize) -> Identity {
    Identity {
        incarnation: 1,
        sequence: number as u64,
    }
}

pub(super) fn standard() -> World {
    World::new(Settings::default())
}

pub(super) fn ordered() -> World {
    let retry = Retry {
        total: None,
        ..Settings::default().retry
    };
    World::new(Settings {
        ordering: true,
        retry,
        ..Settings::default()
    })
}

/// How many messages each request so far held.
pub(super) fn sent_sizes(world: &World) -> Vec<usize> {
    let sent = world.sent.iter();
    sent.map(|request| request.messages.len()).collect()
}

impl World {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            machine: Machine::new(settings, None).0,
            now: clock::now(),
            records: Vec::new(),
            calls: Vec::new(),
            known: BTreeSet::new(),
            sent: Vec::new(),
            stored: Vec::new(),
            stored_by_key: BTreeMap::new(),
            missing: BTreeSet::new(),
            creating: Vec::new(),
            undecided: BTreeSet::new(),
            handling: Vec::new(),
            handled: BTreeSet::new(),
            durable: BTreeSet::new(),
            flushing: None,
            cuts: BTreeMap::new(),
            resolved: Vec::new(),
            commits: BTreeSet::new(),
            committed: Vec::new(),
            given_up: Vec::new(),
            answers: Vec::new(),
            notices: Vec::new(),
            epoch: Epoch::default(),
        }
    }

    fn record(&mut self, topic: TopicName, key: &str, poisoned: bool) -> PublishMessage {
        let number = u32::try_from(self.records.len()).unwrap();
        self.records.push(Record {
            number,
            topic,
            key: (!key.is_empty()).then(|| key.to_owned()),
            poisoned,
        });
        PublishMessage::new(number.to_be_bytes().to_vec()).ordering_key(key)
    }

    pub(super) fn accept(&mut self, to: u8, key: &str, poisoned: bool) -> bool {
        self.submit(to, key, poisoned, None)
    }

    pub(super) fn submit(
        &mut self,
        to: u8,
        key: &str,
        poisoned: bool,
        reply: Option<ReplyId>,
    ) -> bool {
        let message = self.record(topic(to), key, poisoned);
        let bytes = message::frame_len(&message);
        let identity = self
            .machine
            .is_staged()
            .then(|| identity(self.records.len()));
        let taken = self
            .machine
            .accept(self.now, &topic(to), &message, bytes, identity, reply);
        self.machine.check_invariants();
        taken
    }

    /// A record that breaks a limit.
    pub(super) fn reject(&mut self, to: u8, key: &str) {
        let message = self.record(topic(to), key, true);
        let refused = Refused {
            topic: Some(topic(to)),
            bytes: message::frame_len(&message),
            message: Some(message),
            reason: RejectedReason::Limit,
            cause: Cause::new(MessageError::Empty),
        };
        self.undecided
            .extend(self.records.last().map(|record| record.number));
        self.machine.reject(self.now, refused, None);
        self.machine.check_invariants();
    }

    /// Performs every effect.
    pub(super) fn perform(&mut self) {
        while let Some(effect) = self.machine.poll_effect(self.now) {
            self.machine.check_invariants();
            match effect {
                Effect::Publish {
                    id,
                    topic,
                    header,
                    frames,
                    deadline,
                } => {
                    let mut body = BytesMut::from(header.as_ref());
                    body.extend_from_slice(&frames);
                    let encoded = body.freeze();
                    let request = PublishRequest::decode(encoded.clone()).unwrap();
                    assert_eq!(request.topic, topic.as_str());
                    assert!(
                        request
                            .messages
                            .windows(2)
                            .all(|pair| pair[0].ordering_key == pair[1].ordering_key),
                        "one ordering key per request"
                    );
                    self.stands_behind_no_verdict(&request);
                    self.overtakes_no_repair(id, &topic);
                    self.sent.push(request.clone());
                    self.calls.push(Call {
                        id,
                        request,
                        encoded,
                        deadline,
                    });
                }
                Effect::Handle { id, rejected } => {
                    let payload = rejected.payload.unwrap();
                    let number = number_of(
                        &gcp_wire::proto::pubsub::PubsubMessage::decode(payload).unwrap(),
                    );
                    self.handled.insert(number);
                    self.handling.push((id, number));
                }
                Effect::CreateTopic(topic) => self.creating.push(topic),
                Effect::FlushHandler => {
                    assert!(self.flushing.is_none(), "one flush at a time");
                    self.flushing = Some(self.handled.clone());
                }
                Effect::Resolve(id, outcome) => self.resolve(id, outcome.map(drop)),
                Effect::Committed(id, committed) => {
                    assert!(self.commits.remove(&id), "a commit resolves once");
                    match committed {
                        Ok(committed) => self.committed.push(committed),
                        Err(error) => self.given_up.push(error),
                    }
                }
                Effect::Answer(id, published) => self.answers.push((id, published)),
                Effect::Tell(notice) => self.notices.push(notice),
            }
        }
        self.machine.check_invariants();
    }

    fn resolve(&mut self, id: CutId, outcome: Result<(), CheckpointError>) {
        let (epoch, before) = self.cuts.remove(&id).expect("a cut resolves once");
        if outcome.is_ok() && !self.machine.is_staged() {
            for record in &self.records[..before] {
                assert!(
                    self.stored.contains(&record.number) || self.durable.contains(&record.number),
                    "{record:?} is neither stored nor durable at the handler"
                );
            }
        }
        self.resolved.push((epoch, outcome));
    }

    pub(super) fn decide(&mut self, at: usize, verdict: Verdict) {
        let (id, number) = self.handling.remove(at);
        self.undecided.remove(&number);
        self.machine.handle_verdict(self.now, id, Ok(verdict));
        self.machine.check_invariants();
    }

    pub(super) fn end_flush(&mut self, ok: bool) {
        let Some(covered) = self.flushing.take() else {
            return;
        };
        let outcome = if ok {
            self.durable.extend(covered);
            Ok(())
        } else {
            Err(CheckpointError::driver_gone())
        };
        self.machine.handle_flushed(self.now, outcome, 0.5);
        self.machine.check_invariants();
    }

    pub(super) fn snapshot(&mut self) -> Epoch {
        self.epoch = self.epoch.next();
        let id = self.machine.snapshot(self.now, self.epoch).unwrap();
        self.cuts.insert(id, (Some(self.epoch), self.records.len()));
        self.machine.check_invariants();
        self.epoch
    }

    pub(super) fn flush(&mut self) {
        let id = self.machine.flush(self.now);
        self.cuts.insert(id, (None, self.records.len()));
    }

    pub(super) fn commit(&mut self, epoch: Epoch) {
        if let Ok(id) = self.machine.commit(self.now, epoch) {
            self.commits.insert(id);
        }
        self.machine.check_invariants();
    }

    pub(super) fn abort(&mut self, epoch: Epoch) {
        self.machine.abort(self.now, epoch);
        self.machine.check_invariants();
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.machine.handle_timeout(self.now);
        self.machine.check_invariants();
    }

    /// Lets everything go well until nothing is left to do.
    pub(super) fn heal(&mut self) {
        for _ in 0..100_000 {
            self.perform();
            if !self.calls.is_empty() {
                self.serve(0, false);
            } else if !self.creating.is_empty() {
                self.create(0, true);
            } else if !self.handling.is_empty() {
                self.decide(0, Verdict::Drop);
            } else if self.flushing.is_some() {
                self.end_flush(true);
            } else if self.machine.held().items > 0 {
                let at = self
                    .machine
                    .poll_timeout()
                    .expect("what is held is not forgotten");
                self.now = self.now.max(at);
                self.machine.handle_timeout(self.now);
            } else {
                return;
            }
        }
        panic!("the sink never comes to rest");
    }

    pub(super) fn ended(&self) -> &SinkError {
        self.machine.ended().expect("the sink has ended")
    }
}
