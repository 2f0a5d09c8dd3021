//! The epoch ledger: *open → sealed(e) → settling → settled*.
//!
//! One pure type used by every connector. It owns the order of things and their verdicts, and
//! knows nothing of time, leases, batches or sending. Items live in immutable per-epoch
//! [segments](Segment) behind an `Arc`, so that taking a [`View`] for a saved state costs a few
//! pointer copies and a bit per item, and encoding it needs no lock.

mod epoch_entry;
mod segment;

pub use segment::{Segment, SegmentView};

use std::collections::VecDeque;

use crate::{CheckpointError, Committed, Epoch};
use epoch_entry::{EpochEntry, Stage};
use segment::Bits;

/// Sealed epochs without any open item that are kept apart while the host never commits. Beyond
/// it the oldest fold together: a host that snapshots every second and never commits would
/// otherwise grow the list for ever.
const MAX_IDLE_SEALED: usize = 1024;

/// Items of the open epoch in one segment. A sink gives items their verdict before the cut, and its
/// host may never take a checkpoint at all: segments whose items all have one are dropped, so that
/// the open epoch does not grow with everything it ever held.
const MAX_OPEN_ITEMS: usize = 65_536;

/// Where an item stands in the ledger, until it has a verdict.
///
/// Places are never reused, and stay valid through sealing, folding and committing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    segment: u64,
    index: u32,
}

/// The stage an item is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// Added since the last cut.
    Open,
    /// Part of a sealed epoch that is not committed.
    Sealed(Epoch),
    /// Part of a committed epoch, without a verdict yet.
    Settling(Epoch),
    /// Has a verdict, was withdrawn, or never existed.
    Gone,
}

/// What became of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Confirmed by the service.
    Settled,
    /// The lease ended before the service confirmed.
    Lapsed,
    /// Kept aside for the operator.
    Retained,
}

/// Names one call of [`Ledger::commit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(u64);

/// What a commit releases: the segments that may now leave, oldest epoch first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Commit<T> {
    /// Names the commit in [`Ledger::poll_committed`].
    pub id: CommitId,
    /// What may leave now, in order. Empty when everything was released by an earlier commit.
    pub released: Vec<SegmentView<T>>,
}

/// What a saved state names (C8): everything sealed, and everything committed without a verdict.
#[derive(Debug)]
pub struct View<T> {
    segments: Vec<SegmentView<T>>,
}

impl<T> View<T> {
    /// The items, in ledger order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        self.segments
            .iter()
            .flat_map(SegmentView::iter)
            .map(|(_, item)| item)
    }

    /// The segments, in ledger order.
    #[must_use]
    pub fn segments(&self) -> &[SegmentView<T>] {
        &self.segments
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.iter().map(SegmentView::len).sum()
    }

    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.iter().all(SegmentView::is_empty)
    }
}

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        Self {
            segments: self.segments.clone(),
        }
    }
}

impl<T> Default for View<T> {
    fn default() -> Self {
        Self {
            segments: Vec::new(),
        }
    }
}

/// A commit that waits for verdicts.
#[derive(Debug)]
struct Waiting {
    id: CommitId,
    upto: Epoch,
    tally: Committed,
}

