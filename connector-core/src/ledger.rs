//! The epoch ledger: *open → sealed(e) → settling → settled*.
//!
//! One pure type used by every connector. It owns the order of things and their verdicts, and
//! knows nothing of time, leases, batches or sending. Items live in immutable per-epoch
//! [segments](Segment) behind an `Arc`, so that taking a [`View`] for a saved state costs a few
//! pointer copies and a bit per item, and encoding it needs no lock.

mod commit;
mod epoch_entry;
mod open_epoch;
mod place;
mod runs;
mod segment;
mod view;

pub use commit::{Commit, CommitId};
pub use place::{Outcome, Place, Standing};
pub use segment::{Segment, SegmentView};
pub use view::View;

use std::collections::VecDeque;

use crate::{CheckpointError, Committed, Epoch};
use commit::Commits;
use epoch_entry::{EpochEntry, Stage};
use open_epoch::OpenEpoch;

/// Sealed epochs without any open item that are kept apart while the host never commits. Beyond
/// it the oldest fold together: a host that snapshots every second and never commits would
/// otherwise grow the list for ever.
const MAX_IDLE_SEALED: usize = 1024;

/// The epochs of one connector.
#[derive(Debug)]
pub struct Ledger<T> {
    open: OpenEpoch<T>,
    /// Sealed and settling epochs, ascending; the settling ones come first.
    epochs: VecDeque<EpochEntry<T>>,
    newest: Option<Epoch>,
    commits: Commits,
}

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Ledger<T> {
    /// An empty ledger that accepts any first epoch.
    #[must_use]
    pub fn new() -> Self {
        Self {
            open: OpenEpoch::new(),
            epochs: VecDeque::new(),
            newest: None,
            commits: Commits::default(),
        }
    }

    /// A ledger restored from the state of `epoch`.
    ///
    /// `items` are what the state named; they are committed (C9), and the returned [`Commit`] is
    /// their release. Epochs must go on above `epoch`.
    #[must_use]
    pub fn restore(epoch: Epoch, items: Vec<T>) -> (Self, Commit<T>) {
        let mut ledger = Self::new();
        for item in items {
            ledger.add(item);
        }
        let commit = match ledger.seal(epoch).and_then(|()| ledger.commit(epoch)) {
            Ok(commit) => commit,
            Err(error) => unreachable!("an empty ledger accepts any epoch: {error}"),
        };
        (ledger, commit)
    }

    /// Adds an item to the open epoch.
    pub fn add(&mut self, item: T) -> Place {
        self.open.add(item)
    }

    /// Closes the open epoch as `epoch` and opens the next.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::OutOfOrder`] when `epoch` is not above every epoch seen, aborted ones
    /// included. Nothing changes then.
    pub fn seal(&mut self, epoch: Epoch) -> Result<(), CheckpointError> {
        if let Some(newest) = self.newest
            && epoch <= newest
        {
            return Err(CheckpointError::OutOfOrder { epoch, newest });
        }
        self.newest = Some(epoch);
        let (segments, tally) = self.open.seal();
        self.epochs.push_back(EpochEntry {
            epoch,
            segments,
            tally,
            stage: Stage::Sealed,
        });
        self.fold_idle();
        Ok(())
    }

    /// Releases every sealed epoch up to `epoch`.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Unknown`] when `epoch` lies beyond the last seal. Nothing changes then.
    pub fn commit(&mut self, epoch: Epoch) -> Result<Commit<T>, CheckpointError> {
        if self.newest.is_none_or(|newest| epoch > newest) {
            return Err(CheckpointError::Unknown { epoch });
        }
        let id = self.commits.begin(epoch);
        let mut released = Vec::new();
        for entry in &mut self.epochs {
            if entry.epoch <= epoch && entry.is_sealed() {
                entry.stage = Stage::Settling(id);
                released.extend(entry.segments.iter().map(Segment::view));
            }
        }
        self.retire();
        Ok(Commit { id, released })
    }

    /// Folds a sealed epoch into the next one, sealed or open.
    ///
    /// Answers whether anything changed: an unknown or committed epoch has no effect.
    pub fn abort(&mut self, epoch: Epoch) -> bool {
        let sealed = |entry: &EpochEntry<T>| entry.epoch == epoch && entry.is_sealed();
        let Some(at) = self.epochs.iter().position(sealed) else {
            return false;
        };
        let Some(aborted) = self.epochs.remove(at) else {
            return false;
        };
        match self.epochs.get_mut(at) {
            Some(next) => next.take_in_front(aborted),
            None => self.open.take_in_front(aborted.segments, aborted.tally),
        }
        true
    }

    /// Gives an item its verdict, whatever stage it is in.
    ///
    /// Answers the stage it was in; [`Standing::Gone`] when it had a verdict before, which changes
    /// nothing.
    pub fn settle(&mut self, place: Place, outcome: Outcome) -> Standing {
        self.remove(place, Some(outcome))
    }

    /// Takes an item out of the open epoch without a verdict.
    ///
    /// Answers the stage the item is in; it was withdrawn only when that is [`Standing::Open`].
    pub fn withdraw(&mut self, place: Place) -> Standing {
        match self.standing(place) {
            Standing::Open => self.remove(place, None),
            standing @ (Standing::Sealed(_) | Standing::Settling(_) | Standing::Gone) => standing,
        }
    }

    /// Takes an item out of whatever epoch it is in without a verdict, because it moves.
    ///
    /// For an item that is handed out again and thereby becomes part of the open epoch: the caller
    /// adds it anew. Answers the stage it was in.
    pub fn displace(&mut self, place: Place) -> Standing {
        self.remove(place, None)
    }

    /// The stage an item is in.
    #[must_use]
    pub fn standing(&self, place: Place) -> Standing {
        if self.open.owns(place) {
            return match self.open.get(place) {
                Some(_) => Standing::Open,
                None => Standing::Gone,
            };
        }
        self.entry_of(place)
            .filter(|entry| entry.get(place).is_some())
            .map_or(Standing::Gone, EpochEntry::standing)
    }

    /// The item at `place`, while it has no verdict.
    #[must_use]
    pub fn get(&self, place: Place) -> Option<&T> {
        if self.open.owns(place) {
            return self.open.get(place);
        }
        self.entry_of(place)?.get(place)
    }

    /// The next commit whose items all have a verdict, with what became of them.
    pub fn poll_committed(&mut self) -> Option<(CommitId, Committed)> {
        let unsettled = self.epochs.iter().find(|entry| !entry.is_sealed());
        self.commits.report(unsettled.map(|entry| entry.epoch))
    }

    /// What the state of an epoch names: everything sealed, and everything committed that has no
    /// verdict. Take it right after [`seal`](Self::seal).
    #[must_use]
    pub fn view(&self) -> View<T> {
        let segments = self.epochs.iter().flat_map(|entry| &entry.segments);
        View::new(segments.map(Segment::view).collect())
    }

    /// Whether every item of every epoch up to `epoch` has a verdict.
    ///
    /// A flushing sink resolves its snapshot receipt on this.
    #[must_use]
    pub fn is_drained(&self, epoch: Epoch) -> bool {
        self.epochs
            .iter()
            .take_while(|entry| entry.epoch <= epoch)
            .all(|entry| entry.left() == 0)
    }

    /// The newest epoch sealed (or restored), aborted ones included.
    #[must_use]
    pub fn newest(&self) -> Option<Epoch> {
        self.newest
    }

    /// Whether `epoch` is sealed and neither committed nor aborted.
    #[must_use]
    pub fn is_sealed(&self, epoch: Epoch) -> bool {
        self.epochs
            .iter()
            .any(|entry| entry.epoch == epoch && entry.is_sealed())
    }

    /// Items of the open epoch without a verdict.
    #[must_use]
    pub fn open_len(&self) -> usize {
        self.open.left()
    }

    /// Items of sealed, uncommitted epochs without a verdict.
    #[must_use]
    pub fn sealed_len(&self) -> usize {
        self.left_in(EpochEntry::is_sealed)
    }

    /// Items of committed epochs without a verdict.
    #[must_use]
    pub fn settling_len(&self) -> usize {
        self.left_in(|entry| !entry.is_sealed())
    }

    /// Items of committed epochs up to `epoch` without a verdict: what a commit of it waits for.
    #[must_use]
    pub fn unsettled(&self, epoch: Epoch) -> usize {
        self.left_in(|entry| entry.epoch <= epoch && !entry.is_sealed())
    }

    /// Sealed epochs that are neither committed nor aborted.
    #[must_use]
    pub fn sealed_epochs(&self) -> usize {
        self.epochs.iter().filter(|entry| entry.is_sealed()).count()
    }

    /// Whether a segment has an item without a verdict, or is the one that items are added to.
    ///
    /// For connectors that keep something of their own beside each segment.
    #[must_use]
    pub fn holds_segment(&self, segment: u64) -> bool {
        self.open.holds_segment(segment)
            || self
                .epochs
                .iter()
                .any(|entry| entry.segment(segment).is_some())
    }

    /// Items without a verdict.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open_len() + self.left_in(|_| true)
    }

    /// Whether no item is without a verdict.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks what only this type can break.
    ///
    /// # Panics
    ///
    /// When an invariant does not hold. For tests.
    pub fn check_invariants(&self) {
        let mut last_epoch = None;
        let mut last_segment = None;
        let mut sealed_seen = false;
        for entry in &self.epochs {
            assert!(last_epoch < Some(entry.epoch), "epochs ascend");
            last_epoch = Some(entry.epoch);
            match entry.stage {
                Stage::Sealed => sealed_seen = true,
                Stage::Settling(id) => {
                    assert!(
                        !sealed_seen,
                        "commits sweep: nothing sealed stands before a committed epoch"
                    );
                    assert!(
                        self.commits.waits(id),
                        "whoever released an epoch still waits for it"
                    );
                }
            }
            last_segment = entry.check_invariants(last_segment);
        }
        self.open.check_invariants(last_segment);
        assert!(
            last_epoch.is_none() || last_epoch <= self.newest,
            "the newest epoch is remembered"
        );
    }

    fn left_in(&self, which: impl Fn(&EpochEntry<T>) -> bool) -> usize {
        self.epochs
            .iter()
            .filter(|entry| which(entry))
            .map(EpochEntry::left)
            .sum()
    }

    fn entry_of(&self, place: Place) -> Option<&EpochEntry<T>> {
        self.epochs
            .iter()
            .find(|entry| entry.segment(place.segment()).is_some())
    }

    fn remove(&mut self, place: Place, outcome: Option<Outcome>) -> Standing {
        let mut settled = false;
        let (standing, tally) = if self.open.owns(place) {
            let Some(tally) = self.open.remove(place) else {
                return Standing::Gone;
            };
            (Standing::Open, tally)
        } else {
            let mut epochs = self.epochs.iter_mut();
            let Some(entry) = epochs.find(|entry| entry.segment(place.segment()).is_some()) else {
                return Standing::Gone;
            };
            if !entry.remove(place) {
                return Standing::Gone;
            }
            settled = entry.is_settled();
            (entry.standing(), &mut entry.tally)
        };
        if let Some(outcome) = outcome {
            outcome.count_in(tally, 1);
        }
        if settled {
            self.retire();
        }
        standing
    }

    /// Drops committed epochs whose items all have a verdict, and credits whoever released them.
    fn retire(&mut self) {
        let commits = &mut self.commits;
        self.epochs.retain(|entry| match entry.stage {
            Stage::Settling(id) if entry.is_settled() => {
                commits.credit(id, entry.tally);
                false
            }
            Stage::Settling(_) | Stage::Sealed => true,
        });
    }

    fn fold_idle(&mut self) {
        if self.epochs.len() <= MAX_IDLE_SEALED {
            return;
        }
        let idle = self
            .epochs
            .iter()
            .position(|entry| entry.is_sealed() && entry.left() == 0);
        // The newest stays: the host is about to commit it.
        if let Some(at) = idle
            && at + 1 < self.epochs.len()
            && let Some(entry) = self.epochs.remove(at)
        {
            self.epochs[at].take_in_front(entry);
        }
    }
}
