//! The server's side.

use std::time::Duration;

use gcp_emulator::{
    Time,
    pubsub::{
        proto::{PubsubMessage, Topic},
        state::{PubsubState, Refusal, Settings},
    },
};
use gcp_wire::TopicName;

/// Topics that records go to.
pub(super) const TOPICS: usize = 3;

pub(super) fn topic(number: usize) -> TopicName {
    TopicName::new("demo-project", &format!("topic-{number}")).unwrap()
}

/// What becomes of a publish request that the server evaluates.
pub(super) enum Evaluated {
    Stored(Vec<String>),
    Missing,
}

pub(super) struct Server {
    state: PubsubState,
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            state: PubsubState::new(Settings::default()),
        }
    }

    fn time(now: Duration) -> Time {
        Time::from_unix(Duration::from_secs(1_800_000_000) + now)
    }

    pub(super) fn publish(
        &mut self,
        now: Duration,
        topic: &str,
        messages: Vec<PubsubMessage>,
    ) -> Evaluated {
        match self.state.publish(Self::time(now), topic, messages) {
            Ok(ids) => Evaluated::Stored(ids),
            Err(Refusal::Missing { .. }) => Evaluated::Missing,
            Err(other) => panic!("the server refused a request: {other}"),
        }
    }

    /// Whether the topic is new.
    pub(super) fn create(&mut self, now: Duration, topic: &TopicName) -> bool {
        let topic = Topic {
            name: topic.to_string(),
            ..Topic::default()
        };
        match self.state.create_topic(Self::time(now), topic) {
            Ok(_) => true,
            Err(Refusal::Exists { .. }) => false,
            Err(other) => panic!("the server refused a topic: {other}"),
        }
    }

    /// Whether there was a topic to delete.
    pub(super) fn delete(&mut self, now: Duration, topic: &TopicName) -> bool {
        self.state
            .delete_topic(Self::time(now), topic.as_str())
            .is_ok()
    }
}
