//! Operations, and what they end with.

use std::collections::BTreeMap;

use prost::{Enumeration, Message, Oneof};
use prost_types::{Any, Timestamp};

use super::Task;

/// Answer of `BatchCreateTasks`, inside its operation.
#[derive(Clone, PartialEq, Message)]
pub struct BatchCreateTasksResponse {
    /// The created tasks.
    #[prost(message, repeated, tag = "1")]
    pub tasks: Vec<Task>,
}

/// Progress of `BatchCreateTasks`, inside its operation.
#[derive(Clone, PartialEq, Message)]
pub struct BatchCreateTasksMetadata {
    /// When the batch began.
    #[prost(message, optional, tag = "1")]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[prost(message, optional, tag = "2")]
    pub end_time: Option<Timestamp>,
    /// How it went.
    #[prost(enumeration = "batch_create_tasks_metadata::State", tag = "3")]
    pub state: i32,
    /// Verdicts of the refused requests by their index.
    #[prost(btree_map = "int32, message", tag = "4")]
    pub failed_requests: BTreeMap<i32, RpcStatus>,
}

/// Parts of a [`BatchCreateTasksMetadata`].
pub mod batch_create_tasks_metadata {
    use super::Enumeration;

    /// How a batch went.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
    #[repr(i32)]
    #[expect(clippy::exhaustive_enums, reason = "an enumeration of the wire format")]
    pub enum State {
        /// Never answered.
        Unspecified = 0,
        /// Not ended.
        Running = 1,
        /// Every task was created.
        Succeeded = 2,
        /// No task was created.
        Failed = 3,
        /// Given up.
        Cancelled = 4,
        /// Some tasks were created.
        PartiallySucceeded = 5,
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    /// The gRPC code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// The text.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Details.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ErrorInfo {
    /// Why, in capitals.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// Who says so.
    #[prost(string, tag = "2")]
    pub domain: String,
    /// What it is about.
    #[prost(btree_map = "string, string", tag = "3")]
    pub metadata: BTreeMap<String, String>,
}

/// A long-running operation.
#[derive(Clone, PartialEq, Message)]
pub struct Operation {
    /// `projects/P/locations/L/operations/ID`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A [`BatchCreateTasksMetadata`].
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<Any>,
    /// Whether a result is there.
    #[prost(bool, tag = "3")]
    pub done: bool,
    /// The result.
    #[prost(oneof = "operation::Result", tags = "4, 5")]
    pub result: Option<operation::Result>,
}

/// Parts of an [`Operation`].
pub mod operation {
    use super::{Any, Oneof, RpcStatus};

    /// The result of an operation.
    #[derive(Clone, PartialEq, Oneof)]
    #[expect(clippy::exhaustive_enums, reason = "a oneof of the wire format")]
    pub enum Result {
        /// It failed as a whole.
        #[prost(message, tag = "4")]
        Error(RpcStatus),
        /// A [`BatchCreateTasksResponse`](super::BatchCreateTasksResponse).
        #[prost(message, tag = "5")]
        Response(Any),
    }
}

/// Request of `GetOperation`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GetOperationRequest {
    /// The operation.
    #[prost(string, tag = "1")]
    pub name: String,
}
