//! The RPCs of the two services, each with its path and the key of its routing header.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use prost::Message;

use crate::proto::{longrunning, pubsub, tasks};
use crate::published::PublishedIds;
use crate::status::DecodeFault;

/// What the bytes of an answer are read as: every message is, and types that keep the bytes.
pub trait FromAnswer: Sized {
    /// Reads an encoded answer.
    ///
    /// # Errors
    ///
    /// [`DecodeFault::Malformed`]; the text names the field where that is known, and holds nothing
    /// of its value.
    fn from_answer(bytes: Bytes) -> Result<Self, DecodeFault>;
}

impl<M: Message + Default> FromAnswer for M {
    fn from_answer(bytes: Bytes) -> Result<Self, DecodeFault> {
        Self::decode(bytes).map_err(|error| DecodeFault::Malformed(error.to_string()))
    }
}

/// One RPC: what it takes, what it answers, where it is, and by which field it is routed.
///
/// The services route a request by the `x-goog-request-params` header, and Cloud Tasks refuses
/// requests without it; its key is the field named in the HTTP annotation of the interface
/// definition.
pub struct Method<Req, Res> {
    path: &'static str,
    routing_key: &'static str,
    types: PhantomData<fn(Req) -> Res>,
}

impl<Req, Res> Method<Req, Res> {
    /// Declares an RPC. `path` is `/package.Service/Method`; `routing_key` the field's name.
    #[must_use]
    pub const fn new(path: &'static str, routing_key: &'static str) -> Self {
        Self {
            path,
            routing_key,
            types: PhantomData,
        }
    }

    /// The path of the RPC, for example `/google.pubsub.v1.Publisher/Publish`.
    #[must_use]
    pub const fn path(&self) -> &'static str {
        self.path
    }

    /// The last part of the path, for example `Publish`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// The key of the routing header, for example `topic`.
    #[must_use]
    pub const fn routing_key(&self) -> &'static str {
        self.routing_key
    }
}

impl<Req, Res> Clone for Method<Req, Res> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Req, Res> Copy for Method<Req, Res> {}

impl<Req, Res> fmt::Debug for Method<Req, Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Method").field(&self.path).finish()
    }
}

macro_rules! methods {
    ($($service:literal: $($name:ident = $rpc:literal by $key:literal, $req:ty => $res:ty;)*)*) => {
        $($(
            #[doc = concat!("`", $rpc, "` of `", $service, "`, routed by `", $key, "`.")]
            pub const $name: Method<$req, $res> =
                Method::new(concat!("/", $service, "/", $rpc), $key);
        )*)*
    };
}

methods! {
    "google.pubsub.v1.Publisher":
    PUBLISH = "Publish" by "topic", pubsub::PublishRequest => PublishedIds;
    CREATE_TOPIC = "CreateTopic" by "name", pubsub::Topic => pubsub::Topic;
    GET_TOPIC = "GetTopic" by "topic", pubsub::GetTopicRequest => pubsub::Topic;
    UPDATE_TOPIC = "UpdateTopic" by "topic.name", pubsub::UpdateTopicRequest => pubsub::Topic;
    DELETE_TOPIC = "DeleteTopic" by "topic", pubsub::DeleteTopicRequest => ();
    LIST_TOPICS = "ListTopics" by "project",
        pubsub::ListTopicsRequest => pubsub::ListTopicsResponse;
    LIST_TOPIC_SUBSCRIPTIONS = "ListTopicSubscriptions" by "topic",
        pubsub::ListTopicSubscriptionsRequest => pubsub::ListTopicSubscriptionsResponse;
    DETACH_SUBSCRIPTION = "DetachSubscription" by "subscription",
        pubsub::DetachSubscriptionRequest => pubsub::DetachSubscriptionResponse;

    "google.pubsub.v1.Subscriber":
    CREATE_SUBSCRIPTION = "CreateSubscription" by "name",
        pubsub::Subscription => pubsub::Subscription;
    GET_SUBSCRIPTION = "GetSubscription" by "subscription",
        pubsub::GetSubscriptionRequest => pubsub::Subscription;
    UPDATE_SUBSCRIPTION = "UpdateSubscription" by "subscription.name",
        pubsub::UpdateSubscriptionRequest => pubsub::Subscription;
    DELETE_SUBSCRIPTION = "DeleteSubscription" by "subscription",
        pubsub::DeleteSubscriptionRequest => ();
    LIST_SUBSCRIPTIONS = "ListSubscriptions" by "project",
        pubsub::ListSubscriptionsRequest => pubsub::ListSubscriptionsResponse;
    ACKNOWLEDGE = "Acknowledge" by "subscription", pubsub::AcknowledgeRequest => ();
    MODIFY_ACK_DEADLINE = "ModifyAckDeadline" by "subscription",
        pubsub::ModifyAckDeadlineRequest => ();
    PULL = "Pull" by "subscription", pubsub::PullRequest => pubsub::PullResponse;
    STREAMING_PULL = "StreamingPull" by "subscription",
        pubsub::StreamingPullRequest => pubsub::StreamingPullResponse;
    SEEK = "Seek" by "subscription", pubsub::SeekRequest => pubsub::SeekResponse;
    CREATE_SNAPSHOT = "CreateSnapshot" by "name",
        pubsub::CreateSnapshotRequest => pubsub::Snapshot;
    GET_SNAPSHOT = "GetSnapshot" by "snapshot", pubsub::GetSnapshotRequest => pubsub::Snapshot;
    UPDATE_SNAPSHOT = "UpdateSnapshot" by "snapshot.name",
        pubsub::UpdateSnapshotRequest => pubsub::Snapshot;
    DELETE_SNAPSHOT = "DeleteSnapshot" by "snapshot", pubsub::DeleteSnapshotRequest => ();
    LIST_SNAPSHOTS = "ListSnapshots" by "project",
        pubsub::ListSnapshotsRequest => pubsub::ListSnapshotsResponse;

    "google.cloud.tasks.v2.CloudTasks":
    CREATE_TASK = "CreateTask" by "parent", tasks::CreateTaskRequest => tasks::Task;
    BATCH_CREATE_TASKS = "BatchCreateTasks" by "parent",
        tasks::BatchCreateTasksRequest => longrunning::Operation;
    GET_TASK = "GetTask" by "name", tasks::GetTaskRequest => tasks::Task;
    DELETE_TASK = "DeleteTask" by "name", tasks::DeleteTaskRequest => ();
    LIST_TASKS = "ListTasks" by "parent", tasks::ListTasksRequest => tasks::ListTasksResponse;
    GET_QUEUE = "GetQueue" by "name", tasks::GetQueueRequest => tasks::Queue;
    CREATE_QUEUE = "CreateQueue" by "parent", tasks::CreateQueueRequest => tasks::Queue;
    DELETE_QUEUE = "DeleteQueue" by "name", tasks::DeleteQueueRequest => ();
    PAUSE_QUEUE = "PauseQueue" by "name", tasks::PauseQueueRequest => tasks::Queue;
    RESUME_QUEUE = "ResumeQueue" by "name", tasks::ResumeQueueRequest => tasks::Queue;
    PURGE_QUEUE = "PurgeQueue" by "name", tasks::PurgeQueueRequest => tasks::Queue;

    "google.longrunning.Operations":
    GET_OPERATION = "GetOperation" by "name",
        longrunning::GetOperationRequest => longrunning::Operation;
}
