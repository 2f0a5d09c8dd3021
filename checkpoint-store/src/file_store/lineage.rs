//! Which state counts: the line of owners that leads to the newest one.
//!
//! Each owner saves under its own generation, and its record says where it began. A state counts
//! when the newest owner saved it, or began from it. So a state that a replaced owner writes late
//! lies in the directory and is never read.

use std::io;

use bytes::Bytes;
use connector_core::Cause;
use uuid::Uuid;

use super::{
    disk::Disk,
    frame::{self, Unreadable},
    listing::Listing,
    name::Name,
    record::{Base, CheckpointHeader, MarkRecord, Newest, OwnerRecord},
};
use crate::{Damage, Progress, Stake, StoreError};

/// The newest state that counts, and what says so.
#[derive(Debug)]
pub(crate) struct Lineage {
    pub(crate) newest: Option<Newest>,
    /// The id of the store, where an owner's record names it.
    store: Option<Uuid>,
    /// The generation of the newest owner that had decided where it begins.
    owner: Option<u64>,
}

impl Lineage {
    /// Follows the line of owners in a listing.
    pub(crate) fn follow(disk: &dyn Disk, listing: &Listing) -> Result<Self, StoreError> {
        if let Some(name) = listing.foreign.first() {
            let stake = Stake::Unknown;
            let place = place(disk, name);
            return Err(StoreError::Foreign { place, stake });
        }
        let mut store = None;
        for &generation in listing.owners.iter().rev() {
            let record = owner_record(disk, generation)?;
            store = store.or(Some(record.store));
            match record.base {
                // Died, or still is, between claiming the store and looking at it: it has saved
                // nothing, so its predecessor's line is the one to follow.
                Base::Undecided => {}
                Base::Decided(base) => {
                    let own = listing.saved_by(generation).map(|epoch| Newest {
                        generation,
                        epoch,
                        progress: Progress::Saved,
                    });
                    let mark = mark_record(disk, listing, generation)?;
                    return Ok(Self {
                        newest: marked(disk, own.or(base), mark)?,
                        store,
                        owner: Some(generation),
                    });
                }
            }
        }
        // No record, because there never was an owner or somebody deleted it: the names decide.
        let newest = listing
            .checkpoints
            .last()
            .map(|&(generation, epoch)| Newest {
                generation,
                epoch,
                progress: Progress::Saved,
            });
        let mark = match listing.marks.last() {
            Some(&generation) => mark_record(disk, listing, generation)?,
            None => None,
        };
        Ok(Self {
            newest: marked(disk, newest, mark)?,
            store,
            owner: None,
        })
    }

    /// Reads the newest state whole. Answers the store's id as well: a fresh one when the
    /// directory names none.
    pub(crate) fn load(
        &self,
        disk: &dyn Disk,
    ) -> Result<(Uuid, Option<(Newest, Bytes)>), StoreError> {
        let Some(newest) = self.newest else {
            return Ok((self.store.unwrap_or_else(Uuid::new_v4), None));
        };
        let witness = match self.owner {
            Some(generation) => place(disk, &Name::Owner { generation }.to_string()),
            None => "the listing".to_owned(),
        };
        let (store, state) = load(disk, newest, self.store, witness)?;
        Ok((store, Some((newest, state))))
    }
}

/// Reads one state and holds it to its name and its store.
pub(crate) fn load(
    disk: &dyn Disk,
    newest: Newest,
    store: Option<Uuid>,
    witness: String,
) -> Result<(Uuid, Bytes), StoreError> {
    let Newest {
        generation, epoch, ..
    } = newest;
    let stake = Stake::State { epoch };
    let name = Name::Checkpoint { generation, epoch }.to_string();
    let bytes = match disk.read(&name) {
        Ok(bytes) => Bytes::from(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(StoreError::Missing {
                epoch,
                place: place(disk, &name),
                witness,
            });
        }
        Err(error) => return Err(unreadable(disk, &name, error)),
    };
    let (header, state) =
        CheckpointHeader::decode(bytes).map_err(|why| unusable(disk, &name, why, stake))?;
    if store.is_some_and(|store| store != header.store) {
        return Err(unusable(disk, &name, Unreadable::Foreign, stake));
    }
    if (header.generation, header.epoch) != (generation, epoch) {
        let why = Unreadable::Damaged(Damage::Contradiction);
        return Err(unusable(disk, &name, why, stake));
    }
    Ok((header.store, state))
}

