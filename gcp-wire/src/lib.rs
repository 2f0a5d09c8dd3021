#![doc = include_str!("../README.md")]

mod clock;

pub mod channel;
pub mod credentials;
pub mod endpoint;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod grpc;
mod headers;
pub mod method;
pub mod names;
pub mod proto;
pub mod published;
pub mod pulled;
mod rpc_metrics;
pub mod status;

pub use channel::{
    Connection, ConnectionOptions, EncodedBody, PullSendError, PullStream, WireError,
};
pub use credentials::{AuthHeaders, Credentials, CredentialsError, CredentialsSource};
pub use endpoint::{Endpoint, EndpointError, Service};
pub use method::{FromAnswer, Method};
pub use names::{NameError, QueueName, SnapshotName, SubscriptionName, TopicName};
pub use published::PublishedIds;
pub use pulled::PulledResponse;
pub use status::{AckFailure, Code, DecodeFault, Fault, RpcError, Sent};
