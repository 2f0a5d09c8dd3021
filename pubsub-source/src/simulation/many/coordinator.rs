//! The coordinator of a run: one checkpoint after the other, of all its readers.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, MemoryFault, StoreError};
use connector_core::Epoch;
use futures::FutureExt;

use super::{
    Violation,
    bugs::Bug,
    chance::Rates,
    event::{Delivered, Event, Place, Word},
    job::Pending,
    truth::Taken,
    world::World,
};

impl World {
    /// Begins a checkpoint, unless one is being put together.
    pub(super) fn coordinate(&mut self, number: u32) {
        let Some(job) = self.jobs.get_mut(&number) else {
            return;
        };
        if job.ending {
            return;
        }
        if job.pending.is_none() && job.readers.len() == job.width {
            job.epoch = job.epoch.next();
            job.pending = Some(Pending {
                epoch: job.epoch,
                states: BTreeMap::new(),
                saving: false,
            });
            let epoch = job.epoch;
            self.tell_all(number, Word::Cut(epoch));
        }
        let pause = self.chance.millis(500..8000);
        self.schedule(pause, Event::Coordinate(number));
    }

    /// The state of a reader has arrived. With the last one the checkpoint is saved.
    pub(super) fn take_state(
        &mut self,
        (number, reader): Place,
        epoch: Epoch,
        state: Bytes,
        handed: BTreeSet<Delivered>,
    ) {
        let left_out = usize::from(self.bug == Some(Bug::ReaderLeftOut));
        let Some(job) = self.jobs.get_mut(&number) else {
            return;
        };
        let enough = (job.width - left_out).max(1);
        let Some(pending) = &mut job.pending else {
            return;
        };
        if pending.epoch != epoch || pending.saving {
            return;
        }
        pending.states.insert(reader, (state, handed));
        if pending.states.len() < enough {
            return;
        }
        pending.saving = true;
        let delay = if self.chance.strikes(|rates: &Rates| rates.save_trouble) {
            self.chance.millis(1_000..30_000)
        } else {
            self.chance.millis(1..300)
        };
        self.schedule(delay, Event::Save(number, epoch));
    }

    /// A checkpoint is saved, if the store takes it.
    pub(super) fn save(&mut self, number: u32, epoch: Epoch) -> Result<(), Violation> {
        let Some(job) = self.jobs.get_mut(&number) else {
            return Ok(());
        };
        if job.ending {
            return Ok(());
        }
        let Some(pending) = job.pending.take() else {
            return Ok(());
        };
        let mut covered = job.restored.clone();
        let mut states = Vec::new();
        for (state, handed) in pending.states.into_values() {
            states.push(state);
            covered.extend(handed);
        }
        let index = self.truth.taken.len();
        self.truth.taken.push(Taken {
            job: number,
            epoch,
            states,
            covered,
        });
        let is_owner = number == self.runs;
        if is_owner && self.chance.strikes(|rates: &Rates| rates.save_trouble) {
            self.place.fail_next(self.chance.pick(&[
                MemoryFault::SaveRefused,
                MemoryFault::SaveUnreported,
                MemoryFault::SaveLate,
            ]));
        }
        let writer = match self.bug {
            Some(Bug::OldOwnerSaves) => self.runs,
            _ => number,
        };
        let state = Bytes::from(index.to_string());
        let writer = if self.jobs.contains_key(&writer) {
            writer
        } else {
            number
        };
        let store = &mut self.jobs.get_mut(&writer).expect("it runs").store;
        let saved = store.save(epoch, state).now_or_never();
        self.look_into_store();
        trace!("{:?} run {number} saves {epoch}: {saved:?}", self.now);
        match saved.expect("it is in memory") {
            Ok(()) => {
                let delay = if self.chance.strikes(|rates: &Rates| rates.save_trouble * 2) {
                    self.chance.millis(1_000..20_000)
                } else {
                    self.chance.millis(1..300)
                };
                self.schedule(delay, Event::Saved(number, epoch));
                Ok(())
            }
            Err(StoreError::NotSaved { .. }) => {
                self.not_saved(number, epoch, index);
                Ok(())
            }
            Err(StoreError::NotOwner { .. }) if !is_owner => {
                self.chance.count("a save of a predecessor was refused");
                if self.bug == Some(Bug::RefusalIgnored) {
                    self.tell_all(number, Word::Commit(epoch));
                } else {
                    self.depose(number);
                }
                Ok(())
            }
            // A planted mistake may get its numbers wrong too.
            Err(StoreError::OutOfOrder { .. }) if writer != number => {
                self.depose(number);
                Ok(())
            }
            Err(error) => Err(format!("run {number} cannot save {epoch}: {error}")),
        }
    }

    /// A checkpoint is durable: the readers commit it, if the run still owns its store.
    pub(super) fn saved(&mut self, number: u32, epoch: Epoch) -> Result<(), Violation> {
        let Some(job) = self.jobs.get_mut(&number) else {
            return Ok(());
        };
        if !self.chance.one_in(4) {
            let store = &mut job.store;
            let marked = store.committing(epoch).now_or_never();
            match marked.expect("it is in memory") {
                Ok(()) => {}
                Err(StoreError::NotOwner { .. }) if number != self.runs => {
                    self.chance.count("a mark of a predecessor was refused");
                    self.depose(number);
                    return Ok(());
                }
                Err(error) => return Err(format!("run {number} cannot mark {epoch}: {error}")),
            }
        }
        self.tell_all(number, Word::Commit(epoch));
        Ok(())
    }

    /// The save failed, as far as the coordinator is told.
    fn not_saved(&mut self, number: u32, epoch: Epoch, index: usize) {
        if self.durable == Some(index) {
            self.chance.count("a save failed though it was durable");
        } else {
            self.chance.count("a save failed");
            // If it was only held back, it is durable then.
            let delay = self.chance.millis(10..3000);
            self.schedule(delay, Event::Land);
        }
        if self.chance.one_in(2) {
            self.chance.count("a checkpoint was aborted");
            self.tell_all(number, Word::Abort(epoch));
        }
    }

    /// What a save held back becomes durable, unless that is too late.
    pub(super) fn land(&mut self) {
        let before = self.durable;
        self.place.land();
        if self.look_into_store() != before {
            self.chance.count("a save failed, and was durable later");
        }
    }

    /// A run that has lost its store drops its sources, reader by reader, as they hear of it.
    fn depose(&mut self, number: u32) {
        let job = self.jobs.get_mut(&number).expect("it has tried to save");
        job.ending = true;
        self.tell_all(number, Word::Drop);
    }

    pub(super) fn tell_all(&mut self, number: u32, word: Word) {
        let places = self.jobs.get(&number).map(|job| job.places());
        for place in places.unwrap_or_default() {
            let delay = self.chance.millis(1..400);
            self.schedule(delay, Event::Word(place, word));
        }
    }
}
