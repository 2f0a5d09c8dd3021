#![doc = include_str!("../README.md")]

mod builder;
mod delivery;
mod driver;
mod error;
mod handout;
mod machine;
mod message;
mod plan;
mod settings;
mod shared;
#[cfg(test)]
mod simulation;
mod source;
mod split;
mod state;
mod stats;

pub use builder::SourceBuilder;
pub use delivery::{DeliveryId, Disposition};
pub use driver::Driver;
pub use error::{BuildError, DriverPanicked, SettleError, SourceError};
pub use message::Message;
pub use plan::{PlanError, Split, SplitPlan};
pub use source::PubsubSource;
pub use state::SourceState;
pub use stats::Stats;

pub use gcp_wire::{Credentials, Endpoint, EndpointError, NameError, Service, SubscriptionName};
