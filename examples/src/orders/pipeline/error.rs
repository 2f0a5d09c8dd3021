//! Why a pipeline ended.

use std::io;

use checkpoint_store::StoreError;
use connector_core::host::StepError;
use connector_core::{CheckpointError, Epoch, StateError};
use gcp_wire::EndpointError;

/// Why a pipeline ended. Each text says what became of the data.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PipelineError {
    #[error("the pipeline got no instructions it understands; nothing was read")]
    Instructions(#[source] io::Error),
    #[error("a server has no usable address; nothing was read")]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "checkpoint {epoch} is intact and is none of this job; nothing was read or acknowledged, give this job a state directory of its own"
    )]
    Foreign {
        epoch: Epoch,
        source: postcard::Error,
    },
    #[error("checkpoint {epoch} does not fit this job")]
    State { epoch: Epoch, source: StateError },
    #[error("the state could not be encoded; nothing of this checkpoint was acknowledged")]
    Encode(#[source] postcard::Error),
    #[error("the source was refused; nothing was read")]
    Source(#[source] pubsub_source::BuildError),
    #[error("the region publisher was refused; nothing was read")]
    PublishSetup(#[source] pubsub_sink::BuildError),
    #[error("the task creator was refused; nothing was read")]
    TaskSetup(#[source] cloudtasks_sink::BuildError),
    #[error(transparent)]
    Step(#[from] StepError),
    #[error(
        "message {message} is no order; it was not acknowledged and comes again, correct the publisher or remove it from the subscription"
    )]
    Order {
        message: String,
        source: serde_json::Error,
    },
    #[error(
        "an order could not be published to its region; it was not acknowledged and comes again"
    )]
    Publish(#[source] pubsub_sink::SinkError),
    #[error(
        "a partner's task could not be created; its order was not acknowledged and comes again"
    )]
    Task(#[source] cloudtasks_sink::SinkError),
    #[error("checkpoint {epoch} was not taken; nothing of it was acknowledged and it comes again")]
    Snapshot {
        epoch: Epoch,
        source: CheckpointError,
    },
    #[error("a checkpoint was saved and could not be settled; the next start settles it")]
    Commit { source: CheckpointError },
    #[error("the source could not be closed in order; what it held comes again")]
    Close(#[source] pubsub_source::SourceError),
}
