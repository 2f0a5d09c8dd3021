//! What outlives a crash of a host that keeps its checkpoints in memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use connector_core::{Cause, Epoch, Restored};

use super::{MemoryFault, MemoryStore, fault::Scripted};
use crate::{Damage, Owner, Progress, Stake, StoreError};

/// The place behind a [`MemoryStore`]: it outlives the store, as a disk outlives a process.
///
/// A clone is another handle to the same place.
#[derive(Debug, Clone, Default)]
pub struct MemoryPlace(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    generation: u64,
    newest: Option<Saved>,
    /// The newest epoch that the owner knows to be durable.
    known: Option<Epoch>,
    late: Vec<Saved>,
    damaged: bool,
    save_faults: VecDeque<MemoryFault>,
    mark_faults: VecDeque<MemoryFault>,
}

#[derive(Debug, Clone)]
struct Saved {
    epoch: Epoch,
    state: Bytes,
    progress: Progress,
}

impl MemoryPlace {
    /// An empty place.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the place as its newest owner, and fences every owner before.
    ///
    /// A state that was to become durable late and has not yet never will: its owner cannot write
    /// any more.
    #[must_use]
    pub fn open(&self) -> MemoryStore {
        let mut kept = self.kept();
        kept.generation += 1;
        kept.late.clear();
        kept.known = kept.newest.as_ref().map(|newest| newest.epoch);
        MemoryStore::new(self.clone(), kept.generation)
    }

    /// Plays `fault` on the next call it concerns, after those asked for before.
    pub fn fail_next(&self, fault: MemoryFault) {
        let mut kept = self.kept();
        match fault {
            MemoryFault::SaveRefused | MemoryFault::SaveUnreported | MemoryFault::SaveLate => {
                kept.save_faults.push_back(fault);
            }
            MemoryFault::MarkRefused | MemoryFault::MarkLost => kept.mark_faults.push_back(fault),
        }
    }

    /// Makes durable what [`MemoryFault::SaveLate`] held back, unless a newer state is.
    pub fn land(&self) {
        let mut kept = self.kept();
        for saved in std::mem::take(&mut kept.late) {
            if kept
                .newest
                .as_ref()
                .is_none_or(|newest| newest.epoch < saved.epoch)
            {
                kept.newest = Some(saved);
            }
        }
    }

    /// Makes the newest state unreadable until [`repair`](Self::repair), or until a newer one is saved.
    pub fn damage(&self) {
        self.kept().damaged = true;
    }

    /// Makes a damaged state readable again.
    pub fn repair(&self) {
        self.kept().damaged = false;
    }

    /// What is durable, whoever asks and whether or not it is damaged: for assertions.
    #[must_use]
    pub fn durable(&self) -> Option<Restored<Bytes>> {
        let kept = self.kept();
        kept.newest.as_ref().map(Saved::restored)
    }

    /// The newest epoch and how far it is known to have come: for assertions.
    #[must_use]
    pub fn progress(&self) -> Option<(Epoch, Progress)> {
        let kept = self.kept();
        kept.newest
            .as_ref()
            .map(|newest| (newest.epoch, newest.progress))
    }

    pub(super) fn newest(&self, generation: u64) -> Result<Option<Restored<Bytes>>, StoreError> {
        let mut kept = self.owned_by(generation)?;
        kept.known = kept.newest.as_ref().map(|newest| newest.epoch);
        match &kept.newest {
            Some(newest) if kept.damaged => Err(StoreError::Damaged {
                place: PLACE.to_owned(),
                damage: Damage::Checksum,
                stake: Stake::State {
                    epoch: newest.epoch,
                },
            }),
            newest => Ok(newest.as_ref().map(Saved::restored)),
        }
    }

    pub(super) fn save(
        &self,
        generation: u64,
        epoch: Epoch,
        state: Bytes,
    ) -> Result<(), StoreError> {
        let mut kept = self.owned_by(generation)?;
        if let Some(newest) = kept.known
            && epoch <= newest
        {
            return Err(StoreError::OutOfOrder { epoch, newest });
        }
        let progress = Progress::Saved;
        let saved = Saved {
            epoch,
            state,
            progress,
        };
        let fault = kept.save_faults.pop_front();
        match fault {
            Some(MemoryFault::SaveLate) => kept.late.push(saved),
            None | Some(MemoryFault::SaveUnreported) => {
                kept.newest = Some(saved);
                kept.damaged = false;
            }
            // Faults of marks wait in a queue of their own.
            Some(MemoryFault::SaveRefused | MemoryFault::MarkRefused | MemoryFault::MarkLost) => {}
        }
        match fault {
            None => {
                kept.known = Some(epoch);
                Ok(())
            }
            Some(fault) => Err(StoreError::NotSaved {
                epoch,
                place: PLACE.to_owned(),
                cause: Cause::new(Scripted(fault)),
            }),
        }
    }

    pub(super) fn mark(
        &self,
        generation: u64,
        epoch: Epoch,
        progress: Progress,
    ) -> Result<(), StoreError> {
        let mut kept = self.owned_by(generation)?;
        if kept.known.is_none_or(|known| known < epoch) {
            return Err(StoreError::NeverSaved {
                epoch,
                newest: kept.known,
            });
        }
        match kept.mark_faults.pop_front() {
            Some(MemoryFault::MarkLost) => return Ok(()),
            Some(fault) => {
                return Err(StoreError::NotMarked {
                    epoch,
                    mark: progress,
                    place: PLACE.to_owned(),
                    cause: Cause::new(Scripted(fault)),
                });
            }
            None => {}
        }
        if let Some(newest) = kept.newest.as_mut().filter(|newest| newest.epoch == epoch) {
            newest.progress = newest.progress.max(progress);
        }
        Ok(())
    }

    fn owned_by(&self, generation: u64) -> Result<MutexGuard<'_, Kept>, StoreError> {
        let kept = self.kept();
        if kept.generation == generation {
            return Ok(kept);
        }
        Err(StoreError::NotOwner {
            successor: Some(Owner {
                generation: kept.generation,
                pid: std::process::id(),
            }),
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No method leaves the place half changed, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the place in error texts.
const PLACE: &str = "memory";

impl Saved {
    fn restored(&self) -> Restored<Bytes> {
        Restored::new(self.epoch, self.state.clone()).settled(self.progress == Progress::Settled)
    }
}
