//! A server with one topic and one subscription, and sources that read it.

use std::{sync::Arc, time::Duration};

use connector_core::{Checkpoint, Committed, Epoch, Restored};
use futures::StreamExt;
use gcp_emulator::{
    Emulator, EmulatorBuilder, Method,
    pubsub::{
        proto::{PubsubMessage, Subscription},
        state::SubscriptionRecord,
    },
};
use pubsub_source::{
    Endpoint, Message, PubsubSource, SourceBuilder, SourceError, SourceState, SubscriptionName,
};

pub const TOPIC: &str = "projects/demo-project/topics/t11";
pub const SUBSCRIPTION: &str = "projects/demo-project/subscriptions/s11";

/// What a world that has two of each has beside these.
pub const OTHER_TOPIC: &str = "projects/demo-project/topics/t12";
pub const OTHER: &str = "projects/demo-project/subscriptions/s12";

/// Far longer than anything takes that a test waits for; in paused time it costs nothing.
pub const LONG: Duration = Duration::from_secs(900);

pub struct World {
    pub emulator: Emulator,
}

impl World {
    pub fn new() -> Self {
        Self::with(|server| server, |_| {})
    }

    pub fn with(
        server: impl FnOnce(EmulatorBuilder) -> EmulatorBuilder,
        subscription: impl FnOnce(&mut Subscription),
    ) -> Self {
        let emulator = server(Emulator::builder()).start();
        emulator.create_topic(TOPIC).unwrap();
        emulator
            .create_subscription(SUBSCRIPTION, TOPIC, subscription)
            .unwrap();
        Self { emulator }
    }

    /// One more topic with one more subscription.
    pub fn with_other(self, subscription: impl FnOnce(&mut Subscription)) -> Self {
        self.emulator.create_topic(OTHER_TOPIC).unwrap();
        self.emulator
            .create_subscription(OTHER, OTHER_TOPIC, subscription)
            .unwrap();
        self
    }

    /// With these messages in the first topic and those in the other.
    pub fn with_both_published(
        self,
        first: impl IntoIterator<Item = u64>,
        other: impl IntoIterator<Item = u64>,
    ) -> Self {
        self.publish(first);
        self.publish_to(OTHER_TOPIC, other);
        self
    }

    /// A source that reads these subscriptions, all of one job.
    pub fn source_of(&self, subscriptions: &[&str]) -> SourceBuilder {
        let names = subscriptions
            .iter()
            .map(|name| name.parse::<SubscriptionName>().unwrap());
        PubsubSource::builder_of(names)
            .instance("a job")
            .endpoint(Endpoint::in_memory(self.emulator.dialer()))
    }

    /// A source that reads the subscription.
    pub fn source(&self) -> SourceBuilder {
        PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
            .endpoint(Endpoint::in_memory(self.emulator.dialer()))
    }

    /// Publishes one message per number, in requests that the service takes.
    pub fn publish(&self, numbers: impl IntoIterator<Item = u64>) {
        self.publish_to(TOPIC, numbers);
    }

    /// As [`publish`](Self::publish), to a topic by name.
    pub fn publish_to(&self, topic: &str, numbers: impl IntoIterator<Item = u64>) {
        let messages: Vec<PubsubMessage> = numbers
            .into_iter()
            .map(|number| PubsubMessage {
                data: number.to_string().into(),
                ..PubsubMessage::default()
            })
            .collect();
        for request in messages.chunks(1000) {
            self.emulator.publish(topic, request.to_vec()).unwrap();
        }
    }

    /// Makes the service deliver everything again, acknowledged messages included.
    pub async fn seek_to_the_beginning(&self) {
        use gcp_wire::{Connection, ConnectionOptions, Credentials, method::SEEK, proto};
        let connection = Connection::unary(
            Endpoint::in_memory(self.emulator.dialer()),
            Credentials::anonymous(),
            ConnectionOptions::default(),
        );
        let target = proto::pubsub::seek_request::Target::Time(proto::Timestamp::default());
        let request = proto::pubsub::SeekRequest {
            subscription: SUBSCRIPTION.to_owned(),
            target: Some(target),
        };
        let sought = connection
            .unwrap()
            .call(&SEEK, SUBSCRIPTION, request, Duration::from_secs(10))
            .await;
        sought.unwrap();
    }

    pub fn record(&self) -> Arc<SubscriptionRecord> {
        self.emulator.observe().subscription(SUBSCRIPTION)
    }

    /// The number of messages whose acknowledgement took effect.
    pub fn acked(&self) -> usize {
        self.record().acked_ids().len()
    }

    pub async fn until_acked(&self, count: usize) {
        let acked = self
            .emulator
            .wait_until(
                |seen| seen.subscription(SUBSCRIPTION).acked_ids().len() >= count,
                LONG,
            )
            .await;
        assert!(acked, "{} of {count} are acknowledged", self.acked());
    }

    /// Waits until the server answered so many calls of a method.
    pub async fn until_called(&self, method: Method, times: u64) {
        let called = self
            .emulator
            .wait_until(|seen| seen.count(method) >= times, LONG)
            .await;
        assert!(called, "{method:?} was not called {times} times");
    }
}

/// What a message was published with.
pub fn number(message: &Message) -> u64 {
    std::str::from_utf8(message.data())
        .unwrap()
        .parse()
        .unwrap()
}

/// Takes the next message.
pub async fn next(source: &mut PubsubSource) -> Message {
    let next = tokio::time::timeout(LONG, source.next()).await;
    next.expect("a message comes")
        .expect("the stream goes on")
        .expect("the source lives")
}

/// Takes so many messages and answers their numbers.
pub async fn read(source: &mut PubsubSource, count: usize) -> Vec<u64> {
    let mut numbers = Vec::with_capacity(count);
    for _ in 0..count {
        numbers.push(number(&next(source).await));
    }
    numbers
}

/// Lets `span` pass while the host polls, and expects that nothing comes.
pub async fn nothing_for(source: &mut PubsubSource, span: Duration) {
    if let Ok(item) = tokio::time::timeout(span, source.next()).await {
        panic!("nothing should come, but {item:?} did");
    }
}

/// The source's last word.
pub async fn last_word(source: &mut PubsubSource) -> SourceError {
    loop {
        let next = tokio::time::timeout(LONG, source.next()).await;
        match next.expect("the source ends").expect("with an error") {
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

/// Takes a checkpoint's state.
pub async fn seal(source: &mut PubsubSource, epoch: u64) -> SourceState {
    source.snapshot(Epoch::new(epoch)).await.unwrap()
}

/// Commits and waits for the verdicts.
pub async fn commit(source: &mut PubsubSource, epoch: u64) -> Committed {
    let receipt = source.commit(Epoch::new(epoch));
    let verdict = tokio::time::timeout(LONG, receipt).await;
    verdict.expect("a commit resolves").unwrap()
}

/// A state as a host gives it back: through its bytes.
pub fn restored(epoch: u64, state: &SourceState) -> Restored<SourceState> {
    let bytes = serde_json::to_vec(state).unwrap();
    Restored::new(Epoch::new(epoch), serde_json::from_slice(&bytes).unwrap())
}

/// Sorted.
pub fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}
