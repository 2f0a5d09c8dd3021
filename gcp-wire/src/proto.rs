//! The messages that go over the wire.
//!
//! Pub/Sub's come from the generated crate, re-exported as they are. Those of Cloud Tasks and the
//! few of `google.rpc` and `google.longrunning` are declared here, since the generated crate for
//! Cloud Tasks lacks a task's retry settings, a queue's HTTP target and the batch calls.

pub use prost_types::{Any, Duration, FieldMask, Timestamp};

/// The messages of `google.pubsub.v1`, with payloads as [`bytes::Bytes`].
pub mod pubsub {
    pub use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::*;
}

pub mod longrunning;
pub mod rpc;
pub mod tasks;
