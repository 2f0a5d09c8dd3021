//! Why a replay ended early.

use std::error::Error;

use connector_core::{CheckpointError, host::StepError};
use gcp_wire::{EndpointError, NameError};

/// Why a replay ended early. The letters of what had arrived are acknowledged, or may be driven again
/// where the error says so; the rest is in the subscription.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// `--pubsub` or `--tasks` is no `HOST:PORT`.
    #[error("no server can be reached under that address; nothing was read")]
    Endpoint(#[from] EndpointError),
    /// A name of the scene was refused.
    #[error("the scene's resources have no valid names; nothing was read")]
    Name(#[from] NameError),
    /// The scene could not be set.
    #[error("the scene could not be set; nothing was read")]
    Scene(#[source] Box<dyn Error + Send + Sync>),
    /// The source of the letters was not built.
    #[error("the dead letters cannot be read; nothing was read")]
    Source(#[from] pubsub_source::BuildError),
    /// The sink for messages was not built.
    #[error("messages cannot be published; nothing was read")]
    Messages(#[from] pubsub_sink::BuildError),
    /// The sink for tasks was not built.
    #[error("tasks cannot be created; nothing was read")]
    Tasks(#[from] cloudtasks_sink::BuildError),
    /// A connector ended.
    #[error("a connector ended; letters whose element had not arrived stay in the subscription")]
    Step(#[from] StepError),
    /// It is not known what became of an element.
    #[error("it is not known what became of an element; its letter stays in the subscription")]
    Outcome(#[from] CheckpointError),
    /// A letter could not be acknowledged.
    #[error("a letter whose element has arrived could not be acknowledged; it may be driven again")]
    Settle(#[from] pubsub_source::SettleError),
    /// The source of the letters did not end in order.
    #[error(
        "the dead letters were not given back in order; some come again only when their leases end"
    )]
    CloseLetters(#[from] pubsub_source::SourceError),
    /// The sink for messages did not end in order.
    #[error("the sink for messages did not end in order; letters of what it had not sent stay")]
    CloseMessages(#[from] pubsub_sink::SinkError),
    /// The sink for tasks did not end in order.
    #[error("the sink for tasks did not end in order; letters of what it had not sent stay")]
    CloseTasks(#[from] cloudtasks_sink::SinkError),
}
