//! The record of a job's start, in a checkpoint store.

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, StoreError};
use connector_core::Epoch;
use pubsub_source::{StartRecord, StartStore};

/// Keeps the record of a job's start in a [`CheckpointStore`] of its own.
///
/// The store's promises are those that a start needs: what was saved is there after a crash, a damaged
/// record is an error and never "none", and an owner that was replaced cannot save.
#[derive(Debug)]
pub struct StartFile<S>(S);

impl<S: CheckpointStore> StartFile<S> {
    /// A store that nothing else is saved in.
    pub fn new(store: S) -> Self {
        Self(store)
    }
}

impl<S: CheckpointStore> StartStore for StartFile<S> {
    type Error = StartFileError;

    async fn load(&mut self) -> Result<Option<StartRecord>, StartFileError> {
        let newest = self.0.newest().await?;
        let record = newest.map(|saved| serde_json::from_slice(&saved.state));
        Ok(record.transpose()?)
    }

    async fn save(&mut self, record: StartRecord) -> Result<(), StartFileError> {
        let newest = self.0.newest().await?;
        let epoch = newest.map_or_else(Epoch::default, |saved| saved.epoch);
        let state = Bytes::from(serde_json::to_vec(&record)?);
        self.0.save(epoch.next(), state).await?;
        Ok(())
    }
}

/// Why a record could not be loaded or saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartFileError {
    /// The store says no.
    #[error("the store of the start's record cannot be used")]
    Store(#[from] StoreError),
    /// What is there is no record.
    #[error("the store holds something else than the record of a start")]
    Record(#[from] serde_json::Error),
}
