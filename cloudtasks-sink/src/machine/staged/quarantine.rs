//! Committed tasks that are kept aside for an operator.
//!
//! A task is out of danger only when a state that names it here is durable: an epoch marked as
//! settled before that would take it out of every state. So its verdict waits for the next commit.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use connector_core::ledger::Place;
use connector_core::{Epoch, Limits};

use super::owed::{KeptId, Owed};
use crate::state::KeptTask;

#[derive(Debug)]
pub(super) struct Quarantine {
    limit: Limits,
    held: Limits,
    /// In the order in which they were kept aside.
    tasks: BTreeMap<KeptId, KeptTask>,
    /// The tasks of each name: records of one key share theirs.
    names: BTreeMap<String, VecDeque<KeptId>>,
    owed: Owed,
    next: u64,
}

impl Quarantine {
    pub(super) fn new(limit: Limits) -> Self {
        Self {
            limit,
            held: Limits::new(0, 0),
            tasks: BTreeMap::new(),
            names: BTreeMap::new(),
            owed: Owed::default(),
            next: 0,
        }
    }

    pub(super) const fn limit(&self) -> Limits {
        self.limit
    }

    pub(super) const fn held(&self) -> Limits {
        self.held
    }

    /// Whether it is not full.
    pub(super) const fn admits(&self) -> bool {
        self.limit.admits(self.held)
    }

    /// Takes a task. One without a place is named by a durable state already.
    pub(super) fn push(&mut self, now: Instant, task: KeptTask, place: Option<Place>) {
        let id = KeptId::of(self.next);
        self.next += 1;
        self.held.items += 1;
        self.held.bytes += task.task().len();
        self.names.entry(task.name()).or_default().push_back(id);
        self.tasks.insert(id, task);
        if let Some(place) = place {
            self.owed.add(now, id, place);
        }
    }

    /// The state of this epoch names everything here, and everything that was here.
    pub(super) fn name(&mut self, epoch: Epoch) {
        self.owed.name(epoch);
    }

    /// This epoch will not be durable.
    pub(super) fn unname(&mut self, epoch: Epoch) {
        self.owed.unname(epoch);
    }

    /// This epoch is durable: the places of everything that it is the first durable one to name.
    pub(super) fn durable(&mut self, epoch: Epoch) -> Vec<Place> {
        self.owed.durable(epoch)
    }

    /// The tasks whose verdict was given although no durable state names them, and the newest epoch
    /// of theirs.
    pub(super) fn unconfirmed(&self) -> Option<(usize, Epoch)> {
        self.owed.unconfirmed()
    }

    /// Whether a checkpoint is needed for a verdict.
    pub(super) const fn wants_checkpoint(&self) -> bool {
        self.owed.wants_checkpoint()
    }

    /// When waiting for a durable state has lasted `limit`.
    pub(super) fn deadline(&self, limit: Duration) -> Option<Instant> {
        self.owed.deadline(limit)
    }

    /// Gives up waiting for a durable state for everything that waited as long as that. `settle`
    /// gives each its verdict, and answers the epoch it was committed with.
    pub(super) fn give_up(
        &mut self,
        now: Instant,
        limit: Duration,
        settle: impl FnMut(Place) -> Epoch,
    ) -> bool {
        self.owed.give_up(now, limit, settle)
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = &KeptTask> {
        self.tasks.values()
    }

    /// Takes out the oldest task of this name, which is over, with the place where its verdict is
    /// owed.
    pub(super) fn dismiss(&mut self, name: &str) -> Option<(KeptTask, Option<Place>)> {
        let (id, task) = self.take(name)?;
        Some((task, self.owed.end(id)))
    }

    /// Takes out the oldest task of this name to be sent once more, with the place where its verdict
    /// is owed. Where commits are not confirmed for its sake, they are not until a durable state
    /// names it among what is sent.
    pub(super) fn send_again(&mut self, name: &str) -> Option<(KeptTask, Option<Place>)> {
        let (id, task) = self.take(name)?;
        Some((task, self.owed.send_again(id)))
    }

    fn take(&mut self, name: &str) -> Option<(KeptId, KeptTask)> {
        let ids = self.names.get_mut(name)?;
        let id = ids.pop_front()?;
        if ids.is_empty() {
            self.names.remove(name);
        }
        let task = self.tasks.remove(&id)?;
        self.held.items -= 1;
        self.held.bytes -= task.task().len();
        Some((id, task))
    }

    /// Tasks whose verdict is owed.
    #[cfg(any(test, fuzzing))]
    pub(super) fn verdicts(&self) -> usize {
        self.owed.verdicts()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        self.owed.check_invariants();
        assert_eq!(self.held.items, self.tasks.len());
        let bytes = self.tasks.values().map(|task| task.task().len());
        assert_eq!(self.held.bytes, bytes.sum::<usize>());
        let mut names: BTreeMap<String, VecDeque<KeptId>> = BTreeMap::new();
        for (id, task) in &self.tasks {
            names.entry(task.name()).or_default().push_back(*id);
        }
        assert_eq!(self.names, names, "each is found by its name");
    }
}

#[cfg(test)]
mod tests;
