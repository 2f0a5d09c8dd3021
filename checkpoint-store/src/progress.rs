//! How far the newest epoch is known to have come.

use std::fmt;

/// How far the newest saved epoch is known to have come, by the marks written for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Progress {
    /// Durable, without a mark. No commit was called since its snapshot, if the host writes the
    /// `committing` mark of the newest saved epoch before every commit, and calls no commit from
    /// the moment of a snapshot until the save of its state, or of a later one, has answered `Ok`.
    /// A host whose checkpoints overlap learns nothing from this: see
    /// [`Restored::committing`](connector_core::Restored::committing).
    Saved,
    /// A commit was about to begin: the epoch may have been sent in part.
    Committing,
    /// Every commit receipt of the epoch has resolved.
    Settled,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Saved => "saved",
            Self::Committing => "committing",
            Self::Settled => "settled",
        })
    }
}
