//! The ledger as one would explain it: a list of items, each with its epoch and its fate.

use connector_core::{Committed, ledger::Outcome};

/// Where an item stands. Its epoch is kept beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Waiting,
    /// By which commit.
    Released(usize),
    Verdict(Outcome),
    /// Taken out without a verdict.
    Out,
}

#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) number: u64,
    /// `None` while open.
    pub(crate) epoch: Option<u64>,
    pub(crate) fate: Fate,
    /// The commit that has to account for the item's verdict, once one swept its epoch.
    pub(crate) commit: Option<usize>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Model {
    /// In the order in which they were added.
    pub(crate) items: Vec<Item>,
    /// Sealed, neither committed nor aborted; ascending.
    pub(crate) sealed: Vec<u64>,
    pub(crate) newest: Option<u64>,
    /// Per commit its epoch, and whether it was reported.
    pub(crate) commits: Vec<(u64, bool)>,
}

impl Model {
    pub(crate) fn restored(epoch: u64, numbers: &[u64]) -> Self {
        let mut model = Self::default();
        for number in numbers {
            model.add(*number);
        }
        assert!(model.seal(epoch));
        assert_eq!(model.commit(epoch).as_deref(), Some(numbers));
        model
    }

    pub(crate) fn add(&mut self, number: u64) {
        self.items.push(Item {
            number,
            epoch: None,
            fate: Fate::Waiting,
            commit: None,
        });
    }

    pub(crate) fn seal(&mut self, epoch: u64) -> bool {
        if self.newest.is_some_and(|newest| epoch <= newest) {
            return false;
        }
        self.newest = Some(epoch);
        self.sealed.push(epoch);
        let open = self.items.iter_mut().filter(|item| item.epoch.is_none());
        open.for_each(|item| item.epoch = Some(epoch));
        true
    }

    /// What the commit releases, in order; `None` when it is refused.
    pub(crate) fn commit(&mut self, epoch: u64) -> Option<Vec<u64>> {
        if self.newest.is_none_or(|newest| epoch > newest) {
            return None;
        }
        let commit = self.commits.len();
        self.commits.push((epoch, false));
        self.sealed.retain(|sealed| *sealed > epoch);
        let mut released = Vec::new();
        for item in &mut self.items {
            if item.commit.is_none() && item.epoch.is_some_and(|of| of <= epoch) {
                item.commit = Some(commit);
                if item.fate == Fate::Waiting {
                    item.fate = Fate::Released(commit);
                    released.push(item.number);
                }
            }
        }
        Some(released)
    }

    pub(crate) fn abort(&mut self, epoch: u64) -> bool {
        let Some(at) = self.sealed.iter().position(|sealed| *sealed == epoch) else {
            return false;
        };
        self.sealed.remove(at);
        let next = self.sealed.get(at).copied();
        let items = self.items.iter_mut();
        items
            .filter(|item| item.epoch == Some(epoch))
            .for_each(|item| item.epoch = next);
        true
    }

    /// Gives the item at `at` a fate unless it has one; answers whether it did.
    pub(crate) fn end(&mut self, at: usize, fate: Fate) -> bool {
        let item = &mut self.items[at];
        let goes = matches!(item.fate, Fate::Waiting | Fate::Released(_));
        if goes {
            item.fate = fate;
        }
        goes
    }

    pub(crate) fn view(&self) -> Vec<u64> {
        let named = self.items.iter().filter(|item| {
            item.epoch.is_some() && matches!(item.fate, Fate::Waiting | Fate::Released(_))
        });
        named.map(|item| item.number).collect()
    }

    pub(crate) fn is_drained(&self, epoch: u64) -> bool {
        !self.items.iter().any(|item| {
            item.epoch.is_some_and(|of| of <= epoch)
                && matches!(item.fate, Fate::Waiting | Fate::Released(_))
        })
    }

    /// Commits that everything up to their epoch has a verdict for, and that were not reported.
    pub(crate) fn report(&mut self) -> Vec<(usize, Committed)> {
        let mut reports = Vec::new();
        for (commit, (epoch, reported)) in self.commits.iter_mut().enumerate() {
            let waits = self.items.iter().any(|item| {
                matches!(item.fate, Fate::Released(_)) && item.epoch.is_some_and(|of| of <= *epoch)
            });
            if waits || *reported {
                continue;
            }
            *reported = true;
            let mut tally = Committed::default();
            for item in self.items.iter().filter(|item| item.commit == Some(commit)) {
                match item.fate {
                    Fate::Verdict(Outcome::Settled) => tally.settled += 1,
                    Fate::Verdict(Outcome::Lapsed) => tally.lapsed += 1,
                    Fate::Verdict(_) => tally.retained += 1,
                    Fate::Waiting | Fate::Released(_) | Fate::Out => {}
                }
            }
            reports.push((commit, tally));
        }
        reports
    }
}
