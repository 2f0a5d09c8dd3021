//! Requests, and the answers of lists.

use prost::Message;
use prost_types::FieldMask;

use super::{Queue, Task, task};

/// Request of `ListQueues`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ListQueuesRequest {
    /// `projects/P/locations/L`.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// Not supported: must be empty.
    #[prost(string, tag = "2")]
    pub filter: String,
    /// At most this many.
    #[prost(int32, tag = "3")]
    pub page_size: i32,
    /// Where the last page ended.
    #[prost(string, tag = "4")]
    pub page_token: String,
}

/// Answer of `ListQueues`.
#[derive(Clone, PartialEq, Message)]
pub struct ListQueuesResponse {
    /// A page of queues.
    #[prost(message, repeated, tag = "1")]
    pub queues: Vec<Queue>,
    /// Not empty when there are more.
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}

/// Request of `GetQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GetQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `CreateQueue`.
#[derive(Clone, PartialEq, Message)]
pub struct CreateQueueRequest {
    /// `projects/P/locations/L`.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// The queue.
    #[prost(message, optional, tag = "2")]
    pub queue: Option<Queue>,
}

/// Request of `UpdateQueue`.
#[derive(Clone, PartialEq, Message)]
pub struct UpdateQueueRequest {
    /// The queue; created when it does not exist.
    #[prost(message, optional, tag = "1")]
    pub queue: Option<Queue>,
    /// Which fields are replaced; all when absent.
    #[prost(message, optional, tag = "2")]
    pub update_mask: Option<FieldMask>,
}

/// Request of `PurgeQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct PurgeQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `DeleteQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `PauseQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct PauseQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `ResumeQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ResumeQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `ListTasks`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ListTasksRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// Which fields the answer carries.
    #[prost(enumeration = "task::View", tag = "2")]
    pub response_view: i32,
    /// At most this many.
    #[prost(int32, tag = "3")]
    pub page_size: i32,
    /// Where the last page ended.
    #[prost(string, tag = "4")]
    pub page_token: String,
}

/// Answer of `ListTasks`.
#[derive(Clone, PartialEq, Message)]
pub struct ListTasksResponse {
    /// A page of tasks.
    #[prost(message, repeated, tag = "1")]
    pub tasks: Vec<Task>,
    /// Not empty when there are more.
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}

/// Request of `GetTask`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GetTaskRequest {
    /// The task.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Which fields the answer carries.
    #[prost(enumeration = "task::View", tag = "2")]
    pub response_view: i32,
}

/// Request of `CreateTask`.
#[derive(Clone, PartialEq, Message)]
pub struct CreateTaskRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// The task.
    #[prost(message, optional, tag = "2")]
    pub task: Option<Task>,
    /// Which fields the answer carries.
    #[prost(enumeration = "task::View", tag = "3")]
    pub response_view: i32,
}

/// Request of `DeleteTask`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteTaskRequest {
    /// The task.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `RunTask`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct RunTaskRequest {
    /// The task.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Which fields the answer carries.
    #[prost(enumeration = "task::View", tag = "2")]
    pub response_view: i32,
}

/// Request of `BatchCreateTasks`.
#[derive(Clone, PartialEq, Message)]
pub struct BatchCreateTasksRequest {
    /// The queue of every request.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// At most 100.
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<CreateTaskRequest>,
    /// Names the operation; empty lets the service name it.
    #[prost(string, tag = "3")]
    pub request_id: String,
}
