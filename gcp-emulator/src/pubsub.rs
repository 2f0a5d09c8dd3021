//! The Pub/Sub server: a pure state machine and its gRPC shell.

pub(crate) mod service;
pub mod state;

/// The messages of `google.pubsub.v1`.
pub mod proto {
    pub use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::*;
}
