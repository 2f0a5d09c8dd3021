//! The sink against Google's Pub/Sub emulator: what our own server may have wrong is seen here.
//!
//! Needs the feature `witness` and a running emulator at `PUBSUB_EMULATOR_HOST`, without which the
//! tests fail; only the one that kills an emulator starts one of its own. Resources have fresh names, so a running server can be used again and again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "witness/google.rs"]
mod google;
#[path = "witness/recorder.rs"]
mod recorder;
#[path = "witness/restart.rs"]
mod restart;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use connector_core::{Checkpoint, Epoch};
use futures::SinkExt;
use gcp_wire::{
    Connection, ConnectionOptions, Credentials, Endpoint, Service, TopicName,
    method::{CREATE_SUBSCRIPTION, CREATE_TOPIC, PULL},
    proto::pubsub::{PubsubMessage, PullRequest, Subscription, Topic},
};
use prost::Message;
use pubsub_sink::{
    MissingTopics, PublishMessage, PubsubDeadLetterQueue, PubsubSink, SinkBuilder, SinkError,
};

const CALL: Duration = Duration::from_secs(100);

#[derive(Debug, Clone)]
struct Record {
    to: TopicName,
    message: PublishMessage,
}

fn endpoint() -> Endpoint {
    Endpoint::emulator_from_env(Service::Pubsub)
        .unwrap()
        .expect("PUBSUB_EMULATOR_HOST names Google's emulator")
}

fn builder() -> SinkBuilder<Record> {
    PubsubSink::builder(|record: &Record| Ok(Some(record.message.clone())))
        .resolve(|record: &Record| record.to.clone())
        .endpoint(endpoint())
}

fn fresh(name: &str) -> TopicName {
    TopicName::new("demo", &format!("{name}-{:016x}", fastrand::u64(..))).unwrap()
}

struct Subscriber {
    connection: Connection,
    name: String,
}

impl Subscriber {
    /// Creates the topic, and a subscription that gets everything published from now on.
    async fn on(topic: &TopicName) -> Self {
        let subscriber = Self::to_existing(topic);
        let request = Topic {
            name: topic.to_string(),
            ..Topic::default()
        };
        let routing = topic.as_str();
        subscriber
            .connection
            .call(&CREATE_TOPIC, routing, request, CALL)
            .await
            .unwrap();
        subscriber.subscribe(topic).await;
        subscriber
    }

    fn to_existing(topic: &TopicName) -> Self {
        let options = ConnectionOptions::default();
        Self {
            connection: Connection::unary(endpoint(), Credentials::anonymous(), options).unwrap(),
            name: format!("projects/demo/subscriptions/{}", topic.id()),
        }
    }

    async fn subscribe(&self, topic: &TopicName) {
        let request = Subscription {
            name: self.name.clone(),
            topic: topic.to_string(),
            ack_deadline_seconds: 600,
            ..Subscription::default()
        };
        self.connection
            .call(&CREATE_SUBSCRIPTION, &self.name, request, CALL)
            .await
            .unwrap();
    }

    /// Pulls until so many different messages came.
    async fn pull(&self, count: usize) -> Vec<PubsubMessage> {
        let mut seen = BTreeSet::new();
        let mut messages = Vec::new();
        let pulling = async {
            while messages.len() < count {
                let request = PullRequest {
                    subscription: self.name.clone(),
                    max_messages: 1_000,
                    ..PullRequest::default()
                };
                let pulled = self
                    .connection
                    .call(&PULL, &self.name, request, CALL)
                    .await
                    .unwrap();
                for received in pulled.received_messages {
                    let message = received.message.unwrap();
                    if seen.insert(message.message_id.clone()) {
                        messages.push(message);
                    }
                }
            }
        };
        tokio::time::timeout(CALL, pulling).await.unwrap();
        messages
    }
}

fn payloads(messages: &[PubsubMessage]) -> BTreeSet<String> {
    messages
        .iter()
        .map(|message| String::from_utf8(message.data.to_vec()).unwrap())
        .collect()
}

#[tokio::test]
async fn everything_before_a_snapshot_reaches_the_subscriptions() {
    let topics = [fresh("witness"), fresh("witness"), fresh("witness")];
    let mut subscribers = Vec::new();
    for topic in &topics {
        subscribers.push(Subscriber::on(topic).await);
    }
    let mut sink = builder().build().unwrap();
    for number in 0..6_000_usize {
        let message = PublishMessage::new(number.to_string()).attribute("tenant", "acme");
        let to = topics[number % topics.len()].clone();
        sink.feed(Record { to, message }).await.unwrap();
    }
    sink.snapshot(Epoch::new(1)).await.unwrap();
    for (at, subscriber) in subscribers.iter().enumerate() {
        let messages = subscriber.pull(2_000).await;
        let expected: BTreeSet<String> = (at..6_000)
            .step_by(3)
            .map(|number| number.to_string())
            .collect();
        assert_eq!(payloads(&messages), expected);
        assert!(
            messages
                .iter()
                .all(|message| message.attributes["tenant"] == "acme")
        );
    }
    sink.close().await.unwrap();
}

