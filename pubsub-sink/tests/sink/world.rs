//! A server in memory and sinks that publish to it.

use std::{sync::Arc, time::Duration};

use connector_core::{
    Cause, Checkpoint, CheckpointError, Committed, Epoch, FailureHandler, Limits, Receipt,
    Rejected, Restored, Verdict,
};
use futures::SinkExt;
use gcp_emulator::{Body, Call, Emulator, EmulatorBuilder, Fault, Method, Rule};
use gcp_wire::proto::pubsub::PublishRequest;
use pubsub_sink::{
    Delivery, Endpoint, PublishMessage, PubsubSink, SinkBuilder, SinkState, TopicName,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// Longer, in the tests' paused time, than anything that is not stuck.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// A message and the topic it names, short or in full.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) to: String,
    pub(crate) message: PublishMessage,
}

pub(crate) fn record(to: &str, payload: impl Into<String>) -> Record {
    Record {
        to: to.to_owned(),
        message: PublishMessage::new(payload.into()),
    }
}

pub(crate) fn keyed(to: &str, key: &str, payload: impl Into<String>) -> Record {
    let mut record = record(to, payload);
    record.message = record.message.ordering_key(key);
    record
}

pub(crate) struct World {
    pub(crate) emulator: Emulator,
}

impl World {
    pub(crate) fn new(topics: &[&str]) -> Self {
        Self::with(Emulator::builder(), topics)
    }

    pub(crate) fn with(builder: EmulatorBuilder, topics: &[&str]) -> Self {
        let emulator = builder.require_routing_header(true).start();
        let world = Self { emulator };
        for topic in topics {
            world.create(topic);
        }
        world
    }

    pub(crate) fn create(&self, topic: &str) {
        self.emulator.create_topic(&full(topic)).unwrap();
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::in_memory(self.emulator.dialer())
    }

    /// A builder whose sinks publish records where they say.
    pub(crate) fn builder(&self) -> SinkBuilder<Record> {
        PubsubSink::builder(|record: &Record| Ok(Some(record.message.clone())))
            .resolve(|record: &Record| TopicName::parse_in("demo", &record.to))
            .endpoint(self.endpoint())
    }

    /// A builder of sinks that hold messages for their commit.
    pub(crate) fn staged(&self) -> SinkBuilder<Record> {
        self.builder().delivery(Delivery::Staged)
    }

    pub(crate) fn sink(&self) -> PubsubSink<Record> {
        self.builder().build().unwrap()
    }

    pub(crate) fn fault(&self, rule: Rule) {
        self.emulator.faults().add(rule);
    }

    pub(crate) fn fault_on_publish(&self, fault: Fault) {
        self.fault(Rule::on(Method::Publish).then(fault));
    }

    /// The payloads that a topic stored, in order.
    pub(crate) fn stored(&self, topic: &str) -> Vec<String> {
        self.emulator
            .observe()
            .topic(&full(topic))
            .payloads()
            .map(|payload| String::from_utf8_lossy(payload).into_owned())
            .collect()
    }

    /// Every publish request that arrived, with its encoded size.
    pub(crate) fn requests(&self) -> Vec<(PublishRequest, usize)> {
        self.emulator
            .observe()
            .requests_of(Method::Publish)
            .map(|call| (published(call), call.encoded_len))
            .collect()
    }

    pub(crate) fn count(&self, method: Method) -> u64 {
        self.emulator.observe().count(method)
    }
}

pub(crate) fn full(topic: &str) -> String {
    TopicName::parse_in("demo", topic).unwrap().to_string()
}

pub(crate) fn published(call: &Call) -> PublishRequest {
    let Body::Publish(request) = &call.body else {
        panic!("{:?} is no publish request", call.body);
    };
    request.clone()
}

/// Whether a message of the call carries the byte that the service refuses in these tests.
pub(crate) fn is_poisoned(call: &Call) -> bool {
    published(call)
        .messages
        .iter()
        .any(|message| message.data.contains(&POISON))
}

