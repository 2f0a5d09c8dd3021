//! How a process becomes the owner of a directory.

use std::{fs::TryLockError, io};

use connector_core::Cause;
use uuid::Uuid;

use super::{
    disk::{Disk, FileHandle},
    lineage::{self, Lineage, owner_record},
    listing::Listing,
    name::Name,
    record::{Base, Newest, OwnerRecord},
    tenure::{Tenure, describe, discard, publish},
};
use crate::{Damage, Stake, StoreError};

/// Whether a living owner is respected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Refuse while the owner lives.
    Open,
    /// Replace the owner, living or not.
    TakeOver,
}

/// How often a claim is tried again because another process was faster. Each of them has become
/// the owner meanwhile, so more than a few in a row is a quarrel that no further try settles.
const ATTEMPTS: usize = 16;

/// Makes the caller the owner of a directory.
///
/// Nothing is changed unless the newest state can be read whole.
pub(crate) fn claim(disk: Box<dyn Disk>, mode: Mode, history: usize) -> Result<Tenure, StoreError> {
    let place = disk.path().display().to_string();
    let unusable = |error: io::Error| StoreError::Unreadable {
        place: place.clone(),
        cause: Cause::new(error),
    };
    let mut rival = None;
    for _ in 0..ATTEMPTS {
        let listing = Listing::of(&*disk).map_err(unusable)?;
        // Held until the claim is made, so that of two processes that find the owner gone one
        // goes on and the other is told so.
        let _predecessor = match (mode, listing.owners.last()) {
            (Mode::Open, Some(&generation)) => match lock(&*disk, generation)? {
                Some(lock) => Some(lock),
                None => continue,
            },
            (Mode::Open, None) | (Mode::TakeOver, _) => None,
        };
        let store = match Lineage::follow(&*disk, &listing).and_then(|found| found.load(&*disk)) {
            Ok((store, _)) => store,
            // A living owner may have replaced, and so removed, what was listed a moment ago.
            Err(error) => match Listing::of(&*disk) {
                Ok(now) if now != listing => continue,
                Ok(_) | Err(_) => return Err(error),
            },
        };
        let Some(generation) = listing.highest_generation().checked_add(1) else {
            return Err(exhausted(&*disk, &listing));
        };
        let owner = OwnerRecord {
            store,
            generation,
            token: Uuid::new_v4(),
            pid: std::process::id(),
            base: Base::Undecided,
        };
        match announce(&*disk, &owner).map_err(unusable)? {
            Some(lock) => return settle_in(disk, owner, lock, history),
            None => rival = owner_record(&*disk, generation).ok(),
        }
    }
    Err(StoreError::InUse {
        place,
        owner: rival.as_ref().map(describe),
    })
}

/// Locks the record of an owner that is gone. `None` when it was replaced meanwhile.
fn lock(disk: &dyn Disk, generation: u64) -> Result<Option<FileHandle>, StoreError> {
    let name = Name::Owner { generation }.to_string();
    let file = match disk.open(&name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(lineage::unreadable(disk, &name, error)),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse {
            place: disk.path().display().to_string(),
            owner: owner_record(disk, generation).ok().as_ref().map(describe),
        }),
        Err(TryLockError::Error(error)) => Err(lineage::unreadable(disk, &name, error)),
    }
}

/// Publishes a new owner's record, locked and whole, unless somebody else was faster.
fn announce(disk: &dyn Disk, owner: &OwnerRecord) -> io::Result<Option<FileHandle>> {
    let name = Name::Owner {
        generation: owner.generation,
    };
    let temporary = name.temporary(&owner.token);
    let announced = (|| {
        let file = disk.create(&temporary, &[&owner.encode()])?;
        disk.sync_file(&temporary, &*file)?;
        // Before it has its name: a record that can be seen is locked as long as its owner lives.
        file.try_lock()?;
        // A link and not a rename, because a rename would replace a rival's record.
        match disk.link(&temporary, &name.to_string()) {
            // Taken; or the temporary file is gone, because a process that became the owner
            // meanwhile has cleared it away.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                ) =>
            {
                return Ok(None);
            }
            linked => linked?,
        }
        Ok(Some(file))
    })();
    discard(disk, &temporary);
    announced
}

/// Finds where the new owner begins, writes it down, and clears away what no longer counts.
fn settle_in(
    disk: Box<dyn Disk>,
    owner: OwnerRecord,
    announced: FileHandle,
    history: usize,
) -> Result<Tenure, StoreError> {
    let unusable = |place: String, error: io::Error| StoreError::Unreadable {
        place,
        cause: Cause::new(error),
    };
    let (listing, newest, decided) = match begin(&*disk, owner, &unusable) {
        Ok(begun) => begun,
        // A successor clears away what this owner was reading or writing: that it came is then the
        // answer that helps.
        Err(error) => {
            return Err(match successor(&*disk, owner.generation) {
                Some(rival) => StoreError::NotOwner {
                    successor: Some(describe(&rival)),
                },
                None => error,
            });
        }
    };
    let tenure = Tenure::new(disk, owner, [announced, decided], newest, history);
    // Whoever claimed the store meanwhile may follow the older line: this owner must not begin.
    tenure.still_owner(unusable)?;
    tenure.clear(&listing);
    Ok(tenure)
}

/// The owner that replaced the one of `generation`, if there is one.
fn successor(disk: &dyn Disk, generation: u64) -> Option<OwnerRecord> {
    let highest = Listing::of(disk).ok()?.owners.last().copied()?;
    (highest > generation)
        .then(|| owner_record(disk, highest).ok())
        .flatten()
}

/// Reads the newest state again, now that the predecessor's writes fail, for it may have saved since
/// the first look, and writes down that the new owner's line begins there.
fn begin(
    disk: &dyn Disk,
    mut owner: OwnerRecord,
    unusable: &impl Fn(String, io::Error) -> StoreError,
) -> Result<(Listing, Option<Newest>, FileHandle), StoreError> {
    let place = disk.path().display().to_string();
    let listing = Listing::of(disk).map_err(|error| unusable(place.clone(), error))?;
    let lineage = Lineage::follow(disk, &listing)?;
    owner.base = Base::Decided(lineage.newest);
    let name = Name::Owner {
        generation: owner.generation,
    };
    let decided = publish(disk, name, &owner, &[&owner.encode()], |file| {
        Ok(file.try_lock()?)
    })
    .map_err(|error| unusable(place, error))?;
    Ok((listing, lineage.newest, decided))
}

/// The error of a directory in which a file names the highest possible generation.
fn exhausted(disk: &dyn Disk, listing: &Listing) -> StoreError {
    let generation = listing.highest_generation();
    let name = match listing.saved_by(generation) {
        Some(epoch) => Name::Checkpoint { generation, epoch },
        None if listing.owners.contains(&generation) => Name::Owner { generation },
        None => Name::Mark { generation },
    };
    StoreError::Damaged {
        place: lineage::place(disk, &name.to_string()),
        damage: Damage::Contradiction,
        stake: Stake::Unknown,
    }
}
