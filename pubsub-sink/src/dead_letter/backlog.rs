//! Dead letters that are not stored yet, and who waits for them.

use std::collections::{BTreeMap, BTreeSet};

use connector_core::Limits;

/// A dead letter, numbered in the order in which they were handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LetterId(u64);

/// A flush that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlushId(u64);

/// Dead letters from the call of `handle` to their confirmation. Pure: knows no clock and nobody
/// who waits, only their numbers.
///
/// A dead letter is admitted, which is its verdict, while those that are admitted and not stored
/// are below the limits; the others wait, in order, and have their verdict at the latest when they
/// are stored themselves.
#[derive(Debug)]
pub(super) struct Backlog {
    limits: Limits,
    next_letter: u64,
    next_flush: u64,
    /// Those not stored, with their bytes.
    unconfirmed: BTreeMap<LetterId, usize>,
    /// Those without a verdict. Newer than any that is admitted.
    waiting: BTreeSet<LetterId>,
    /// What is admitted and not stored.
    admitted: Limits,
    flushes: BTreeMap<FlushId, Flush>,
}

#[derive(Debug)]
struct Flush {
    /// It covers every dead letter below.
    until: LetterId,
    /// How many were not stored when it began.
    of: usize,
}

/// What a confirmation brought about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Dead letters that have their verdict now.
    pub(super) verdicts: Vec<LetterId>,
    /// Flushes that are complete now.
    pub(super) flushes: Vec<FlushId>,
}

impl Backlog {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            next_letter: 0,
            next_flush: 0,
            unconfirmed: BTreeMap::new(),
            waiting: BTreeSet::new(),
            admitted: Limits::new(0, 0),
            flushes: BTreeMap::new(),
        }
    }

    /// Takes a dead letter. True when it has its verdict at once.
    pub(super) fn handle(&mut self, bytes: usize) -> (LetterId, bool) {
        let id = LetterId(self.next_letter);
        self.next_letter += 1;
        self.unconfirmed.insert(id, bytes);
        self.waiting.insert(id);
        let admitted = self.admit().contains(&id);
        (id, admitted)
    }

    /// A dead letter is stored.
    pub(super) fn handle_confirmed(&mut self, id: LetterId) -> Progress {
        let mut progress = Progress::default();
        let Some(bytes) = self.unconfirmed.remove(&id) else {
            return progress;
        };
        if self.waiting.remove(&id) {
            progress.verdicts.push(id);
        } else {
            self.admitted.items -= 1;
            self.admitted.bytes -= bytes;
        }
        progress.verdicts.extend(self.admit());
        let oldest = self.unconfirmed.keys().next().copied();
        let complete = |flush: &Flush| oldest.is_none_or(|oldest| oldest >= flush.until);
        progress.flushes = self
            .flushes
            .iter()
            .filter(|(_, flush)| complete(flush))
            .map(|(id, _)| *id)
            .collect();
        for id in &progress.flushes {
            self.flushes.remove(id);
        }
        progress
    }

    /// Waits for every dead letter ever handled. None when all are stored.
    pub(super) fn flush(&mut self) -> Option<FlushId> {
        if self.unconfirmed.is_empty() {
            return None;
        }
        let id = FlushId(self.next_flush);
        self.next_flush += 1;
        let flush = Flush {
            until: LetterId(self.next_letter),
            of: self.unconfirmed.len(),
        };
        self.flushes.insert(id, flush);
        Some(id)
    }

    /// Waits no more. How many dead letters of how many are missing; they stay owed.
    pub(super) fn give_up(&mut self, id: FlushId) -> Option<(usize, usize)> {
        let flush = self.flushes.remove(&id)?;
        let missing = self.unconfirmed.range(..flush.until).count();
        Some((missing, flush.of))
    }

    /// Gives those that wait their verdict, in order, while there is room.
    fn admit(&mut self) -> Vec<LetterId> {
        let mut admitted = Vec::new();
        while self.limits.admits(self.admitted)
            && let Some(id) = self.waiting.pop_first()
        {
            self.admitted.items += 1;
            self.admitted.bytes += self.unconfirmed.get(&id).copied().unwrap_or_default();
            admitted.push(id);
        }
        admitted
    }
}

#[cfg(test)]
mod tests;
