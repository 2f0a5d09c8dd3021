//! The embedded server, with a topic that keeps what is published.

use std::ops::Range;
use std::time::Duration;

use gcp_emulator::pubsub::proto::PubsubMessage;
use gcp_emulator::{Emulator, Method};
use gcp_wire::method::CREATE_TOPIC;
use gcp_wire::proto::{Duration as ProtoDuration, pubsub::Topic};
use gcp_wire::{Connection, ConnectionOptions, Credentials, Endpoint, SubscriptionName, TopicName};

use super::ReplicasError;

/// An hour: longer than any run.
const RETENTION: ProtoDuration = ProtoDuration {
    seconds: 3600,
    nanos: 0,
};

/// The most messages of one publish request.
const PER_REQUEST: usize = 1000;

/// The server, with its topic.
#[derive(Debug)]
pub(super) struct Server {
    emulator: Emulator,
    topic: TopicName,
    subscription: SubscriptionName,
}

impl Server {
    pub(super) async fn start() -> Result<Self, ReplicasError> {
        let server = Self {
            emulator: Emulator::builder().start(),
            topic: TopicName::new("shop", "orders")?,
            subscription: SubscriptionName::new("shop", "orders-audit")?,
        };
        let connection = Connection::unary(
            server.endpoint(),
            Credentials::anonymous(),
            ConnectionOptions::default(),
        )?;
        let topic = Topic {
            name: server.topic.to_string(),
            message_retention_duration: Some(RETENTION),
            ..Topic::default()
        };
        let routing = server.topic.as_str();
        let created = connection.call(&CREATE_TOPIC, routing, topic, Duration::from_secs(10));
        created.await.map_err(ReplicasError::Topic)?;
        Ok(server)
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::in_memory(self.emulator.dialer())
    }

    pub(super) fn topic(&self) -> &TopicName {
        &self.topic
    }

    /// The job's own subscription, which does not exist at first.
    pub(super) fn subscription(&self) -> &SubscriptionName {
        &self.subscription
    }

    /// Publishes these orders, each as its number.
    pub(super) fn publish(&self, orders: Range<u32>) -> Result<(), ReplicasError> {
        let messages: Vec<PubsubMessage> = orders
            .map(|order| PubsubMessage {
                data: order.to_string().into(),
                ..PubsubMessage::default()
            })
            .collect();
        for request in messages.chunks(PER_REQUEST) {
            self.emulator
                .publish(self.topic.as_str(), request.to_vec())
                .map_err(ReplicasError::Publish)?;
        }
        Ok(())
    }

    /// How often a subscription was sought.
    pub(super) fn seeks(&self) -> u64 {
        self.emulator.observe().count(Method::Seek)
    }
}
