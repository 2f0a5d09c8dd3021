//! Where an item is, and what became of it.

use std::fmt;

use crate::{Committed, Epoch};

/// The bits that tell the items of one segment apart.
const INDEX_BITS: u32 = 16;

/// Where an item stands in the ledger, until it has a verdict.
///
/// Places are never reused, and stay valid through sealing, folding and committing. A place takes
/// 8 bytes, since a connector keeps one for every item it holds; the 48 bits left for segments
/// last longer than any run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(u64);

impl Place {
    /// The most items of one segment.
    pub(super) const MAX_SEGMENT: usize = 1 << INDEX_BITS;

    pub(super) const fn new(segment: u64, index: u16) -> Self {
        Self(segment << INDEX_BITS | index as u64)
    }

    /// The segment the item was added to. Segments are numbered in the order in which they were
    /// opened.
    #[must_use]
    pub const fn segment(self) -> u64 {
        self.0 >> INDEX_BITS
    }

    /// The place of the item that was added so many later to the same segment, if there is one.
    #[must_use]
    pub const fn after(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }

    /// How many items were added to the segment before.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({}.{})", self.segment(), self.index())
    }
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

impl Outcome {
    pub(super) fn count_in(self, tally: &mut Committed, items: usize) {
        match self {
            Self::Settled => tally.settled += items,
            Self::Lapsed => tally.lapsed += items,
            Self::Retained => tally.retained += items,
        }
    }
}