/// Reads the record of the owner of a generation.
pub(crate) fn owner_record(disk: &dyn Disk, generation: u64) -> Result<OwnerRecord, StoreError> {
    let name = Name::Owner { generation }.to_string();
    let bytes = disk
        .read(&name)
        .map_err(|error| unreadable(disk, &name, error))?;
    let record = OwnerRecord::decode(bytes.into())
        .map_err(|why| unusable(disk, &name, why, Stake::Ownership))?;
    if record.generation != generation {
        let why = Unreadable::Damaged(Damage::Contradiction);
        return Err(unusable(disk, &name, why, Stake::Ownership));
    }
    Ok(record)
}

/// What an owner's mark says: `Err(Damage)` in the inner result when it cannot be read.
type Mark = Option<Result<MarkRecord, Damage>>;

fn mark_record(disk: &dyn Disk, listing: &Listing, generation: u64) -> Result<Mark, StoreError> {
    if !listing.marks.contains(&generation) {
        return Ok(None);
    }
    let name = Name::Mark { generation }.to_string();
    let bytes = disk
        .read(&name)
        .map_err(|error| unreadable(disk, &name, error))?;
    match MarkRecord::decode(bytes.into()) {
        Ok(record) if record.generation == generation => Ok(Some(Ok(record))),
        Ok(_) => Ok(Some(Err(Damage::Contradiction))),
        Err(Unreadable::Damaged(damage)) => Ok(Some(Err(damage))),
        Err(why @ (Unreadable::Foreign | Unreadable::Newer { .. })) => {
            Err(unusable(disk, &name, why, Stake::Mark))
        }
    }
}

/// Applies a mark to the newest state.
fn marked(
    disk: &dyn Disk,
    newest: Option<Newest>,
    mark: Mark,
) -> Result<Option<Newest>, StoreError> {
    let mark = match mark {
        None => return Ok(newest),
        Some(Ok(mark)) => mark,
        Some(Err(damage)) => {
            // A damaged mark costs no data, so it does not stop the host. That it was there at all
            // says that a commit was near: "attempted, not known to be finished" is the reading
            // that never skips work.
            tracing::warn!(store = %disk.path().display(), %damage, "the mark of the newest checkpoint is damaged; its epoch counts as attempted and unfinished");
            return Ok(newest.map(|newest| Newest {
                progress: newest.progress.max(Progress::Committing),
                ..newest
            }));
        }
    };
    match newest {
        Some(newest) if newest.epoch == mark.epoch => Ok(Some(Newest {
            progress: newest.progress.max(mark.progress),
            ..newest
        })),
        // A later state is cumulative: the mark has done its work.
        Some(newest) if newest.epoch > mark.epoch => Ok(Some(newest)),
        Some(_) | None => {
            let generation = mark.generation;
            let witness = Name::Mark { generation }.to_string();
            Err(StoreError::Missing {
                epoch: mark.epoch,
                place: format!("a checkpoint file in {}", disk.path().display()),
                witness: place(disk, &witness),
            })
        }
    }
}

/// A file's full path, for an error text.
pub(crate) fn place(disk: &dyn Disk, name: &str) -> String {
    disk.path().join(name).display().to_string()
}

/// The error of a file that cannot be read at all.
pub(crate) fn unreadable(disk: &dyn Disk, name: &str, error: io::Error) -> StoreError {
    StoreError::Unreadable {
        place: place(disk, name),
        cause: Cause::new(error),
    }
}

fn unusable(disk: &dyn Disk, name: &str, why: Unreadable, stake: Stake) -> StoreError {
    let place = place(disk, name);
    match why {
        Unreadable::Damaged(damage) => StoreError::Damaged {
            place,
            damage,
            stake,
        },
        Unreadable::Foreign => StoreError::Foreign { place, stake },
        Unreadable::Newer { version } => StoreError::NewerVersion {
            place,
            found: version,
            newest: frame::VERSION,
            stake,
        },
    }
}
