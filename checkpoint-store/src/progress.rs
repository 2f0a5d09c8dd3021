//! How far the newest epoch is known to have come.

use std::fmt;

/// How far the newest saved epoch is known to have come, by the marks written for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Progress {
    /// Durable, without a mark. For a host that always writes the `committing` mark first, no
    /// commit of it was ever attempted.
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
