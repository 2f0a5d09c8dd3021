use prost_types::{Duration, Timestamp};

use super::{AppEngineHttpRequest, HttpRequest, RetryConfig};
use crate::proto::rpc;

/// A task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Task {
    /// The full name; given by the service when empty.
    #[prost(string, tag = "1")]
    pub name: String,
    /// When to try it first; now when unset or past, at most 720 h ahead.
    #[prost(message, optional, tag = "4")]
    pub schedule_time: Option<Timestamp>,
    /// When it was created; output only.
    #[prost(message, optional, tag = "5")]
    pub create_time: Option<Timestamp>,
    /// How long one attempt may take; 15 s to 30 min for HTTP tasks, 10 min when unset.
    #[prost(message, optional, tag = "6")]
    pub dispatch_deadline: Option<Duration>,
    /// How often it was dispatched; output only.
    #[prost(int32, tag = "7")]
    pub dispatch_count: i32,
    /// How often it was answered; output only.
    #[prost(int32, tag = "8")]
    pub response_count: i32,
    /// The first attempt; output only.
    #[prost(message, optional, tag = "9")]
    pub first_attempt: Option<Attempt>,
    /// The last attempt; output only.
    #[prost(message, optional, tag = "10")]
    pub last_attempt: Option<Attempt>,
    /// How much of the task is given here; output only.
    #[prost(enumeration = "task::View", tag = "11")]
    pub view: i32,
    /// Overrides the retry settings of the queue.
    #[prost(message, optional, tag = "12")]
    pub retry_config: Option<RetryConfig>,
    /// What the task does.
    #[prost(oneof = "task::MessageType", tags = "2, 3")]
    pub message_type: Option<task::MessageType>,
}

/// Types inside [`Task`].
pub mod task {
    use super::{AppEngineHttpRequest, HttpRequest};

    /// How much of a task an answer gives.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum View {
        /// Not given; the service uses [`Basic`](Self::Basic).
        Unspecified = 0,
        /// Without the body.
        Basic = 1,
        /// With everything; needs a permission of its own.
        Full = 2,
    }

    /// What the task does.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum MessageType {
        /// Calls an App Engine application.
        #[prost(message, tag = "2")]
        AppEngineHttpRequest(AppEngineHttpRequest),
        /// Calls a URL.
        #[prost(message, tag = "3")]
        HttpRequest(HttpRequest),
    }
}

/// One attempt at a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attempt {
    /// When it was due.
    #[prost(message, optional, tag = "1")]
    pub schedule_time: Option<Timestamp>,
    /// When it was sent.
    #[prost(message, optional, tag = "2")]
    pub dispatch_time: Option<Timestamp>,
    /// When it was answered.
    #[prost(message, optional, tag = "3")]
    pub response_time: Option<Timestamp>,
    /// The answer.
    #[prost(message, optional, tag = "4")]
    pub response_status: Option<rpc::Status>,
}
