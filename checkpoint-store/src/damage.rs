//! What is wrong with a file, and what is at stake when it goes.

use std::fmt;

use connector_core::Epoch;

/// What is wrong with a damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The file ends early.
    Truncated {
        /// The bytes that a whole file would have, as far as that can still be told.
        expected: u64,
        /// The bytes that are there.
        found: u64,
    },
    /// Bytes follow where the file should end.
    Trailing {
        /// How many.
        surplus: u64,
    },
    /// The bytes are not those that were written: the checksum differs.
    Checksum,
    /// The checksum is right, but the content contradicts the file's name or the format.
    Contradiction,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { expected, found } => {
                write!(f, "it ends after {found} of {expected} bytes")
            }
            Self::Trailing { surplus } => write!(f, "{surplus} bytes follow its end"),
            Self::Checksum => f.write_str("its checksum differs"),
            Self::Contradiction => f.write_str("its content contradicts its name"),
        }
    }
}

/// What deleting an unusable file by hand would give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stake {
    /// The file holds the newest state.
    State {
        /// The epoch it was saved under.
        epoch: Epoch,
    },
    /// The file says who owns the store and where its lineage begins.
    Ownership,
    /// The file says how far the newest epoch has come.
    Mark,
    /// The file's name belongs to the store, but not to any file this version writes.
    Unknown,
}

impl fmt::Display for Stake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State { epoch } => write!(
                f,
                "deleting it gives up epoch {epoch} for an older state or none: what the epoch \
                 staged and had not sent is lost, messages it acknowledged do not come again, and \
                 those it only remembers as seen may be processed twice"
            ),
            Self::Ownership => f.write_str(
                "deleting it gives up the record of who owns the store: make sure first that no \
                 process that used the store still runs; the state with the highest generation \
                 and epoch then counts, even one written by an owner that had been replaced",
            ),
            Self::Mark => f.write_str(
                "deleting it repeats work: what the newest epoch staged is sent again, and a host \
                 that tells attempted epochs from others takes it for one never attempted",
            ),
            Self::Unknown => f.write_str(
                "deleting it loses whatever the program that wrote it kept there; if it is not \
                 yours, move it elsewhere",
            ),
        }
    }
}
