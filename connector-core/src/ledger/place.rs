//! Where an item is, and what became of it.

use crate::{Committed, Epoch};

/// Where an item stands in the ledger, until it has a verdict.
///
/// Places are never reused, and stay valid through sealing, folding and committing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub(super) segment: u64,
    pub(super) index: u32,
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
    pub(super) fn count_in(self, tally: &mut Committed) {
        match self {
            Self::Settled => tally.settled += 1,
            Self::Lapsed => tally.lapsed += 1,
            Self::Retained => tally.retained += 1,
        }
    }
}
