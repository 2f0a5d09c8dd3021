use std::collections::BTreeMap;

use prost_types::Timestamp;

use super::{CreateTaskRequest, Task};
use crate::proto::rpc;

/// Creates up to 100 tasks of one queue, with a verdict for each.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchCreateTasksRequest {
    /// The full name of the queue.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// The tasks, each with the queue as its parent.
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<CreateTaskRequest>,
    /// Names the operation, so that a repeated call is refused instead of carried out twice.
    #[prost(string, tag = "3")]
    pub request_id: String,
}

/// The tasks that a batch created.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchCreateTasksResponse {
    /// The tasks.
    #[prost(message, repeated, tag = "1")]
    pub tasks: Vec<Task>,
}

impl BatchCreateTasksResponse {
    /// The type URL under which it stands in an operation.
    pub const TYPE_URL: &'static str =
        "type.googleapis.com/google.cloud.tasks.v2.BatchCreateTasksResponse";
}

/// How far a batch is, and which of its requests failed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchCreateTasksMetadata {
    /// When it began.
    #[prost(message, optional, tag = "1")]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[prost(message, optional, tag = "2")]
    pub end_time: Option<Timestamp>,
    /// How far it is.
    #[prost(enumeration = "batch_create_tasks_metadata::State", tag = "3")]
    pub state: i32,
    /// The verdict of each request that failed, by its index.
    #[prost(btree_map = "int32, message", tag = "4")]
    pub failed_requests: BTreeMap<i32, rpc::Status>,
}

impl BatchCreateTasksMetadata {
    /// The type URL under which it stands in an operation.
    pub const TYPE_URL: &'static str =
        "type.googleapis.com/google.cloud.tasks.v2.BatchCreateTasksMetadata";
}

/// Types inside [`BatchCreateTasksMetadata`].
pub mod batch_create_tasks_metadata {
    /// How far a batch is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum State {
        /// Not given.
        Unspecified = 0,
        /// Under way.
        Running = 1,
        /// Every task exists.
        Succeeded = 2,
        /// No task exists.
        Failed = 3,
        /// Given up.
        Cancelled = 4,
        /// Some tasks exist.
        PartiallySucceeded = 5,
    }
}
