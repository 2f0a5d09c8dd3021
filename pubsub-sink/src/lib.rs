#![doc = include_str!("../README.md")]

mod admin;
mod builder;
mod clock;
mod dead_letter;
mod delivery;
mod driver;
mod error;
mod events;
mod excerpt;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod machine;
mod message;
#[cfg(feature = "metrics")]
mod metrics;
mod published;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod rehearsal;
mod settings;
mod shared;
#[cfg(test)]
mod simulation;
mod sink;
mod staged;
mod state;
mod stats;
mod trace;

pub use admin::{MissingTopics, TopicCreation};
pub use builder::SinkBuilder;
pub use dead_letter::{
    DeadLetterBuilder, DeadLetterDriver, DeadLetterError, DeadLetterWatch, Outstanding,
    PubsubDeadLetterQueue,
};
pub use delivery::Delivery;
pub use driver::SinkDriver;
pub use error::{BuildError, SinkError};
pub use message::{MessageError, PublishMessage};
pub use published::Published;
pub use sink::PubsubSink;
pub use staged::{Identity, Quarantined};
pub use state::SinkState;
pub use stats::{DestinationStats, Stats};

pub use connector_core::TraceContext;
pub use gcp_wire::{Code, Credentials, Endpoint, NameError, TopicName};

/// The kind of connector, as saved states and rejected records name it.
const CONNECTOR: &str = "pubsub-sink";
