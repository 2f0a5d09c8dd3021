//! Why a run ended without its figures.

use std::io;

use checkpoint_store::StoreError;
use connector_core::CheckpointError;
use gcp_emulator::pubsub::state::Refusal;
use gcp_wire::{NameError, RpcError, WireError};
use pubsub_source::{BuildError, PlanError, PrepareError, SourceError};
use tokio::task::JoinError;

/// Why a run of `replicas` ended without its figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicasError {
    /// There is no place for the states.
    #[error("no temporary directory could be made; nothing was published")]
    Directory(#[source] io::Error),
    /// A name of the run's resources was refused.
    #[error("the run's resources have no valid names; nothing was published")]
    Name(#[from] NameError),
    /// The connection could not be set up.
    #[error("no connection could be set up; nothing was published")]
    Wire(#[from] WireError),
    /// The topic could not be created.
    #[error("the topic could not be created; nothing was published")]
    Topic(#[source] RpcError),
    /// The server refused orders.
    #[error("orders could not be published")]
    Publish(#[source] Refusal),
    /// The readers cannot be planned.
    #[error("there is no such plan")]
    Plan(#[from] PlanError),
    /// The job could not be started.
    #[error("the job could not be started; nothing was read")]
    Prepare(#[from] PrepareError),
    /// A reader has nothing to read.
    #[error("reader {number} has nothing to read")]
    Idle {
        /// Which.
        number: usize,
    },
    /// A source could not be built.
    #[error("a source could not be built")]
    Build(#[from] BuildError),
    /// A source ended with an error.
    #[error("a source ended")]
    Source(#[from] SourceError),
    /// A source ended without one.
    #[error("a source ended without being told to")]
    Ended,
    /// A checkpoint failed.
    #[error("a checkpoint failed; what it covers comes again")]
    Checkpoint(#[from] CheckpointError),
    /// A store failed.
    #[error("a checkpoint could not be kept or read")]
    Store(#[from] StoreError),
    /// A state could not be written or read.
    #[error("a reader's state cannot be written or read")]
    State(#[source] serde_json::Error),
    /// An order is no number.
    #[error("an order is no number; it was not acknowledged")]
    Order(#[source] serde_json::Error),
    /// A reader panicked.
    #[error("a reader did not get to its end")]
    Task(#[source] JoinError),
    /// Nothing was counted for too long.
    #[error("nothing was counted for a minute; {counted} of {orders} orders are")]
    Stuck {
        /// Orders counted so far.
        counted: u32,
        /// Orders published.
        orders: u32,
    },
}
