//! What is recorded of each kind of message.

use crate::call::Body;
use crate::cloudtasks::proto::{
    BatchCreateTasksRequest, CreateQueueRequest, CreateTaskRequest, DeleteQueueRequest,
    DeleteTaskRequest, GetOperationRequest, GetQueueRequest, GetTaskRequest, ListQueuesRequest,
    ListTasksRequest, PauseQueueRequest, PurgeQueueRequest, ResumeQueueRequest, RunTaskRequest,
    UpdateQueueRequest,
};
use crate::pubsub::proto::{
    AcknowledgeRequest, CreateSnapshotRequest, DeleteSnapshotRequest, DeleteSubscriptionRequest,
    DeleteTopicRequest, DetachSubscriptionRequest, GetSnapshotRequest, GetSubscriptionRequest,
    GetTopicRequest, ListSnapshotsRequest, ListSubscriptionsRequest, ListTopicSnapshotsRequest,
    ListTopicSubscriptionsRequest, ListTopicsRequest, ModifyAckDeadlineRequest,
    ModifyPushConfigRequest, PublishRequest, PullRequest, SeekRequest, StreamingPullRequest,
    Subscription, Topic, UpdateSnapshotRequest, UpdateSubscriptionRequest, UpdateTopicRequest,
};

/// A message of which something is recorded.
pub(crate) trait Recorded {
    /// What is recorded of it.
    fn body(&self) -> Body;
}

/// Messages that are kept whole.
macro_rules! whole {
    ($($message:ident => $body:expr,)*) => {
        $(impl Recorded for $message {
            fn body(&self) -> Body {
                let keep: fn(Self) -> Body = $body;
                keep(self.clone())
            }
        })*
    };
}

/// Messages of which the resource's name is kept: the field that holds it.
macro_rules! named {
    ($($message:ident => $($field:ident).+,)*) => {
        $(impl Recorded for $message {
            fn body(&self) -> Body {
                Body::Named(self.$($field).+.clone())
            }
        })*
    };
}

/// Updates, which name the resource inside the optional message they carry.
macro_rules! updates {
    ($($message:ident => $field:ident,)*) => {
        $(impl Recorded for $message {
            fn body(&self) -> Body {
                let name = self.$field.as_ref().map(|wanted| wanted.name.clone());
                Body::Named(name.unwrap_or_default())
            }
        })*
    };
}

whole! {
    Topic => |topic| Body::CreateTopic(Box::new(topic)),
    Subscription => |subscription| Body::CreateSubscription(Box::new(subscription)),
    PublishRequest => Body::Publish,
    AcknowledgeRequest => Body::Acknowledge,
    ModifyAckDeadlineRequest => Body::ModifyAckDeadline,
    PullRequest => Body::Pull,
    StreamingPullRequest => Body::StreamingPull,
    SeekRequest => Body::Seek,
    CreateTaskRequest => |request| Body::CreateTask(Box::new(request)),
    BatchCreateTasksRequest => Body::BatchCreateTasks,
}

named! {
    GetTopicRequest => topic,
    ListTopicsRequest => project,
    ListTopicSubscriptionsRequest => topic,
    ListTopicSnapshotsRequest => topic,
    DeleteTopicRequest => topic,
    DetachSubscriptionRequest => subscription,
    GetSubscriptionRequest => subscription,
    ListSubscriptionsRequest => project,
    DeleteSubscriptionRequest => subscription,
    ModifyPushConfigRequest => subscription,
    GetSnapshotRequest => snapshot,
    ListSnapshotsRequest => project,
    CreateSnapshotRequest => name,
    DeleteSnapshotRequest => snapshot,
    ListQueuesRequest => parent,
    GetQueueRequest => name,
    CreateQueueRequest => parent,
    DeleteQueueRequest => name,
    PurgeQueueRequest => name,
    PauseQueueRequest => name,
    ResumeQueueRequest => name,
    ListTasksRequest => parent,
    GetTaskRequest => name,
    DeleteTaskRequest => name,
    RunTaskRequest => name,
    GetOperationRequest => name,
}

updates! {
    UpdateTopicRequest => topic,
    UpdateSubscriptionRequest => subscription,
    UpdateSnapshotRequest => snapshot,
    UpdateQueueRequest => queue,
}
