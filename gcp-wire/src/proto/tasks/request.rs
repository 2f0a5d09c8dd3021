use super::{Queue, Task, task};

/// Creates a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateTaskRequest {
    /// The full name of the queue.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// The task.
    #[prost(message, optional, tag = "2")]
    pub task: Option<Task>,
    /// How much of the task the answer gives.
    #[prost(enumeration = "task::View", tag = "3")]
    pub response_view: i32,
}

/// Reads a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetTaskRequest {
    /// The full name of the task.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How much of the task the answer gives.
    #[prost(enumeration = "task::View", tag = "2")]
    pub response_view: i32,
}

/// Deletes a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeleteTaskRequest {
    /// The full name of the task.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Lists the tasks of a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListTasksRequest {
    /// The full name of the queue.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// How much of each task the answer gives.
    #[prost(enumeration = "task::View", tag = "2")]
    pub response_view: i32,
    /// How many at most, up to 1000.
    #[prost(int32, tag = "3")]
    pub page_size: i32,
    /// Where to go on.
    #[prost(string, tag = "4")]
    pub page_token: String,
}

/// The tasks of a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListTasksResponse {
    /// One page of them.
    #[prost(message, repeated, tag = "1")]
    pub tasks: Vec<Task>,
    /// Where to go on; empty at the end.
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}

/// Reads a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetQueueRequest {
    /// The full name of the queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Creates a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateQueueRequest {
    /// The full name of the location.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// The queue.
    #[prost(message, optional, tag = "2")]
    pub queue: Option<Queue>,
}

/// Deletes a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeleteQueueRequest {
    /// The full name of the queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Pauses a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PauseQueueRequest {
    /// The full name of the queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Lets a paused queue go on.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResumeQueueRequest {
    /// The full name of the queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Deletes all tasks of a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PurgeQueueRequest {
    /// The full name of the queue.
    #[prost(string, tag = "1")]
    pub name: String,
}
