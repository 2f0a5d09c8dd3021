#![doc = include_str!("../README.md")]

mod builder;
mod creation;
pub mod decode;
mod delivery;
mod driver;
mod error;
mod every;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod handout;
mod instance;
mod machine;
mod message;
mod on_drop;
mod plan;
mod prepare;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod rehearsal;
mod settings;
mod shared;
#[cfg(test)]
mod simulation;
mod source;
mod split;
mod start;
mod state;
mod stats;

pub use builder::SourceBuilder;
pub use connector_core::{Decode, TraceContext};
pub use creation::{Expiration, SubscriptionCreation, SubscriptionCreationBuilder};
pub use decode::{DecodeFailure, Decoded};
pub use delivery::{DeliveryId, Disposition};
pub use driver::Driver;
pub use error::{BuildError, DriverPanicked, SettleError, SourceError};
pub use every::{Every, every};
pub use message::{Message, Metadata};
pub use on_drop::OnDrop;
pub use plan::{PlanError, Split, SplitPlan};
pub use prepare::{Preparation, PrepareError, Prepared, Step, StoreSilent, prepare};
pub use source::PubsubSource;
pub use start::{StartPosition, StartRecord, StartStore, Unrecorded};
pub use state::{SavedDeliveries, SourceState};
pub use stats::Stats;

pub use gcp_wire::{
    Credentials, Endpoint, EndpointError, NameError, Service, SnapshotName, SubscriptionName,
    TopicName,
};