/// A byte that no test payload but a poisoned one holds.
pub(crate) const POISON: u8 = b'!';

/// Feeds records without waiting for what becomes of them.
pub(crate) async fn feed(sink: &mut PubsubSink<Record>, records: impl IntoIterator<Item = Record>) {
    for record in records {
        sink.feed(record).await.unwrap();
    }
}

pub(crate) fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests measure how long something waited"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Limits that no test reaches.
pub(crate) fn wide() -> Limits {
    Limits::new(1_000_000, 1 << 30)
}

/// A failure handler whose every answer is given by the test.
pub(crate) struct Desk {
    pub(crate) rejected: mpsc::Receiver<(Rejected, oneshot::Sender<Verdict>)>,
    pub(crate) flushes: mpsc::Receiver<oneshot::Sender<Result<(), CheckpointError>>>,
}

pub(crate) struct DeskHandler {
    rejected: mpsc::Sender<(Rejected, oneshot::Sender<Verdict>)>,
    flushes: mpsc::Sender<oneshot::Sender<Result<(), CheckpointError>>>,
}

pub(crate) fn desk() -> (DeskHandler, Desk) {
    let (rejected_in, rejected) = mpsc::channel(10_000);
    let (flushes_in, flushes) = mpsc::channel(100);
    let handler = DeskHandler {
        rejected: rejected_in,
        flushes: flushes_in,
    };
    (handler, Desk { rejected, flushes })
}

fn gone() -> CheckpointError {
    CheckpointError::Handler {
        cause: Cause::new(std::io::Error::other("the desk is closed")),
    }
}

impl FailureHandler for DeskHandler {
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict> {
        let (verdict_in, verdict) = oneshot::channel();
        match self.rejected.try_send((rejected, verdict_in)) {
            Ok(()) => Receipt::pending(async { verdict.await.map_err(|_| gone()) }),
            Err(_) => Receipt::failed(gone()),
        }
    }

    fn flush(&mut self) -> Receipt<()> {
        let (outcome_in, outcome) = oneshot::channel();
        match self.flushes.try_send(outcome_in) {
            Ok(()) => Receipt::pending(async { outcome.await.map_err(|_| gone())? }),
            Err(_) => Receipt::failed(gone()),
        }
    }
}

/// A failure handler that drops everything and keeps it for the test to look at.
#[derive(Clone, Default)]
pub(crate) struct Bin(Arc<std::sync::Mutex<Vec<Rejected>>>);

impl Bin {
    pub(crate) fn content(&self) -> Vec<Rejected> {
        self.0.lock().unwrap().clone()
    }
}

impl FailureHandler for Bin {
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict> {
        self.0.lock().unwrap().push(rejected);
        Receipt::ready(Verdict::Drop)
    }

    fn flush(&mut self) -> Receipt<()> {
        Receipt::ready(())
    }
}

/// A checkpoint as a host keeps it: bytes.
#[derive(Clone)]
pub(crate) struct Saved {
    epoch: Epoch,
    bytes: Vec<u8>,
}

impl Saved {
    pub(crate) fn restored(&self) -> Restored<SinkState> {
        Restored::new(self.epoch, postcard::from_bytes(&self.bytes).unwrap())
    }

    pub(crate) fn settled(&self) -> Restored<SinkState> {
        self.restored().settled(true)
    }
}

pub(crate) async fn seal(sink: &mut PubsubSink<Record>, epoch: u64) -> Saved {
    let epoch = Epoch::new(epoch);
    let state = sink.snapshot(epoch).await.unwrap();
    Saved {
        epoch,
        bytes: postcard::to_allocvec(&state).unwrap(),
    }
}

/// A whole checkpoint: the state that is durable, and what its commit settled.
pub(crate) async fn checkpoint(sink: &mut PubsubSink<Record>, epoch: u64) -> (Saved, Committed) {
    let saved = seal(sink, epoch).await;
    let committed = tokio::time::timeout(LONG, sink.commit(Epoch::new(epoch)));
    (saved, committed.await.unwrap().unwrap())
}
