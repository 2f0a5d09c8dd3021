//! Why a store cannot do what it was asked.

use connector_core::{Cause, Epoch};

use crate::{Damage, Owner, Progress, Stake, owner::Described};

/// Why a checkpoint store cannot do what it was asked, and what became of the data.
///
/// Stores of other kinds than a directory use the same variants; `place` is then whatever names
/// their object.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else has taken the store over. Drop the connectors without committing.
    #[error(
        "this store was taken over by {}; nothing this process saves or marks counts any more, \
         drop its connectors without committing",
        Described(successor)
    )]
    NotOwner {
        /// The owner that replaced this one, where its record can be read.
        successor: Option<Owner>,
    },
    /// The store has a living owner. Nothing was changed.
    #[error(
        "the store {place} is in use by {}; nothing was changed, stop that process first, or take \
         the store over from it on purpose",
        Described(owner)
    )]
    InUse {
        /// The store.
        place: String,
        /// Its owner, where its record can be read.
        owner: Option<Owner>,
    },
    /// The epoch is not newer than the newest saved one. Nothing was written.
    #[error(
        "epoch {epoch} is not newer than epoch {newest}, which is saved already; nothing was \
         written, save under a higher number"
    )]
    OutOfOrder {
        /// The number that was refused.
        epoch: Epoch,
        /// The newest number saved.
        newest: Epoch,
    },
    /// A mark was asked for an epoch that was never saved here. Nothing was written.
    #[error(
        "epoch {epoch} was never saved here; nothing was marked, an epoch is committed and marked \
         only after its state was saved"
    )]
    NeverSaved {
        /// The number that was refused.
        epoch: Epoch,
        /// The newest number saved, if any.
        newest: Option<Epoch>,
    },
    /// The write of a state failed. It may or may not be durable.
    #[error(
        "epoch {epoch} could not be saved at {place} and may or may not be durable; what was saved \
         before was not touched, save the same state again, or abort the epoch and go on under a higher \
         number, or rebuild from the newest state"
    )]
    NotSaved {
        /// The epoch that was to be saved.
        epoch: Epoch,
        /// The store.
        place: String,
        /// What went wrong.
        #[source]
        cause: Cause,
    },
    /// The write of a mark failed. The saved state was not touched.
    #[error(
        "the mark {mark:?} of epoch {epoch} could not be written at {place}; the saved state was \
         not touched, without a settled mark work is repeated after a crash, and a host that relies \
         on the committing mark must not commit before it is written"
    )]
    NotMarked {
        /// The epoch that was to be marked.
        epoch: Epoch,
        /// The mark.
        mark: Progress,
        /// The store.
        place: String,
        /// What went wrong.
        #[source]
        cause: Cause,
    },
    /// The place could not be read, or not be opened for writing. Nothing was restored.
    #[error(
        "the store {place} cannot be used; nothing was restored or changed, check that it is a \
         directory that this process may read and write"
    )]
    Unreadable {
        /// The directory or the file.
        place: String,
        /// What went wrong.
        #[source]
        cause: Cause,
    },
    /// A file that counts is damaged. It was left in place.
    #[error(
        "{place} is damaged: {damage}; it was left in place and no older state was used. \
         Restore the file from a copy if there is one; {stake}"
    )]
    Damaged {
        /// The file.
        place: String,
        /// What is wrong with it.
        damage: Damage,
        /// What deleting it would give up.
        stake: Stake,
    },
    /// A file in the place of one that counts was written by something else. It was left in place.
    #[error(
        "{place} was not written by this store; it was left in place and no older state was used. \
         Check that the directory is the right one; {stake}"
    )]
    Foreign {
        /// The file.
        place: String,
        /// What deleting it would give up.
        stake: Stake,
    },
    /// A file that counts has a format this build does not read. It was left in place.
    #[error(
        "{place} has format version {found}, this build reads up to {newest}; it was left in place \
         and no older state was used. Use the build that wrote it or a newer one; {stake}"
    )]
    NewerVersion {
        /// The file.
        place: String,
        /// The version it names.
        found: u16,
        /// The newest version this build reads.
        newest: u16,
        /// What deleting it would give up.
        stake: Stake,
    },
    /// The newest state was durable and its file is gone. No older state was used.
    #[error(
        "{place}, the state of epoch {epoch}, is gone although {witness} names it; no older state \
         was used. Put the file back; whoever removes {witness} as well gives up what the epoch \
         covered and goes on from the state before it, if one is left"
    )]
    Missing {
        /// The epoch that was durable.
        epoch: Epoch,
        /// The file that is gone.
        place: String,
        /// What says that it was there.
        witness: String,
    },
    /// The file work was cut off because the runtime shut down. It may or may not have happened.
    #[error(
        "the work on {place} was cut off with its runtime and may or may not have happened; open \
         the store again and go on from its newest state"
    )]
    CutOff {
        /// The store.
        place: String,
    },
    /// There is no tokio runtime to do the file work. Nothing was done.
    #[error("the store {place} was used outside a tokio runtime; nothing was read or written")]
    NoRuntime {
        /// The store.
        place: String,
    },
}

impl StoreError {
    /// Whether the host has lost the store and must drop its connectors without committing.
    #[must_use]
    pub fn is_not_owner(&self) -> bool {
        matches!(self, Self::NotOwner { .. })
    }
}