/// The epochs of one connector.
#[derive(Debug)]
pub struct Ledger<T> {
    /// Segments of the open epoch older than `open_items`: full ones, and those folded back from
    /// aborted epochs.
    folded: Vec<Segment<T>>,
    open_segment: u64,
    open_items: Vec<T>,
    open_gone: Bits,
    open_left: usize,
    /// Verdicts given to items of the open epoch already, as a flushing sink does.
    open_tally: Committed,
    /// Sealed and settling epochs, ascending; the settling ones come first.
    epochs: VecDeque<EpochEntry<T>>,
    newest: Option<Epoch>,
    waiting: VecDeque<Waiting>,
    next_commit: u64,
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
            folded: Vec::new(),
            open_segment: 0,
            open_items: Vec::new(),
            open_gone: Bits::default(),
            open_left: 0,
            open_tally: Committed::default(),
            epochs: VecDeque::new(),
            newest: None,
            waiting: VecDeque::new(),
            next_commit: 0,
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
    ///
    /// # Panics
    ///
    /// Never: a segment is closed long before its 2³² places are used.
    pub fn add(&mut self, item: T) -> Place {
        if self.open_items.len() >= MAX_OPEN_ITEMS {
            self.close_open_segment();
        }
        let index = u32::try_from(self.open_items.len()).expect("a segment has 65,536 places");
        self.open_items.push(item);
        self.open_left += 1;
        Place {
            segment: self.open_segment,
            index,
        }
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
        self.close_open_segment();
        let segments = std::mem::take(&mut self.folded);
        self.epochs.push_back(EpochEntry {
            epoch,
            segments,
            tally: std::mem::take(&mut self.open_tally),
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
        let id = CommitId(self.next_commit);
        self.next_commit += 1;
        let mut released = Vec::new();
        for entry in &mut self.epochs {
            if entry.epoch <= epoch && matches!(entry.stage, Stage::Sealed) {
                entry.stage = Stage::Settling(id);
                released.extend(entry.segments.iter().map(Segment::view));
            }
        }
        self.waiting.push_back(Waiting {
            id,
            upto: epoch,
            tally: Committed::default(),
        });
        self.retire();
        Ok(Commit { id, released })
    }

    /// Folds a sealed epoch into the next one, sealed or open.
    ///
    /// Answers whether anything changed: an unknown or committed epoch has no effect.
    pub fn abort(&mut self, epoch: Epoch) -> bool {
        let Some(at) = self.epochs.iter().position(|entry| entry.epoch == epoch) else {
            return false;
        };
        match self.epochs[at].stage {
            Stage::Settling(_) => return false,
            Stage::Sealed => {}
        }
        let Some(mut aborted) = self.epochs.remove(at) else {
            return false;
        };
        if let Some(next) = self.epochs.get_mut(at) {
            next.take_in_front(aborted);
        } else {
            // What was folded before came from newer epochs, or is open itself: in front of it.
            aborted.segments.append(&mut self.folded);
            self.folded = aborted.segments;
            self.open_tally += aborted.tally;
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
        if place.segment == self.open_segment {
            return match self.open_items.get(place.index as usize) {
                Some(_) if !self.open_gone.get(place.index) => Standing::Open,
                Some(_) | None => Standing::Gone,
            };
        }
        if let Some(segment) = self
            .folded
            .iter()
            .find(|segment| segment.id() == place.segment)
        {
            return if segment.holds(place.index) {
                Standing::Open
            } else {
                Standing::Gone
            };
        }
        self.entry_of(place.segment)
            .and_then(|at| self.epochs.get(at))
            .filter(|entry| entry.holds(place))
            .map_or(Standing::Gone, EpochEntry::standing)
    }

    /// The item at `place`, while it has no verdict.
    #[must_use]
    pub fn get(&self, place: Place) -> Option<&T> {
        if place.segment == self.open_segment {
            return self
                .open_items
                .get(place.index as usize)
                .filter(|_| !self.open_gone.get(place.index));
        }
        let in_epochs = || {
            self.epochs
                .get(self.entry_of(place.segment)?)?
                .segment(place.segment)
        };
        self.folded
            .iter()
            .find(|segment| segment.id() == place.segment)
            .or_else(in_epochs)?
            .get(place.index)
    }

    /// The next commit whose items all have a verdict, with what became of them.
    pub fn poll_committed(&mut self) -> Option<(CommitId, Committed)> {
        let first = self
            .epochs
            .iter()
            .find(|entry| !matches!(entry.stage, Stage::Sealed));
        let blocked_from = first.map(|entry| entry.epoch);
        let at = self
            .waiting
            .iter()
            .position(|commit| blocked_from.is_none_or(|blocked| commit.upto < blocked))?;
        let commit = self.waiting.remove(at)?;
        Some((commit.id, commit.tally))
    }

    /// What the state of an epoch names: everything sealed, and everything committed that has no
    /// verdict. Take it right after [`seal`](Self::seal).
    #[must_use]
    pub fn view(&self) -> View<T> {
        let segments = self
            .epochs
            .iter()
            .flat_map(|entry| &entry.segments)
            .map(Segment::view)
            .collect();
        View { segments }
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
            .any(|entry| entry.epoch == epoch && matches!(entry.stage, Stage::Sealed))
    }

    /// Items of the open epoch without a verdict.
    #[must_use]
    pub fn open_len(&self) -> usize {
        self.open_left + self.folded.iter().map(Segment::left).sum::<usize>()
    }

    /// Items of sealed, uncommitted epochs without a verdict.
    #[must_use]
    pub fn sealed_len(&self) -> usize {
        self.left_in(|stage| matches!(stage, Stage::Sealed))
    }

    /// Items of committed epochs without a verdict.
    #[must_use]
    pub fn settling_len(&self) -> usize {
        self.left_in(|stage| matches!(stage, Stage::Settling(_)))
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
        let mut sealed_seen = false;
        let mut last_segment = None;
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
                        entry.left() > 0,
                        "an epoch whose items all have a verdict is retired"
                    );
                    assert!(
                        self.waiting.iter().any(|commit| commit.id == id),
                        "whoever released an epoch still waits for it"
                    );
                }
            }
            for segment in &entry.segments {
                assert!(last_segment < Some(segment.id()), "segments ascend");
                last_segment = Some(segment.id());
                segment.check_invariants();
            }
        }
        for segment in &self.folded {
            assert!(
                last_segment < Some(segment.id()),
                "folded segments come after sealed ones"
            );
            last_segment = Some(segment.id());
            segment.check_invariants();
        }
        assert!(
            last_segment < Some(self.open_segment),
            "the open segment is the newest"
        );
        let open = self.open_items.len();
        assert_eq!(
            self.open_left,
            open - self.open_gone.count(),
            "open items are counted"
        );
        assert!(
            last_epoch.is_none() || last_epoch <= self.newest,
            "the newest epoch is remembered"
        );
    }

    fn left_in(&self, stage: impl Fn(&Stage) -> bool) -> usize {
        self.epochs
            .iter()
            .filter(|entry| stage(&entry.stage))
            .map(EpochEntry::left)
            .sum()
    }

    /// The entry that holds a segment: segments ascend over the entries.
    fn entry_of(&self, segment: u64) -> Option<usize> {
        self.epochs
            .iter()
            .position(|entry| entry.segment(segment).is_some())
    }

    fn remove(&mut self, place: Place, outcome: Option<Outcome>) -> Standing {
        let (standing, tally, drained) = if place.segment == self.open_segment {
            if place.index as usize >= self.open_items.len() || !self.open_gone.set(place.index) {
                return Standing::Gone;
            }
            self.open_left -= 1;
            (Standing::Open, &mut self.open_tally, false)
        } else if let Some(at) = self
            .folded
            .iter()
            .position(|segment| segment.id() == place.segment)
        {
            if !self.folded[at].remove(place.index) {
                return Standing::Gone;
            }
            if self.folded[at].left() == 0 {
                self.folded.remove(at);
            }
            (Standing::Open, &mut self.open_tally, false)
        } else {
            let Some(at) = self.entry_of(place.segment) else {
                return Standing::Gone;
            };
            let entry = &mut self.epochs[at];
            if !entry.remove(place) {
                return Standing::Gone;
            }
            let drained = matches!(entry.stage, Stage::Settling(_)) && entry.left() == 0;
            (entry.standing(), &mut entry.tally, drained)
        };
        match outcome {
            Some(Outcome::Settled) => tally.settled += 1,
            Some(Outcome::Lapsed) => tally.lapsed += 1,
            Some(Outcome::Retained) => tally.retained += 1,
            None => {}
        }
        if drained {
            self.retire();
        }
        standing
    }

    /// Drops committed epochs whose items all have a verdict, and credits whoever released them.
    fn retire(&mut self) {
        let waiting = &mut self.waiting;
        self.epochs.retain(|entry| match entry.stage {
            Stage::Settling(id) if entry.left() == 0 => {
                if let Some(commit) = waiting.iter_mut().find(|commit| commit.id == id) {
                    commit.tally += entry.tally;
                }
                false
            }
            Stage::Settling(_) | Stage::Sealed => true,
        });
    }

    /// Starts a new open segment; the items of the old one that have no verdict stay open.
    fn close_open_segment(&mut self) {
        let items = std::mem::take(&mut self.open_items);
        let gone = std::mem::take(&mut self.open_gone);
        let left = std::mem::take(&mut self.open_left);
        if left > 0 {
            self.folded
                .push(Segment::new(self.open_segment, items, gone, left));
        }
        self.open_segment += 1;
    }

    fn fold_idle(&mut self) {
        if self.epochs.len() <= MAX_IDLE_SEALED {
            return;
        }
        let idle = self
            .epochs
            .iter()
            .position(|entry| matches!(entry.stage, Stage::Sealed) && entry.left() == 0);
        // The newest stays: the host is about to commit it.
        if let Some(at) = idle
            && at + 1 < self.epochs.len()
            && let Some(entry) = self.epochs.remove(at)
        {
            self.epochs[at].take_in_front(entry);
        }
    }
}