#[tokio::test]
async fn a_missing_topic_is_created_and_a_subscription_made_then_gets_what_follows() {
    let topic = fresh("witness");
    let record = |payload: &str| Record {
        to: topic.clone(),
        message: PublishMessage::new(payload.to_owned()),
    };
    let mut sink = builder().build().unwrap();
    sink.send(record("before anyone subscribed")).await.unwrap();
    assert_eq!(sink.stats().topics_created, 1);
    let subscriber = Subscriber::to_existing(&topic);
    subscriber.subscribe(&topic).await;
    sink.send(record("after")).await.unwrap();
    let messages = subscriber.pull(1).await;
    assert_eq!(payloads(&messages), BTreeSet::from(["after".to_owned()]));
    sink.close().await.unwrap();

    let topic = fresh("witness");
    let mut sink = builder()
        .missing_topics(MissingTopics::End)
        .build()
        .unwrap();
    let message = PublishMessage::new("x");
    let to = topic.clone();
    sink.feed(Record { to, message }).await.unwrap();
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, SinkError::TopicMissing { topic: named, .. } if named == topic));
}

#[tokio::test]
async fn messages_of_a_key_arrive_in_the_order_of_acceptance() {
    let topic = fresh("witness");
    let subscriber = Subscriber::on(&topic).await;
    let mut sink = builder().message_ordering(true).build().unwrap();
    for number in 0..1_000_u32 {
        let key = format!("key-{}", number % 7);
        let message = PublishMessage::new(number.to_string()).ordering_key(key);
        let to = topic.clone();
        sink.feed(Record { to, message }).await.unwrap();
    }
    sink.close().await.unwrap();
    let mut messages = subscriber.pull(1_000).await;
    // The order of storing is that of the ids, which this server counts up.
    messages.sort_by_key(|message| message.message_id.parse::<u64>().unwrap());
    let mut by_key: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for message in &messages {
        let number = std::str::from_utf8(&message.data).unwrap().parse().unwrap();
        by_key
            .entry(message.ordering_key.clone())
            .or_default()
            .push(number);
    }
    assert_eq!(by_key.len(), 7);
    assert!(
        by_key.values().all(|numbers| numbers.is_sorted()),
        "{by_key:?}"
    );
}

#[tokio::test]
async fn the_limits_checked_here_are_the_servers() {
    let topic = fresh("witness");
    let subscriber = Subscriber::on(&topic).await;
    let largest = (0..100).fold(PublishMessage::new("x"), |message, n| {
        message.attribute(format!("{n:0>256}"), "v".repeat(1024))
    });
    // With 25 bytes and the name for the topic, 10 for tags and lengths: 10,000,000 in all.
    let topic_field = 2 + topic.as_str().len();
    let heaviest = PublishMessage::new(vec![b'a'; 10_000_000 - topic_field - 10]);
    let attributes_only = PublishMessage::default().attribute("k", "v");
    let mut sink = builder().build().unwrap();
    for message in [largest, heaviest, attributes_only] {
        let to = topic.clone();
        sink.feed(Record { to, message }).await.unwrap();
    }
    sink.close().await.unwrap();
    assert_eq!(subscriber.pull(3).await.len(), 3);
}

#[tokio::test]
async fn dead_letters_reach_their_subscription_and_the_others_theirs() {
    let (orders, rejected) = (fresh("witness"), fresh("witness-rejected"));
    let readers = (
        Subscriber::on(&orders).await,
        Subscriber::on(&rejected).await,
    );
    let queue = PubsubDeadLetterQueue::builder(rejected.clone())
        .endpoint(endpoint())
        .build()
        .unwrap();
    let watch = queue.watch();
    let mut sink = builder().on_rejected(queue).build().unwrap();
    for number in 0..1_000_u32 {
        // One in ten breaks a limit.
        let key = if number % 10 == 0 { "goog-x" } else { "x" };
        let message = PublishMessage::new(number.to_string()).attribute(key, "v");
        let to = orders.clone();
        sink.feed(Record { to, message }).await.unwrap();
    }
    sink.snapshot(Epoch::new(1)).await.unwrap();
    assert_eq!(watch.stats().records_published, 100);
    assert_eq!(readers.0.pull(900).await.len(), 900);
    let letters = readers.1.pull(100).await;
    assert_eq!(letters.len(), 100);
    for letter in &letters {
        assert_eq!(letter.attributes["dlq-connector"], "pubsub-sink");
        assert_eq!(letter.attributes["dlq-destination"], orders.as_str());
        let rejected = PubsubMessage::decode(letter.data.clone()).unwrap();
        assert!(rejected.attributes.contains_key("goog-x"));
    }
    sink.close().await.unwrap();
}
