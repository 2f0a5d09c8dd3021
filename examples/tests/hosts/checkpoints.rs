//! The host's checkpoints, and the points at which it may die in them.

use checkpoint_store::{CheckpointStore, DiskFault, StoreError};
use connector_core::{Checkpoint, CheckpointError, Epoch, settle};

use crate::{
    bugs::Bug,
    host::{Ended, Host, connector},
};

/// The states of one epoch: what a host saves.
pub(crate) type States = (
    usize,
    pubsub_source::SourceState,
    pubsub_sink::SinkState,
    cloudtasks_sink::SinkState,
);

/// An epoch whose snapshots have resolved.
pub(crate) struct Sealed {
    epoch: Epoch,
    cut: usize,
    states: Result<States, CheckpointError>,
}

impl Host<'_> {
    fn has(&self, bug: Bug) -> bool {
        self.world.bug == Some(bug)
    }

    /// The process dies here, if the seed has it.
    fn die(&self, point: &'static str) -> Result<(), Ended> {
        if !self.careful && self.world.chance().strikes(|rates| rates.death) {
            self.world.count(point);
            return Err(Ended::Died);
        }
        Ok(())
    }

    /// Cuts all three, with nothing in between.
    pub(crate) fn cut(&mut self) {
        self.epoch = self.epoch.next();
        let epoch = self.epoch;
        if !self.sealing.is_empty() {
            self.world.count("two checkpoints were open at once");
        }
        let sinks_first = self.has(Bug::SinksCutFirst);
        let mut sinks = sinks_first.then(|| self.snapshots(epoch));
        if sinks_first {
            self.take_one_more();
        }
        let cut = self.world.truth().cut();
        self.world.tell(format_args!("host: cut {epoch}"));
        let source = self.source.snapshot(epoch);
        if self.has(Bug::SourceCutFirst) {
            self.take_one_more();
        }
        let (publish, tasks) = sinks.take().unwrap_or_else(|| self.snapshots(epoch));
        self.cuts.insert(epoch, cut);
        if self.has(Bug::AckBeforeDurable) {
            drop(self.source.commit(epoch));
        }
        if self.has(Bug::SentBeforeDurable) {
            drop((self.publish.commit(epoch), self.tasks.commit(epoch)));
        }
        self.sealing.push_back(Box::pin(async move {
            let states = async { Ok((cut, source.await?, publish.await?, tasks.await?)) };
            let states = states.await;
            Sealed { epoch, cut, states }
        }));
        if !self.careful && self.world.chance().strikes(|rates| rates.abort) {
            self.abort(epoch);
        }
    }

    fn snapshots(
        &mut self,
        epoch: Epoch,
    ) -> (
        connector_core::Receipt<pubsub_sink::SinkState>,
        connector_core::Receipt<cloudtasks_sink::SinkState>,
    ) {
        (self.publish.snapshot(epoch), self.tasks.snapshot(epoch))
    }

    fn abort(&mut self, epoch: Epoch) {
        self.world.count("a checkpoint was aborted");
        self.source.abort(epoch);
        self.publish.abort(epoch);
        self.tasks.abort(epoch);
        self.cuts.remove(&epoch);
    }

    /// Saves a sealed epoch and commits it.
    pub(crate) async fn keep(&mut self, sealed: Sealed) -> Result<(), Ended> {
        let Sealed { epoch, cut, states } = sealed;
        if !self.cuts.contains_key(&epoch) {
            // Aborted meanwhile.
            return Ok(());
        }
        let mut states = states.map_err(connector)?;
        if self.has(Bug::StaleSink) {
            let state = self.stale.replace(states.2.clone());
            states.2 = state.unwrap_or(states.2);
        }
        self.die("death before a save")?;
        if !self.save(epoch, cut, &states).await? {
            return Ok(());
        }
        self.die("death between state and mark")?;
        if !self.careful && self.world.chance().strikes(|rates| rates.skip) {
            self.world.count("a commit was left to the next one");
            return Ok(());
        }
        if self.world.plan.marks {
            self.mark(epoch).await?;
            self.die("death between mark and commit")?;
        }
        let sinks = [self.publish.commit(epoch), self.tasks.commit(epoch)];
        self.die("death between the commits")?;
        let source = self.source.commit(epoch);
        self.world.tell(format_args!("host: commits {epoch}"));
        if self.has(Bug::MarkedEarly) {
            self.store.settled(epoch).await.ok();
        }
        if self.has(Bug::MarkedForSource) {
            self.commits.push(settle(epoch, [source]));
            return Ok(());
        }
        self.commits
            .push(settle(epoch, sinks.into_iter().chain([source])));
        self.die("death after the commits")
    }

    /// Something may go wrong with the disk.
    fn shake_disk(&self) {
        let mut chance = self.world.chance();
        if !self.careful && chance.strikes(|rates| rates.disk) {
            let fault = chance.pick(&[
                DiskFault::Refused,
                DiskFault::Unreported,
                DiskFault::Full,
                DiskFault::Death,
            ]);
            let steps = chance.random().usize(..12);
            self.world.disk.fail_after(steps, fault);
        }
    }

    /// Answers whether the state is durable; the epoch is aborted otherwise.
    async fn save(&mut self, epoch: Epoch, cut: usize, states: &States) -> Result<bool, Ended> {
        let bytes = bytes::Bytes::from(postcard::to_stdvec(states).unwrap());
        self.shake_disk();
        loop {
            self.look();
            let saved = self.store.save(epoch, bytes.clone()).await;
            let struck = self.world.disk.is_dead();
            self.world
                .tell(format_args!("host: save {epoch}: {}", told(&saved)));
            if struck {
                self.world.count("death in a step of the disk");
                return Err(Ended::Died);
            }
            let Err(error) = saved else {
                // What the store says counts, and not what the host makes of it.
                self.world.truth().saved(cut);
                break;
            };
            assert!(!error.is_not_owner(), "{error}");
            self.world.count("a save failed");
            if self.has(Bug::FailedSaveCounts) {
                break;
            }
            let full = self.world.chance().one_in(2);
            if !full {
                self.world.disk.heal();
            }
            let policy = self.world.chance().random().u8(..4);
            match policy {
                0 => {
                    self.abort(epoch);
                    self.world.disk.heal();
                    return Ok(false);
                }
                1 => return Err(Ended::GaveUp),
                _ => self.world.count("a save was tried again"),
            }
        }
        self.world.disk.heal();
        self.saved = epoch;
        Ok(true)
    }

    /// Says that a commit is about to begin. Without the mark there is no commit.
    pub(crate) async fn mark(&mut self, epoch: Epoch) -> Result<(), Ended> {
        self.shake_disk();
        let marked = self.store.committing(epoch).await;
        self.world
            .tell(format_args!("host: mark {epoch}: {}", told(&marked)));
        let died = self.world.disk.is_dead();
        self.world.disk.heal();
        if marked.is_ok() {
            return Ok(());
        }
        self.world.count("a mark was not written");
        Err(if died { Ended::Died } else { Ended::GaveUp })
    }

    /// Every receipt of an epoch has resolved.
    pub(crate) async fn settle(
        &mut self,
        done: Result<Epoch, CheckpointError>,
    ) -> Result<(), Ended> {
        let epoch = match done {
            Ok(epoch) => epoch,
            Err(CheckpointError::Unconfirmed { .. } | CheckpointError::Retained { .. }) => {
                return Ok(());
            }
            Err(error) => return Err(connector(error)),
        };
        self.world.tell(format_args!("host: settled {epoch}"));
        self.look();
        if let Some(cut) = self.cuts.get(&epoch) {
            self.world.truth().settled(*cut);
        }
        self.die("death before a settled mark")?;
        if !self.careful && self.world.chance().strikes(|rates| rates.unmarked) {
            self.world.count("a mark was left out");
            return Ok(());
        }
        let of = if self.has(Bug::MarkedNewest) {
            self.saved
        } else {
            epoch
        };
        self.shake_disk();
        let marked = self.store.settled(of).await;
        self.world.tell(format_args!(
            "host: settled mark {epoch}: {}",
            told(&marked)
        ));
        let died = self.world.disk.is_dead();
        self.world.disk.heal();
        if marked.is_err() {
            self.world.count("a mark was not written");
        }
        if died {
            return Err(Ended::Died);
        }
        self.die("death after a settled mark")
    }
}

/// The outcome, without the names of files: they hold what is drawn elsewhere.
fn told(done: &Result<(), StoreError>) -> &'static str {
    match done {
        Ok(()) => "done",
        Err(StoreError::NotSaved { .. }) => "not saved",
        Err(StoreError::NotMarked { .. }) => "not marked",
        Err(StoreError::NotOwner { .. }) => "not the owner",
        Err(_) => "another error",
    }
}
