//! One owner of a place in memory.

use async_trait::async_trait;
use bytes::Bytes;
use connector_core::{Epoch, Restored};

use super::MemoryPlace;
use crate::{CheckpointStore, Progress, StoreError};

/// A checkpoint store that lasts as long as its [`MemoryPlace`], for tests and simulations.
///
/// It keeps the promises of [`CheckpointStore`] with respect to its place: opening the place again
/// fences this owner. Its futures are ready at once, so they need no runtime.
#[derive(Debug)]
pub struct MemoryStore {
    place: MemoryPlace,
    generation: u64,
}

impl MemoryStore {
    pub(super) fn new(place: MemoryPlace, generation: u64) -> Self {
        Self { place, generation }
    }

    /// The place, to script faults, to look at what is durable, or to open it again.
    #[must_use]
    pub fn place(&self) -> &MemoryPlace {
        &self.place
    }
}

#[async_trait]
impl CheckpointStore for MemoryStore {
    async fn newest(&self) -> Result<Option<Restored<Bytes>>, StoreError> {
        self.place.newest(self.generation)
    }

    async fn save(&mut self, epoch: Epoch, state: Bytes) -> Result<(), StoreError> {
        self.place.save(self.generation, epoch, state)
    }

    async fn settled(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        self.place.mark(self.generation, epoch, Progress::Settled)
    }

    async fn committing(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        self.place
            .mark(self.generation, epoch, Progress::Committing)
    }
}
