//! Committed tasks that are kept aside for an operator.
//!
//! A task is out of danger only when a state that names it here is durable: an epoch marked as
//! settled before that would take it out of every state. So its verdict waits for the next commit.

use std::time::{Duration, Instant};

use connector_core::ledger::Place;
use connector_core::{Epoch, Limits};

use crate::state::KeptTask;

#[derive(Debug)]
pub(super) struct Quarantine {
    limit: Limits,
    held: Limits,
    entries: Vec<Entry>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) task: KeptTask,
    /// Where its verdict is owed, until a durable state names it.
    pub(super) place: Option<Place>,
    /// The epoch it was committed with, where the verdict was given before a durable state named
    /// it: no commit is confirmed until one does.
    unsaved: Option<Epoch>,
    /// The first epoch whose state names it.
    named_by: Option<Epoch>,
    since: Instant,
}

impl Quarantine {
    pub(super) const fn new(limit: Limits) -> Self {
        Self {
            limit,
            held: Limits::new(0, 0),
            entries: Vec::new(),
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
        self.held.items += 1;
        self.held.bytes += task.task().len();
        self.entries.push(Entry {
            task,
            place,
            unsaved: None,
            named_by: None,
            since: now,
        });
    }

    /// The state of this epoch names everything here.
    pub(super) fn name(&mut self, epoch: Epoch) {
        for entry in &mut self.entries {
            entry.named_by.get_or_insert(epoch);
        }
    }

    /// This epoch will not be durable.
    pub(super) fn unname(&mut self, epoch: Epoch) {
        for entry in &mut self.entries {
            if entry.named_by == Some(epoch) {
                entry.named_by = None;
            }
        }
    }

    /// This epoch is durable: the places of everything that it is the first durable one to name.
    pub(super) fn durable(&mut self, epoch: Epoch) -> Vec<Place> {
        let entries = self.entries.iter_mut();
        entries
            .filter(|entry| entry.named_by.is_some_and(|named| named <= epoch))
            .filter_map(|entry| {
                entry.unsaved = None;
                entry.place.take()
            })
            .collect()
    }

    /// The tasks whose verdict was given although no durable state names them, and the newest epoch
    /// of theirs.
    pub(super) fn unsaved(&self) -> Option<(usize, Epoch)> {
        let unsaved = self.entries.iter().filter_map(|entry| entry.unsaved);
        let newest = unsaved.clone().max()?;
        Some((unsaved.count(), newest))
    }

    /// Whether a checkpoint is needed for a verdict.
    pub(super) fn wants_checkpoint(&self) -> bool {
        self.entries.iter().any(|entry| {
            (entry.place.is_some() || entry.unsaved.is_some()) && entry.named_by.is_none()
        })
    }

    /// Tasks whose verdict is owed.
    #[cfg(test)]
    pub(super) fn owed(&self) -> usize {
        let owed = self.entries.iter().filter(|entry| entry.place.is_some());
        owed.count()
    }

    /// When waiting for a durable state has lasted `limit`.
    pub(super) fn deadline(&self, limit: Duration) -> Option<Instant> {
        let owed = self.entries.iter().filter(|entry| entry.place.is_some());
        owed.filter_map(|entry| entry.since.checked_add(limit))
            .min()
    }

    /// Gives up waiting for a durable state for everything that waited as long as that. `settle`
    /// gives each its verdict, and answers the epoch it was committed with.
    pub(super) fn give_up(
        &mut self,
        now: Instant,
        limit: Duration,
        mut settle: impl FnMut(Place) -> Epoch,
    ) -> bool {
        let mut any = false;
        for entry in &mut self.entries {
            if now.saturating_duration_since(entry.since) >= limit
                && let Some(place) = entry.place.take()
            {
                entry.unsaved = Some(settle(place));
                any = true;
            }
        }
        any
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = &KeptTask> {
        self.entries.iter().map(|entry| &entry.task)
    }

    /// Takes out the task of this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Entry> {
        let at = self
            .entries
            .iter()
            .position(|entry| entry.task.name() == name)?;
        let entry = self.entries.remove(at);
        self.held.items -= 1;
        self.held.bytes -= entry.task.task().len();
        Some(entry)
    }

    #[cfg(test)]
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.held.items, self.entries.len());
        let bytes = self.entries.iter().map(|entry| entry.task.task().len());
        assert_eq!(self.held.bytes, bytes.sum::<usize>());
    }
}
