//! A topic and a subscription on Google's emulator, seen from outside, and sources that read it.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use connector_core::{Checkpoint, Committed, Epoch, Restored};
use futures::StreamExt;
use gcp_wire::{
    Connection, ConnectionOptions, Credentials, FromAnswer, Method,
    method::{
        ACKNOWLEDGE, CREATE_SNAPSHOT, CREATE_SUBSCRIPTION, CREATE_TOPIC, DELETE_SNAPSHOT,
        DELETE_SUBSCRIPTION, DELETE_TOPIC, MODIFY_ACK_DEADLINE, PUBLISH, PULL, SEEK,
    },
    proto::pubsub::{
        AcknowledgeRequest, CreateSnapshotRequest, DeleteSnapshotRequest,
        DeleteSubscriptionRequest, DeleteTopicRequest, ModifyAckDeadlineRequest, PublishRequest,
        PubsubMessage, PullRequest, ReceivedMessage, SeekRequest, Subscription, Topic,
        seek_request::Target,
    },
};
use pubsub_source::{
    Endpoint, Message, PubsubSource, Service, SourceBuilder, SourceError, SourceState,
    SubscriptionName,
};
use tokio::runtime::Runtime;

/// Longer than anything takes that a test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// How long an emulator that has something to deliver makes a pull wait at most: it hands out
/// every 50 ms.
const QUIET: Duration = Duration::from_secs(1);

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The payload of a message that is published to see that everything before it has come.
const LAST: &str = "the last one";

pub(crate) fn google() -> Endpoint {
    Endpoint::emulator_from_env(Service::Pubsub)
        .unwrap()
        .expect("PUBSUB_EMULATOR_HOST names Google's emulator")
}

/// Where that is, for a door to lead there.
pub(crate) fn google_address() -> String {
    google()
        .to_string()
        .trim_start_matches("http://")
        .to_owned()
}

pub(crate) struct World {
    endpoint: Endpoint,
    connection: Connection,
    topic: String,
    pub(crate) subscription: SubscriptionName,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// With a subscription of these settings; it gets everything published from now on.
    pub(crate) async fn with(settings: impl FnOnce(&mut Subscription)) -> Self {
        let id = format!("witness-{:016x}", fastrand::u64(..));
        Self::at(google(), &id, settings).await
    }

    pub(crate) async fn at(
        endpoint: Endpoint,
        id: &str,
        settings: impl FnOnce(&mut Subscription),
    ) -> Self {
        let options = ConnectionOptions::default();
        let credentials = Credentials::anonymous();
        let world = Self {
            connection: Connection::unary(endpoint.clone(), credentials, options).unwrap(),
            endpoint,
            topic: format!("projects/demo/topics/{id}"),
            subscription: SubscriptionName::new("demo", id).unwrap(),
        };
        let topic = Topic {
            name: world.topic.clone(),
            ..Topic::default()
        };
        world.call(&CREATE_TOPIC, topic).await;
        let mut subscription = Subscription {
            name: world.subscription.to_string(),
            topic: world.topic.clone(),
            ack_deadline_seconds: 10,
            ..Subscription::default()
        };
        settings(&mut subscription);
        world.call(&CREATE_SUBSCRIPTION, subscription).await;
        world
    }

