//! What is owed for tasks that were kept aside and that no durable state names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use connector_core::Epoch;
use connector_core::ledger::Place;

/// Names a task that was kept aside. Ascending in time, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeptId(u64);

impl KeptId {
    pub(super) const fn of(number: u64) -> Self {
        Self(number)
    }
}

/// Debts, each until a state that names its task is durable.
///
/// They are few where much is kept aside: what a durable state names costs nothing here.
#[derive(Debug, Default)]
pub(super) struct Owed {
    debts: BTreeMap<KeptId, Debt>,
    /// Those whose verdict is owed, the oldest first.
    waiting: BTreeSet<(Instant, KeptId)>,
    /// How many no sealed epoch names.
    unnamed: usize,
}

#[derive(Debug)]
struct Debt {
    due: Due,
    /// The first epoch whose state names the task.
    named_by: Option<Epoch>,
}

#[derive(Debug, Clone, Copy)]
enum Due {
    /// Its verdict, to whoever waits for the commit of its epoch.
    Verdict { place: Place, since: Instant },
    /// The verdict was given all the same: no commit is confirmed meanwhile. The epoch is that of
    /// the task's commit.
    Confirmation(Epoch),
}

impl Owed {
    /// A task was kept aside, and owes its verdict at `place`.
    pub(super) fn add(&mut self, now: Instant, id: KeptId, place: Place) {
        let due = Due::Verdict { place, since: now };
        let named_by = None;
        self.debts.insert(id, Debt { due, named_by });
        self.waiting.insert((now, id));
        self.unnamed += 1;
    }

    /// The state of this epoch names everything.
    pub(super) fn name(&mut self, epoch: Epoch) {
        if self.unnamed == 0 {
            return;
        }
        for debt in self.debts.values_mut() {
            debt.named_by.get_or_insert(epoch);
        }
        self.unnamed = 0;
    }

    /// This epoch will not be durable.
    pub(super) fn unname(&mut self, epoch: Epoch) {
        for debt in self.debts.values_mut() {
            if debt.named_by == Some(epoch) {
                debt.named_by = None;
                self.unnamed += 1;
            }
        }
    }

    /// This epoch is durable: the places of everything that it is the first durable one to name.
    pub(super) fn durable(&mut self, epoch: Epoch) -> Vec<Place> {
        let is_named = |debt: &Debt| debt.named_by.is_some_and(|named| named <= epoch);
        let mut places = Vec::new();
        let waiting = &mut self.waiting;
        self.debts.retain(|id, debt| {
            if !is_named(debt) {
                return true;
            }
            if let Due::Verdict { place, since } = debt.due {
                waiting.remove(&(since, *id));
                places.push(place);
            }
            false
        });
        places
    }

    /// The tasks whose verdict was given although no durable state names them, and the newest epoch
    /// of theirs.
    pub(super) fn unconfirmed(&self) -> Option<(usize, Epoch)> {
        let epochs = self.debts.values().filter_map(|debt| match debt.due {
            Due::Confirmation(epoch) => Some(epoch),
            Due::Verdict { .. } => None,
        });
        let newest = epochs.clone().max()?;
        Some((epochs.count(), newest))
    }

    /// Whether something is owed that no sealed epoch names.
    pub(super) const fn wants_checkpoint(&self) -> bool {
        self.unnamed > 0
    }

    /// When waiting for a durable state has lasted `limit`.
    pub(super) fn deadline(&self, limit: Duration) -> Option<Instant> {
        self.waiting.first()?.0.checked_add(limit)
    }

    /// Gives up waiting for a durable state for everything that waited as long as `limit`. `settle`
    /// gives each its verdict, and answers the epoch it was committed with.
    pub(super) fn give_up(
        &mut self,
        now: Instant,
        limit: Duration,
        mut settle: impl FnMut(Place) -> Epoch,
    ) -> bool {
        let mut any = false;
        while let Some((since, id)) = self.waiting.first().copied()
            && now.saturating_duration_since(since) >= limit
        {
            self.waiting.remove(&(since, id));
            if let Some(debt) = self.debts.get_mut(&id)
                && let Due::Verdict { place, .. } = debt.due
            {
                debt.due = Due::Confirmation(settle(place));
                any = true;
            }
        }
        any
    }

    /// Nothing is owed for this task any more, whatever a state names. The place where its verdict
    /// was, if it was.
    pub(super) fn end(&mut self, id: KeptId) -> Option<Place> {
        let debt = self.debts.remove(&id)?;
        self.unnamed -= usize::from(debt.named_by.is_none());
        match debt.due {
            Due::Verdict { place, since } => {
                self.waiting.remove(&(since, id));
                Some(place)
            }
            Due::Confirmation(_) => None,
        }
    }

    /// This task is sent again. It takes its verdict along, if that is owed; a confirmation stays
    /// owed until a durable state names the task wherever it is by then.
    pub(super) fn send_again(&mut self, id: KeptId) -> Option<Place> {
        match self.debts.get(&id)?.due {
            Due::Verdict { .. } => self.end(id),
            Due::Confirmation(_) => None,
        }
    }

    /// How many verdicts are owed.
    #[cfg(any(test, fuzzing))]
    pub(super) fn verdicts(&self) -> usize {
        self.waiting.len()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        let unnamed = self.debts.values().filter(|debt| debt.named_by.is_none());
        assert_eq!(self.unnamed, unnamed.count(), "what no state names");
        let waiting = self.debts.iter().filter_map(|(id, debt)| match debt.due {
            Due::Verdict { since, .. } => Some((since, *id)),
            Due::Confirmation(_) => None,
        });
        assert_eq!(self.waiting, waiting.collect(), "whose verdict is owed");
    }
}
