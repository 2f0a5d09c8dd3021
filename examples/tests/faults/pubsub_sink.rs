//! The Pub/Sub sink.

use std::{collections::BTreeSet, error::Error};

use gcp_emulator::{Emulator, Method, pubsub::proto::PubsubMessage};
use pubsub_sink::{
    Delivery, Endpoint, MissingTopics, PublishMessage, PubsubSink, SinkError, TopicCreation,
};

use crate::{
    sinks::{Case, Subject, run, word},
    trouble::Trouble,
};

column!(publish, super::publishes);
column!(publish_staged, super::publishes);
column!(create_topic, super::publishes);

const TOPIC: &str = "projects/demo/topics/orders";

impl Subject for PubsubSink<usize> {
    const CONNECTOR: &'static str = "pubsub_sink";

    fn last_word(error: &(dyn Error + 'static)) -> Option<String> {
        word(error, |error| matches!(error, SinkError::Closed { .. }))
    }

    fn kept(&self) -> BTreeSet<usize> {
        let kept = self.quarantined().into_iter();
        kept.map(|kept| {
            let message: PubsubMessage = prost::Message::decode(kept.message).unwrap();
            number(&message.data)
        })
        .collect()
    }

    fn send_kept(&mut self) {
        self.publish_quarantined(|_| true);
    }
}

fn number(payload: &[u8]) -> usize {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

fn stored(emulator: &Emulator) -> BTreeSet<usize> {
    let seen = emulator.observe();
    match seen.topics.get(TOPIC) {
        Some(topic) => topic.payloads().map(number).collect(),
        None => BTreeSet::new(),
    }
}

async fn publishes(column: &'static str, trouble: Trouble) {
    let emulator = Emulator::builder().require_routing_header(true).start();
    let staged = column == "publish_staged";
    let (method, missing) = match column {
        "create_topic" => (
            Method::CreateTopic,
            MissingTopics::Create(TopicCreation::default()),
        ),
        _ => (Method::Publish, MissingTopics::default()),
    };
    if column != "create_topic" {
        emulator.create_topic(TOPIC).unwrap();
    }
    let endpoint = Endpoint::in_memory(emulator.dialer());
    let delivery = if staged {
        Delivery::Staged
    } else {
        Delivery::Flush
    };
    let build = move |restored| {
        PubsubSink::builder(|number: &usize| Ok(Some(PublishMessage::new(number.to_string()))))
            .topic(TOPIC.parse().unwrap())
            .endpoint(endpoint.clone())
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
