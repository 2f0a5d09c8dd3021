//! A request as it arrived.

mod recorded;

pub(crate) use recorded::Recorded;

use std::collections::BTreeMap;

use crate::cloudtasks::proto::{BatchCreateTasksRequest, CreateTaskRequest};
use crate::method::Method;
use crate::pubsub::proto::{
    AcknowledgeRequest, ModifyAckDeadlineRequest, PublishRequest, PullRequest, SeekRequest,
    StreamingPullRequest, Subscription, Topic,
};
use crate::time::Time;

/// A request that arrived: what rules are matched against and what is kept for assertions.
///
/// Of a streaming pull each request on the stream is a call of its own.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The method.
    pub method: Method,
    /// How many calls of the method came before, over all connections. Of a later request on a pull
    /// stream: how many requests came before on the stream, so at least 1.
    pub nth: u64,
    /// When it arrived.
    pub at: Time,
    /// Its metadata with lower-case names; of a repeated name the last value. Binary values are
    /// left out. Later requests on a stream have none of their own.
    pub metadata: BTreeMap<String, String>,
    /// The encoded size of the message in bytes, before compression.
    pub encoded_len: usize,
    /// The message.
    pub body: Body,
    /// The connection it came over, counted from 1.
    pub connection: u64,
    /// Of a later request on a pull stream: the stream, as in [`SubscriptionRecord::streams`].
    ///
    /// [`SubscriptionRecord::streams`]: crate::pubsub::state::SubscriptionRecord::streams
    pub stream: Option<u64>,
}

impl Call {
    /// The resource the request is about: topic, subscription or queue, as far as it is kept.
    #[must_use]
    pub fn resource(&self) -> Option<&str> {
        match &self.body {
            Body::Publish(request) => Some(&request.topic),
            Body::Acknowledge(request) => Some(&request.subscription),
            Body::ModifyAckDeadline(request) => Some(&request.subscription),
            Body::Pull(request) => Some(&request.subscription),
            Body::StreamingPull(request) => {
                Some(request.subscription.as_str()).filter(|name| !name.is_empty())
            }
            Body::Seek(request) => Some(&request.subscription),
            Body::CreateTopic(topic) => Some(&topic.name),
            Body::CreateSubscription(subscription) => Some(&subscription.name),
            Body::CreateTask(request) => Some(&request.parent),
            Body::BatchCreateTasks(request) => Some(&request.parent),
            Body::Named(name) => Some(name),
        }
    }
}

/// The message of a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// Of `Publish`. Payloads are shared with the stored messages, not copied.
    Publish(PublishRequest),
    /// Of `Acknowledge`.
    Acknowledge(AcknowledgeRequest),
    /// Of `ModifyAckDeadline`.
    ModifyAckDeadline(ModifyAckDeadlineRequest),
    /// Of `Pull`.
    Pull(PullRequest),
    /// Of `StreamingPull`, opening or later.
    StreamingPull(StreamingPullRequest),
    /// Of `Seek`.
    Seek(SeekRequest),
    /// Of `CreateTopic`.
    CreateTopic(Box<Topic>),
    /// Of `CreateSubscription`.
    CreateSubscription(Box<Subscription>),
    /// Of `CreateTask`.
    CreateTask(Box<CreateTaskRequest>),
    /// Of `BatchCreateTasks`.
    BatchCreateTasks(BatchCreateTasksRequest),
    /// Of any other method: the resource it names.
    Named(String),
}
