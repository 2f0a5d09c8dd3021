//! One reader: the host's loop.

use std::time::Duration;

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, FileStore};
use connector_core::host::Settling;
use connector_core::{Checkpoint, Epoch, settle};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use pubsub_source::{PubsubSource, SourceState};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use super::ReplicasError;

const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(100);

/// What a reader saves with each checkpoint: its source's state, and what it has counted so far.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReaderState {
    pub(super) source: SourceState,
    pub(super) counted: Vec<u32>,
}

/// A reader with what it has counted.
pub(super) struct Reader {
    source: PubsubSource,
    store: FileStore,
    epoch: Epoch,
    counted: Vec<u32>,
    /// Counted in the open epoch.
    fresh: u32,
    commits: FuturesUnordered<Settling>,
}

impl Reader {
    /// A reader whose checkpoints come after `epoch`.
    pub(super) fn new(source: PubsubSource, store: FileStore, epoch: Epoch) -> Self {
        Self {
            source,
            store,
            epoch,
            counted: Vec::new(),
            fresh: 0,
            commits: FuturesUnordered::new(),
        }
    }

    /// Counts until it is told to stop, and says after each checkpoint how many it covers.
    pub(super) async fn run(
        mut self,
        mut stopped: watch::Receiver<bool>,
        progress: mpsc::Sender<u32>,
    ) -> Result<(), ReplicasError> {
        let mut tick = tokio::time::interval(CHECKPOINT_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(done) = self.commits.next() => self.store.settled(done?).await?,
                _ = tick.tick() => {
                    let durable = self.checkpoint().await?;
                    if durable > 0 && progress.send(durable).await.is_err() {
                        break; // the owner is gone
                    }
                }
                _ = stopped.changed() => break, // told to stop, or the owner is gone
                message = self.source.next() => {
                    let message = message.ok_or(ReplicasError::Ended)??;
                    self.count(message.data())?;
                }
            }
        }
        self.checkpoint().await?;
        while let Some(done) = self.commits.next().await {
            self.store.settled(done?).await?;
        }
        self.source.close().await?;
        self.store.close().await;
        Ok(())
    }

    fn count(&mut self, order: &[u8]) -> Result<(), ReplicasError> {
        self.counted
            .push(serde_json::from_slice(order).map_err(ReplicasError::Order)?);
        self.fresh += 1;
        Ok(())
    }

    /// Takes a checkpoint and begins to commit it; answers how many orders it is the first to cover.
    async fn checkpoint(&mut self) -> Result<u32, ReplicasError> {
        self.epoch = self.epoch.next();
        let source = self.source.snapshot(self.epoch);
        let durable = std::mem::take(&mut self.fresh);
        let state = ReaderState {
            source: source.await?,
            counted: self.counted.clone(),
        };
        let state = serde_json::to_vec(&state).map_err(ReplicasError::State)?;
        self.store.save(self.epoch, Bytes::from(state)).await?;
        let committed = self.source.commit(self.epoch);
        self.commits.push(settle(self.epoch, [committed]));
        Ok(durable)
    }
}
