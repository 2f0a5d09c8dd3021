//! The Pub/Sub sink.

use std::{collections::BTreeSet, error::Error};

use connector_core::BoxError;
use gcp_emulator::{Emulator, Method, pubsub::proto::PubsubMessage};
use pubsub_sink::{
    Delivery, Endpoint, MissingTopics, PublishMessage, PubsubDeadLetterQueue, PubsubSink,
    SinkBuilder, SinkError, TopicCreation,
};

use crate::{
    sinks::{Case, Subject, run, word},
    trouble::Trouble,
};

column!(publish, super::publishes);
column!(publish_staged, super::publishes);
column!(create_topic, super::publishes);
column!(list_topic_subscriptions, super::dead_letters);

const TOPIC: &str = "projects/demo/topics/orders";
const REJECTED: &str = "projects/demo/topics/rejected";

impl Subject for PubsubSink<usize> {
    const CONNECTOR: &'static str = "pubsub_sink";

    fn last_word(error: &(dyn Error + 'static)) -> Option<String> {
        word(error, |error| matches!(error, SinkError::Closed { .. }))
    }

    fn kept(&self) -> BTreeSet<usize> {
        let kept = self.quarantined().into_iter();
        kept.map(|kept| enclosed(kept.message)).collect()
    }

    fn send_kept(&mut self) {
        self.publish_quarantined(|_| true);
    }
}

fn number(payload: &[u8]) -> usize {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

/// The record of a message that is the payload of another, or of a state.
fn enclosed(message: bytes::Bytes) -> usize {
    let message: PubsubMessage = prost::Message::decode(message).unwrap();
    number(&message.data)
}

fn stored(emulator: &Emulator) -> BTreeSet<usize> {
    let seen = emulator.observe();
    match seen.topics.get(TOPIC) {
        Some(topic) => topic.payloads().map(number).collect(),
        None => BTreeSet::new(),
    }
}

/// A server that has these topics.
fn server(topics: &[&str]) -> Emulator {
    let emulator = Emulator::builder().require_routing_header(true).start();
    for topic in topics {
        emulator.create_topic(topic).unwrap();
    }
    emulator
}

/// A sink that publishes what `encode` makes of its records.
fn sink(
    endpoint: &Endpoint,
    encode: impl FnMut(&usize) -> Result<Option<PublishMessage>, BoxError> + Send + 'static,
) -> SinkBuilder<usize> {
    PubsubSink::builder(encode)
        .topic(TOPIC.parse().unwrap())
        .endpoint(endpoint.clone())
}

async fn publishes(column: &'static str, trouble: Trouble) {
    let staged = column == "publish_staged";
    let (method, missing, topics) = match column {
        "create_topic" => (
            Method::CreateTopic,
            MissingTopics::Create(TopicCreation::default()),
            &[][..],
        ),
        _ => (Method::Publish, MissingTopics::default(), &[TOPIC][..]),
    };
    let emulator = server(topics);
    let endpoint = Endpoint::in_memory(emulator.dialer());
    let delivery = if staged {
        Delivery::Staged
    } else {
        Delivery::Flush
    };
    let build = move |restored| {
        let encode = |number: &usize| Ok(Some(PublishMessage::new(number.to_string())));
        sink(&endpoint, encode)
            .delivery(delivery)
            .missing_topics(missing.clone())
            .restore(restored)
            .build()
            .unwrap()
    };
    let case = Case {
        emulator,
        column,
        method,
        staged,
        build: Box::new(build),
        stored,
    };
    run(case, trouble).await;
}

/// One record in three is refused by the sink itself.
fn is_rejected(number: usize) -> bool {
    number.is_multiple_of(3)
}

fn stored_or_rejected(emulator: &Emulator) -> BTreeSet<usize> {
    let mut records = stored(emulator);
    assert!(!records.iter().any(|record| is_rejected(*record)));
    let letters = emulator.observe().topic(REJECTED);
    let letters = letters.messages.iter();
    records.extend(letters.map(|letter| enclosed(letter.data.clone())));
    records
}

/// A sink whose dead letters have a topic, at which their queue looks when it begins.
async fn dead_letters(column: &'static str, trouble: Trouble) {
    let emulator = server(&[TOPIC, REJECTED]);
    let endpoint = Endpoint::in_memory(emulator.dialer());
    let build = move |restored| {
        let queue = PubsubDeadLetterQueue::builder(REJECTED.parse().unwrap())
            .endpoint(endpoint.clone())
            .build();
        let encode = |number: &usize| {
            let message = PublishMessage::new(number.to_string());
            Ok(Some(match is_rejected(*number) {
                true => message.attribute("goog-x", "which the service reserves"),
                false => message,
            }))
        };
        sink(&endpoint, encode)
            .on_rejected(queue.unwrap())
            .restore(restored)
            .build()
            .unwrap()
    };
    let case = Case {
        emulator,
        column,
        method: Method::ListTopicSubscriptions,
        staged: false,
        build: Box::new(build),
        stored: stored_or_rejected,
    };
    run(case, trouble).await;
}