    /// What the server answers to any call.
    pub(crate) async fn call<Req, Res>(&self, method: &Method<Req, Res>, request: Req) -> Res
    where
        Req: prost::Message + Default + 'static,
        Res: FromAnswer,
    {
        let routing = self.subscription.as_str();
        let answer = self.connection.call(method, routing, request, LONG).await;
        answer.unwrap()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    pub(crate) fn subscription(&self) -> &SubscriptionName {
        &self.subscription
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// A source that reads the subscription.
    pub(crate) fn source(&self) -> SourceBuilder {
        self.source_by_way_of(self.endpoint.clone())
    }

    pub(crate) fn source_by_way_of(&self, endpoint: Endpoint) -> SourceBuilder {
        PubsubSource::builder(self.subscription.clone()).endpoint(endpoint)
    }

    /// Publishes in one request, and answers the ids.
    pub(crate) async fn publish(&self, messages: Vec<PubsubMessage>) -> Vec<String> {
        let request = PublishRequest {
            topic: self.topic.clone(),
            messages,
        };
        let ids = self.call(&PUBLISH, request).await;
        ids.iter().map(str::to_owned).collect()
    }

    /// Publishes one message per number.
    pub(crate) async fn publish_numbers(&self, numbers: impl IntoIterator<Item = u64>) {
        let messages = numbers.into_iter().map(|number| PubsubMessage {
            data: number.to_string().into(),
            ..PubsubMessage::default()
        });
        self.publish(messages.collect()).await;
    }

    /// What one pull gives within `wait`.
    pub(crate) async fn pull(&self, wait: Duration) -> Vec<ReceivedMessage> {
        let request = PullRequest {
            subscription: self.subscription.to_string(),
            max_messages: 1000,
            ..PullRequest::default()
        };
        let routing = self.subscription.as_str();
        match self.connection.call(&PULL, routing, request, wait).await {
            Ok(response) => response.received_messages,
            Err(error) if error.is_timeout() => Vec::new(),
            Err(error) => panic!("a pull fails: {error}"),
        }
    }

    /// Gives deliveries back.
    pub(crate) async fn give_back(&self, received: &[ReceivedMessage]) {
        if received.is_empty() {
            return;
        }
        let request = ModifyAckDeadlineRequest {
            subscription: self.subscription.to_string(),
            ack_ids: ack_ids(received),
            ack_deadline_seconds: 0,
        };
        self.call(&MODIFY_ACK_DEADLINE, request).await;
    }

    /// Takes what is outstanding away from whoever holds it, as the end of its leases would.
    pub(crate) async fn end_leases(&self) {
        let name = format!("projects/demo/snapshots/{}", self.subscription.id());
        let snapshot = CreateSnapshotRequest {
            name: name.clone(),
            subscription: self.subscription.to_string(),
            ..CreateSnapshotRequest::default()
        };
        self.call(&CREATE_SNAPSHOT, snapshot).await;
        let seek = SeekRequest {
            subscription: self.subscription.to_string(),
            target: Some(Target::Snapshot(name.clone())),
        };
        self.call(&SEEK, seek).await;
        let delete = DeleteSnapshotRequest { snapshot: name };
        self.call(&DELETE_SNAPSHOT, delete).await;
    }

    /// Everything that is not acknowledged, leased or not, by plain pulls; given back afterwards.
    /// To be asked when no source reads.
    pub(crate) async fn unacknowledged(&self) -> BTreeSet<String> {
        self.end_leases().await;
        let last = self.publish(vec![PubsubMessage {
            data: LAST.into(),
            ..PubsubMessage::default()
        }]);
        let last = last.await.remove(0);
        let mut found = BTreeSet::new();
        let mut pulled = Vec::new();
        let pulling = async {
            loop {
                // Once the last one has come, a pull that gives nothing says that nothing is left.
                let more = self.pull(QUIET).await;
                if more.is_empty() && found.contains(&last) {
                    break;
                }
                let ids = more.iter().filter_map(|one| one.message.as_ref());
                found.extend(ids.map(|message| message.message_id.clone()));
                pulled.extend(more);
            }
        };
        tokio::time::timeout(LONG, pulling).await.unwrap();
        found.remove(&last);
        let (sentinel, rest): (Vec<_>, Vec<_>) = pulled
            .into_iter()
            .partition(|one| one.message.as_ref().unwrap().message_id == last);
        let acknowledge = AcknowledgeRequest {
            subscription: self.subscription.to_string(),
            ack_ids: ack_ids(&sentinel),
        };
        self.call(&ACKNOWLEDGE, acknowledge).await;
        self.give_back(&rest).await;
        found
    }

    pub(crate) async fn assert_all_acknowledged(&self) {
        assert_eq!(self.unacknowledged().await, BTreeSet::new());
    }

    pub(crate) async fn delete_subscription(&self) {
        let request = DeleteSubscriptionRequest {
            subscription: self.subscription.to_string(),
        };
        self.call(&DELETE_SUBSCRIPTION, request).await;
    }

    pub(crate) async fn delete_topic(&self) {
        let request = DeleteTopicRequest {
            topic: self.topic.clone(),
        };
        self.call(&DELETE_TOPIC, request).await;
    }

    /// Leaves nothing on the server.
    pub(crate) async fn delete(self) {
        self.delete_subscription().await;
        self.delete_topic().await;
    }
}

fn ack_ids(received: &[ReceivedMessage]) -> Vec<String> {
    received.iter().map(|one| one.ack_id.clone()).collect()
}

/// A runtime of its own, for a source that dies as in a killed process: nothing is given back.
pub(crate) struct Process(Option<Runtime>);

impl Process {
    pub(crate) fn start(builder: SourceBuilder) -> (Self, PubsubSource) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let source = {
            let _inside = runtime.enter();
            builder.build().unwrap()
        };
        (Self(Some(runtime)), source)
    }

    /// Ends everything that runs in it, wherever it is, with its connections.
    pub(crate) async fn kill(mut self, mut source: PubsubSource) {
        self.0.take().unwrap().shutdown_background();
        let end = last_word(&mut source).await;
        assert!(matches!(end, SourceError::DriverGone { .. }), "{end:?}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "leases on a real server last real time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let waiting = async {
        while !is_so() {
            looks.tick().await;
        }
    };
    let waited = tokio::time::timeout(LONG, waiting).await;
    assert!(waited.is_ok(), "in vain: {what}");
}

/// What a message was published with.
pub(crate) fn number(message: &Message) -> u64 {
    std::str::from_utf8(message.data())
        .unwrap()
        .parse()
        .unwrap()
}

/// Takes the next message.
pub(crate) async fn next(source: &mut PubsubSource) -> Message {
    let next = tokio::time::timeout(LONG, source.next()).await;
    next.expect("a message comes")
        .expect("the stream goes on")
        .expect("the source lives")
}

/// Takes so many messages and answers their numbers, sorted.
pub(crate) async fn read(source: &mut PubsubSource, count: usize) -> Vec<u64> {
    let mut numbers = Vec::with_capacity(count);
    for _ in 0..count {
        numbers.push(number(&next(source).await));
    }
    numbers.sort_unstable();
    numbers
}

/// The source's last word.
pub(crate) async fn last_word(source: &mut PubsubSource) -> SourceError {
    loop {
        let next = tokio::time::timeout(LONG, source.next()).await;
        match next.expect("the source ends").expect("with an error") {
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

/// Takes a checkpoint's state.
pub(crate) async fn seal(source: &mut PubsubSource, epoch: u64) -> SourceState {
    source.snapshot(Epoch::new(epoch)).await.unwrap()
}

/// Commits and waits for the verdicts.
pub(crate) async fn commit(source: &mut PubsubSource, epoch: u64) -> Committed {
    let receipt = source.commit(Epoch::new(epoch));
    let verdict = tokio::time::timeout(LONG, receipt).await;
    verdict.expect("a commit resolves").unwrap()
}

/// A state as a host gives it back: through its bytes.
pub(crate) fn restored(epoch: u64, state: &SourceState) -> Restored<SourceState> {
    let bytes = serde_json::to_vec(state).unwrap();
    Restored::new(Epoch::new(epoch), serde_json::from_slice(&bytes).unwrap())
}
