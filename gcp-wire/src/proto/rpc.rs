//! The messages of `google.rpc` that carry the details of an error.
#![expect(
    clippy::exhaustive_structs,
    reason = "messages are built field by field; new fields come with a new version of the interface"
)]

use std::collections::BTreeMap;

use prost_types::{Any, Duration};

/// `google.rpc.Status`: an error as a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// The gRPC code, 0 to 16.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// The message for a developer.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Further messages, by type URL.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.rpc.ErrorInfo`: what exactly went wrong, as a map.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ErrorInfo {
    /// The reason, in capitals.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// Who gave the reason.
    #[prost(string, tag = "2")]
    pub domain: String,
    /// More about it; for acknowledgements of exactly-once subscriptions one entry per ack id.
    #[prost(btree_map = "string, string", tag = "3")]
    pub metadata: BTreeMap<String, String>,
}

impl ErrorInfo {
    /// The type URL under which it stands in [`Status::details`].
    pub const TYPE_URL: &'static str = "type.googleapis.com/google.rpc.ErrorInfo";
}

/// `google.rpc.RetryInfo`: when the caller may try again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryInfo {
    /// The least time to wait.
    #[prost(message, optional, tag = "1")]
    pub retry_delay: Option<Duration>,
}

impl RetryInfo {
    /// The type URL under which it stands in [`Status::details`].
    pub const TYPE_URL: &'static str = "type.googleapis.com/google.rpc.RetryInfo";
}
