//! The clauses of the checkpoint contract.

use std::fmt;

/// A clause of the checkpoint contract, as numbered in `docs/checkpoint-contract.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Clause {
    /// The cut is made at the call.
    C1,
    /// Epochs strictly increase.
    C2,
    /// What a snapshot receipt promises.
    C3,
    /// A commit sweeps.
    C4,
    /// Nothing gets out before its commit.
    C5,
    /// The work belongs to the call.
    C6,
    /// An abort folds forward.
    C7,
    /// The state is cumulative.
    C8,
    /// What a restore does.
    C9,
    /// What closing does.
    C10,
    /// A failed commit receipt takes nothing back.
    C11,
    /// A terminal error is the last word.
    C12,
    /// A checkpoint has one owner.
    C13,
}

impl Clause {
    /// Every clause, in order.
    pub const ALL: [Self; 13] = [
        Self::C1,
        Self::C2,
        Self::C3,
        Self::C4,
        Self::C5,
        Self::C6,
        Self::C7,
        Self::C8,
        Self::C9,
        Self::C10,
        Self::C11,
        Self::C12,
        Self::C13,
    ];

    /// The clause's number, from 1 to 13.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::C1 => 1,
            Self::C2 => 2,
            Self::C3 => 3,
            Self::C4 => 4,
            Self::C5 => 5,
            Self::C6 => 6,
            Self::C7 => 7,
            Self::C8 => 8,
            Self::C9 => 9,
            Self::C10 => 10,
            Self::C11 => 11,
            Self::C12 => 12,
            Self::C13 => 13,
        }
    }

    /// The clause's title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::C1 => "the cut is made at the call",
            Self::C2 => "epochs strictly increase",
            Self::C3 => "a snapshot receipt that is Ok covers everything before its cut",
            Self::C4 => "a commit sweeps every sealed epoch up to it",
            Self::C5 => "nothing gets out before its commit",
            Self::C6 => "the work belongs to the call, not to the receipt",
            Self::C7 => "an abort folds the epoch into the next",
            Self::C8 => "the state names everything sealed or committed without a verdict",
            Self::C9 => "a restore commits what the state names",
            Self::C10 => "close finishes what was committed and releases the rest",
            Self::C11 => "a failed commit receipt takes nothing back",
            Self::C12 => "a terminal error is the last word",
            Self::C13 => "a connector that is dropped without a commit settles nothing",
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C{}", self.number())
    }
}
