#![doc = include_str!("../README.md")]

mod body;
mod builder;
mod delivery;
mod driver;
mod error;
mod event;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod machine;
mod naming;
mod options;
mod queue_state;
mod request;
mod resolution;
mod sink;
mod state;
mod stats;
mod submitted;
mod task;

#[cfg(feature = "avro")]
pub use body::Avro;
pub use body::{BodyError, BodyFormat, Charset, ContentType, Csv, Form, Json, Text};
pub use builder::{SinkBuilder, SinkDriver};
pub use delivery::Delivery;
pub use error::{BuildError, SinkError};
pub use machine::{Batch, Ramp, RetryBudget};
pub use naming::TaskKey;
pub use queue_state::QueueState;
pub use resolution::{Resolution, ResolveError};
pub use sink::CloudTasksSink;
pub use state::{KeptReason, KeptTask, SinkState, StagedTask};
pub use stats::{DestinationStats, Stats};
pub use submitted::Submitted;
pub use task::{
    AppEngineTask, FullTask, HeaderRule, HttpMethod, HttpTask, RelativeUriRule, RetryRule, Task,
    TaskError, TaskRetries, UrlRule,
};

pub use gcp_wire::{
    Code, Credentials, CredentialsError, CredentialsSource, Endpoint, EndpointError, Fault,
    NameError, QueueName, RpcError, Service, WireError,
};

#[cfg(test)]
mod readme_tests;
#[cfg(test)]
mod simulation;
