//! What the pipeline saves with each checkpoint.

use bytes::Bytes;
use cloudtasks_sink::SinkState as TasksState;
use connector_core::{Restored, SavedState};
use pubsub_sink::SinkState as PublishState;
use pubsub_source::SourceState;
use serde::{Deserialize, Serialize};

use super::PipelineError;

/// The states of the three connectors, each in the envelope that names its owner.
///
/// The envelopes are opened one by one and not by serde: postcard keeps no text of a nested error,
/// and "which state belongs to whom" is the text that helps.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Envelopes {
    source: SavedState,
    publish: SavedState,
    tasks: SavedState,
}

/// The states of the three connectors.
#[derive(Debug)]
pub(super) struct JobState {
    pub(super) source: SourceState,
    pub(super) publish: PublishState,
    pub(super) tasks: TasksState,
}

impl JobState {
    pub(super) fn encode(&self) -> Result<Bytes, PipelineError> {
        let envelopes = Envelopes {
            source: SavedState::of(&self.source),
            publish: SavedState::of(&self.publish),
            tasks: SavedState::of(&self.tasks),
        };
        postcard::to_stdvec(&envelopes)
            .map(Bytes::from)
            .map_err(PipelineError::Encode)
    }

    pub(super) fn decode(saved: Restored<Bytes>) -> Result<Restored<Self>, PipelineError> {
        let epoch = saved.epoch;
        saved.try_map(|bytes| {
            let envelopes: Envelopes = postcard::from_bytes(&bytes)
                .map_err(|source| PipelineError::Foreign { epoch, source })?;
            let opened = |source| PipelineError::State { epoch, source };
            Ok(Self {
                source: envelopes.source.open().map_err(opened)?,
                publish: envelopes.publish.open().map_err(opened)?,
                tasks: envelopes.tasks.open().map_err(opened)?,
            })
        })
    }
}

/// A restored state, taken apart for the three builders.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) source: Option<Restored<SourceState>>,
    pub(super) publish: Option<Restored<PublishState>>,
    pub(super) tasks: Option<Restored<TasksState>>,
}

impl Parts {
    pub(super) fn of(restored: Option<Restored<JobState>>) -> Self {
        let Some(restored) = restored else {
            return Self::default();
        };
        let part = Restored::new(restored.epoch, ())
            .settled(restored.settled)
            .committing(restored.committing);
        let JobState {
            source,
            publish,
            tasks,
        } = restored.state;
        Self {
            source: Some(part.map(|()| source)),
            publish: Some(part.map(|()| publish)),
            tasks: Some(part.map(|()| tasks)),
        }
    }
}
