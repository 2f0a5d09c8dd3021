//! The host's loop.

use std::sync::Arc;

use checkpoint_store::{CheckpointStore, FileStore, Progress};
use cloudtasks_sink::CloudTasksSink;
use connector_core::host::{Settling, checkpoint_wanted};
use connector_core::{Checkpoint, CheckpointError, Epoch, Next, next_when, settle};
use futures::stream::FuturesUnordered;
use futures::{SinkExt, StreamExt};
use pubsub_sink::PubsubSink;
use pubsub_source::{Message, PubsubSource};
use tokio::time::{Interval, MissedTickBehavior};

use super::super::order::{EnrichedOrder, Order};
use super::saved::{JobState, Parts};
use super::{PipelineError, PipelineSpec, connectors};

/// Runs the job from its newest checkpoint until `told_to_end` resolves.
pub(super) async fn run(
    spec: PipelineSpec,
    told_to_end: impl Future<Output = ()>,
) -> Result<(), PipelineError> {
    let mut job = Job::restore(spec).await?;
    job.work(told_to_end).await?;
    job.finish().await
}

/// The connectors, and the host's part in their checkpoints.
struct Job {
    spec: PipelineSpec,
    source: PubsubSource,
    publish: PubsubSink<Arc<EnrichedOrder>>,
    tasks: CloudTasksSink<Arc<EnrichedOrder>>,
    store: FileStore,
    epoch: Epoch,
    /// Committed epochs whose receipts have not all resolved.
    commits: FuturesUnordered<Settling>,
    tick: Interval,
    read: u64,
}

impl Job {
    async fn restore(spec: PipelineSpec) -> Result<Self, PipelineError> {
        let mut store = FileStore::open(&spec.state).await?;
        // Nobody commits without the mark, and whoever had the store before has it no more: where it
        // is missing, nothing of the epoch was ever sent.
        let progress = store.progress().await?;
        let untouched = matches!(progress, Some((_, Progress::Saved)));
        let restored = store.newest().await?.map(JobState::decode).transpose()?;
        let restored = restored.map(|restored| restored.committing(!untouched));
        if let Some((epoch, Progress::Saved)) = progress {
            // The connectors commit what they restore by themselves.
            store.committing(epoch).await?;
        }
        let epoch = restored
            .as_ref()
            .map_or_else(Epoch::default, |restored| restored.epoch);
        let parts = Parts::of(restored);
        let mut tick = tokio::time::interval(spec.checkpoint_interval);
        // After a slow checkpoint the next one comes an interval later, not at once.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.reset();
        Ok(Self {
            source: connectors::source(&spec, parts.source)?,
            publish: connectors::publish(&spec, parts.publish)?,
            tasks: connectors::tasks(&spec, parts.tasks)?,
            store,
            epoch,
            commits: FuturesUnordered::new(),
            tick,
            read: 0,
            spec,
        })
    }

    async fn work(&mut self, told_to_end: impl Future<Output = ()>) -> Result<(), PipelineError> {
        tokio::pin!(told_to_end);
        loop {
            let cut = tokio::select! { biased;
                () = &mut told_to_end => return Ok(()),
                Some(done) = self.commits.next() => { self.settled(done).await?; false }
                _ = self.tick.tick() => true,
                step = next_when(&mut self.source, (&mut self.publish, &mut self.tasks)) => {
                    match step? {
                        Next::Record(message) => { self.hand_on(&message)?; false }
                        Next::CheckpointWanted => true,
                        Next::End => return Ok(()),
                    }
                }
            };
            if cut {
                self.checkpoint().await?;
            }
        }
    }

    /// Gives one message to both sinks. Must not wait: at a cut the host may hold no record that
    /// came out of the source and is in no sink.
    fn hand_on(&mut self, message: &Message) -> Result<(), PipelineError> {
        let order: Order =
            serde_json::from_slice(message.data()).map_err(|source| PipelineError::Order {
                message: message.id().to_owned(),
                source,
            })?;
        let order = Arc::new(self.spec.routes.enrich(order));
        self.publish
            .start_send_unpin(Arc::clone(&order))
            .map_err(PipelineError::Publish)?;
        self.tasks
            .start_send_unpin(order)
            .map_err(PipelineError::Task)?;
        self.read += 1;
        if self.spec.crash_after == Some(self.read) {
            // No destructor runs and nothing is flushed: what a crash at the worst moment leaves.
            std::process::abort();
        }
        Ok(())
    }

    async fn checkpoint(&mut self) -> Result<(), PipelineError> {
        let epoch = self.epoch.next();
        // All three cuts before the first wait: no record may come between them.
        let source = self.source.snapshot(epoch);
        let publish = self.publish.snapshot(epoch);
        let tasks = self.tasks.snapshot(epoch);
        let incomplete = |source| PipelineError::Snapshot { epoch, source };
        let state = JobState {
            source: source.await.map_err(incomplete)?,
            publish: publish.await.map_err(incomplete)?,
            tasks: tasks.await.map_err(incomplete)?,
        };
        self.store.save(epoch, state.encode()?).await?;
        self.epoch = epoch;
        self.store.committing(epoch).await?;
        let receipts = [
            self.publish.commit(epoch),
            self.tasks.commit(epoch),
            self.source.commit(epoch),
        ];
        self.commits.push(settle(epoch, receipts));
        tracing::debug!(%epoch, read = self.read, "A checkpoint is durable.");
        Ok(())
    }

    async fn settled(&mut self, done: Result<Epoch, CheckpointError>) -> Result<(), PipelineError> {
        match done {
            Ok(epoch) => {
                self.store.settled(epoch).await?;
                tracing::debug!(%epoch, "A checkpoint is settled.");
                Ok(())
            }
            // Still being sent: the epoch stays without its mark, and a restart sends it again.
            Err(error @ CheckpointError::Unconfirmed { .. }) => {
                tracing::warn!(%error, "A commit is slow to be confirmed.");
                Ok(())
            }
            Err(source) => Err(PipelineError::Commit { source }),
        }
    }

    /// Takes the last checkpoint, waits for what it commits, marks it, and closes the connectors.
    async fn finish(mut self) -> Result<(), PipelineError> {
        self.checkpoint().await?;
        while !self.commits.is_empty() {
            let again = tokio::select! { biased;
                Some(done) = self.commits.next() => { self.settled(done).await?; false }
                // A sink that keeps something aside needs one more state that names it.
                wanted = checkpoint_wanted((&mut self.publish, &mut self.tasks)) => {
                    wanted?;
                    true
                }
            };
            if again {
                self.checkpoint().await?;
            }
        }
        tracing::debug!(epoch = %self.epoch, "The last checkpoint is settled; closing.");
        self.publish.close().await.map_err(PipelineError::Publish)?;
        self.tasks.close().await.map_err(PipelineError::Task)?;
        self.source.close().await.map_err(PipelineError::Close)?;
        self.store.close().await;
        Ok(())
    }
}
