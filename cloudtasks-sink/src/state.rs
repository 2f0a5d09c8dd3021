//! What the host saves of the sink with each checkpoint.

mod body;
mod kept_task;
mod staged_task;

pub use kept_task::{KeptReason, KeptTask};
pub use staged_task::StagedTask;
pub(crate) use staged_task::name_in;

use std::fmt;

use bytes::Bytes;
use connector_core::{StateError, Versioned, serde_through_envelope};
use prost::Message;

use body::{BodyV1, BodyV2, Mode};

/// The kind of connector, in saved states and rejected records.
pub(crate) const CONNECTOR: &str = "cloudtasks-sink";

/// The sink's part of a checkpoint.
///
/// In [`Delivery::Flush`](crate::Delivery::Flush) every record before the cut is a task (or was
/// handed to the failure handler) when the receipt of the snapshot resolves, so nothing of them has
/// to be saved: the state says who wrote it and that nothing is owed.
///
/// In [`Delivery::Staged`](crate::Delivery::Staged) the state *is* the output: the exact bytes, name
/// and queue of every task that is sealed, or committed and not confirmed, and of every one that is
/// kept aside. It holds whole requests, credentials in their headers included: protect it like them.
///
/// Serializes as a [`SavedState`](connector_core::SavedState); every format version ever released
/// stays readable.
#[derive(Clone, PartialEq, Eq)]
pub struct SinkState {
    instance: String,
    mode: Mode,
    pub(crate) tasks: Vec<StagedTask>,
    pub(crate) kept: Vec<KeptTask>,
}

impl SinkState {
    /// The state of a sink that owes nothing.
    pub(crate) fn flushed(instance: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            mode: Mode::Flush,
            tasks: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// The state of a sink that stages.
    pub(crate) fn staged(instance: &str, tasks: Vec<StagedTask>, kept: Vec<KeptTask>) -> Self {
        Self {
            instance: instance.to_owned(),
            mode: Mode::Staged,
            tasks,
            kept,
        }
    }

    /// The tasks that are sealed, or committed without a confirmation: what a restore creates.
    #[must_use]
    pub fn tasks(&self) -> &[StagedTask] {
        &self.tasks
    }

    /// The tasks that are kept aside for an operator: refused by the service, or past their
    /// recovery deadline.
    #[must_use]
    pub fn kept(&self) -> &[KeptTask] {
        &self.kept
    }
}

impl Versioned for SinkState {
    const CONNECTOR: &'static str = CONNECTOR;
    const VERSION: u32 = 2;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        BodyV2::of(self.mode, &self.tasks, &self.kept)
            .encode_to_vec()
            .into()
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        let damaged = |problem| StateError::damaged::<Self>(version, problem);
        const NO_PROTOBUF: &str = "it is no protobuf message";
        match version {
            1 => {
                let body = BodyV1::decode(body).map_err(|_| damaged(NO_PROTOBUF))?;
                match Mode::read(body.mode).map_err(damaged)? {
                    Mode::Flush => Ok(Self::flushed(instance)),
                    // Version 1 knew no other.
                    Mode::Staged | Mode::Unspecified => {
                        Err(damaged("the delivery mode is unknown"))
                    }
                }
            }
            2 => {
                let body = BodyV2::decode(body).map_err(|_| damaged(NO_PROTOBUF))?;
                let mode = Mode::read(body.mode).map_err(damaged)?;
                let (tasks, kept) = body.open().map_err(damaged)?;
                Ok(Self {
                    instance: instance.to_owned(),
                    mode,
                    tasks,
                    kept,
                })
            }
            found => Err(StateError::unknown_version::<Self>(found)),
        }
    }
}

// The tasks may carry credentials: how many, and nothing of them.
impl fmt::Debug for SinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkState")
            .field("instance", &self.instance)
            .field("mode", &self.mode)
            .field("tasks", &self.tasks.len())
            .field("kept", &self.kept.len())
            .finish()
    }
}

serde_through_envelope!(SinkState);

#[cfg(test)]
mod tests;
