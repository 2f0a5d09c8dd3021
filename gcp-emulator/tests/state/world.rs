//! A machine, its clock, and short words for what tests do with it.

use std::sync::Arc;
use std::time::Duration;

use gcp_emulator::Time;
use gcp_emulator::pubsub::proto::{
    PubsubMessage, ReceivedMessage, StreamingPullRequest, StreamingPullResponse, Subscription,
    Topic,
};
use gcp_emulator::pubsub::state::{
    PubsubState, Refusal, Settings, StreamId, StreamPoll, SubscriptionRecord,
};

pub(crate) const TOPIC: &str = "projects/demo/topics/orders";
pub(crate) const SUB: &str = "projects/demo/subscriptions/orders";

pub(crate) struct World {
    pub(crate) state: PubsubState,
    pub(crate) now: Time,
}

impl World {
    /// A machine with one topic and one subscription.
    pub(crate) fn new(change: impl FnOnce(&mut Subscription)) -> Self {
        Self::with(Settings::default(), change)
    }

    pub(crate) fn with(settings: Settings, change: impl FnOnce(&mut Subscription)) -> Self {
        let mut world = Self {
            state: PubsubState::new(settings),
            now: Time::from_unix(Duration::from_secs(1_800_000_000)),
        };
        world.topic(TOPIC);
        world.subscription(SUB, TOPIC, change).unwrap();
        world
    }

    pub(crate) fn topic(&mut self, name: &str) {
        let topic = Topic {
            name: name.to_owned(),
            ..Topic::default()
        };
        self.state.create_topic(self.now, topic).unwrap();
    }

    pub(crate) fn subscription(
        &mut self,
        name: &str,
        topic: &str,
        change: impl FnOnce(&mut Subscription),
    ) -> Result<Subscription, Refusal> {
        let mut wanted = Subscription {
            name: name.to_owned(),
            topic: topic.to_owned(),
            ..Subscription::default()
        };
        change(&mut wanted);
        self.state.create_subscription(self.now, wanted)
    }

    /// Publishes one message per text, in one request; ids in order.
    pub(crate) fn publish(&mut self, texts: &[&str]) -> Vec<String> {
        self.publish_keyed("", texts)
    }

    pub(crate) fn publish_keyed(&mut self, key: &str, texts: &[&str]) -> Vec<String> {
        let messages = texts
            .iter()
            .map(|text| PubsubMessage {
                data: (*text).to_owned().into(),
                ordering_key: key.to_owned(),
                ..PubsubMessage::default()
            })
            .collect();
        self.state.publish(self.now, TOPIC, messages).unwrap()
    }

    /// Lets time pass, stopping at everything that becomes due on the way.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(due) = self.state.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.state.handle_timeout(self.now);
            self.state.check_invariants();
        }
        self.now = until;
    }

    pub(crate) fn pass_secs(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    pub(crate) fn open(&mut self) -> StreamId {
        self.open_with(|_| ())
    }

    pub(crate) fn open_with(&mut self, change: impl FnOnce(&mut StreamingPullRequest)) -> StreamId {
        let mut first = StreamingPullRequest {
            subscription: SUB.to_owned(),
            stream_ack_deadline_seconds: 10,
            ..StreamingPullRequest::default()
        };
        change(&mut first);
        self.state.open_stream(self.now, &first).unwrap()
    }

    /// Polls a stream once.
    pub(crate) fn poll(&mut self, stream: StreamId) -> StreamPoll {
        let polled = self.state.poll_stream(self.now, stream);
        self.state.check_invariants();
        polled
    }

    /// Polls a stream once for a response.
    pub(crate) fn response(&mut self, stream: StreamId) -> StreamingPullResponse {
        let polled = self.poll(stream);
        let StreamPoll::Response(response) = polled else {
            panic!("a response was expected, not {polled:?}")
        };
        *response
    }

    /// Everything a stream has to deliver now.
    pub(crate) fn drain(&mut self, stream: StreamId) -> Vec<ReceivedMessage> {
        let mut messages = Vec::new();
        while let StreamPoll::Response(response) = self.poll(stream) {
            messages.extend(response.received_messages);
        }
        messages
    }

    pub(crate) fn pull(&mut self, most: i32) -> Vec<ReceivedMessage> {
        let pulled = self.state.pull(self.now, SUB, most).unwrap();
        self.state.check_invariants();
        pulled
    }

    pub(crate) fn ack(&mut self, messages: &[&ReceivedMessage]) -> Result<(), Refusal> {
        let ids: Vec<String> = messages
            .iter()
            .map(|message| message.ack_id.clone())
            .collect();
        let result = self.state.acknowledge(self.now, SUB, &ids);
        self.state.check_invariants();
        result
    }

    pub(crate) fn modify(
        &mut self,
        messages: &[&ReceivedMessage],
        seconds: i32,
    ) -> Result<(), Refusal> {
        let ids: Vec<String> = messages
            .iter()
            .map(|message| message.ack_id.clone())
            .collect();
        let result = self.state.modify_ack_deadline(self.now, SUB, &ids, seconds);
        self.state.check_invariants();
        result
    }

    pub(crate) fn nack(&mut self, messages: &[&ReceivedMessage]) {
        self.modify(messages, 0).unwrap();
    }

    pub(crate) fn record(&self) -> Arc<SubscriptionRecord> {
        self.state
            .record()
            .subscriptions
            .get(SUB)
            .map(Arc::clone)
            .unwrap_or_default()
    }
}

/// The payloads of messages as text.
pub(crate) fn texts(messages: &[ReceivedMessage]) -> Vec<String> {
    messages.iter().map(text).collect()
}

pub(crate) fn text(received: &ReceivedMessage) -> String {
    String::from_utf8(received.message.as_ref().unwrap().data.to_vec()).unwrap()
}
