//! The time in which one owner holds the store: what it may write, and how it notices the end.

use std::io;

use bytes::Bytes;
use connector_core::{Cause, Epoch, Restored};

use super::{
    disk::{Disk, FileHandle, OpenFile},
    lineage::{self, Lineage, owner_record},
    listing::Listing,
    name::Name,
    record::{CheckpointHeader, MarkRecord, Newest, OwnerRecord},
};
use crate::{Owner, Progress, StoreError};

/// One owner's hold on a directory.
///
/// # Why a write looks at the owner's record twice
///
/// No lock is held during a write: a stopped process keeps its locks, and its successor would have
/// to wait for it. Instead the two sides do two things in opposite order. A successor publishes its
/// record, *then* reads the states. A writer publishes its state, *then* reads the records. So
/// either the writer sees the successor and reports a failure, or the successor sees the state.
/// Both may happen: then the state counts although the writer does not know it, which is what a
/// write that failed may always mean. The look before the write only saves a useless one.
#[derive(Debug)]
pub(crate) struct Tenure {
    disk: Box<dyn Disk>,
    owner: OwnerRecord,
    /// The owner's record and the earlier file of the same name, both locked: whoever opened either
    /// of them finds the store in use.
    locks: [FileHandle; 2],
    newest: Option<Newest>,
    history: usize,
}

impl Tenure {
    pub(super) fn new(
        disk: Box<dyn Disk>,
        owner: OwnerRecord,
        locks: [FileHandle; 2],
        newest: Option<Newest>,
        history: usize,
    ) -> Self {
        Self {
            disk,
            owner,
            locks,
            newest,
            history,
        }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.owner.generation
    }

    /// Lets the next owner in, without waiting for the last handle of this one to go.
    pub(crate) fn release(&self) {
        for lock in &self.locks {
            if let Err(error) = lock.unlock() {
                tracing::warn!(store = %self.place(), %error, "the store could not be unlocked and is released with its process");
            }
        }
    }

    /// Makes a state durable.
    pub(crate) fn save(&mut self, epoch: Epoch, state: &Bytes) -> Result<(), StoreError> {
        let not_saved = |place: String, error| StoreError::NotSaved {
            epoch,
            place,
            cause: Cause::new(error),
        };
        self.still_owner(not_saved)?;
        if let Some(newest) = self.newest
            && epoch <= newest.epoch
        {
            return Err(StoreError::OutOfOrder {
                epoch,
                newest: newest.epoch,
            });
        }
        let generation = self.owner.generation;
        let header = CheckpointHeader {
            store: self.owner.store,
            generation,
            epoch,
        };
        let (head, digest) = header.encode(state);
        let name = Name::Checkpoint { generation, epoch };
        let written = self.write(name, &[&head, state, &digest]);
        // Asked also after a failure: a successor removes the temporary files of its predecessors,
        // and "taken over" is then the answer that helps.
        self.still_owner(not_saved)?;
        written.map_err(|error| not_saved(self.place(), error))?;
        self.newest = Some(Newest {
            generation,
            epoch,
            progress: Progress::Saved,
        });
        self.prune(generation, epoch);
        Ok(())
    }

    /// Notes how far an epoch has come.
    pub(crate) fn mark(&mut self, epoch: Epoch, progress: Progress) -> Result<(), StoreError> {
        let not_marked = |place: String, error| StoreError::NotMarked {
            epoch,
            mark: progress,
            place,
            cause: Cause::new(error),
        };
        self.still_owner(not_marked)?;
        let Some(newest) = self.newest.filter(|newest| epoch <= newest.epoch) else {
            return Err(StoreError::NeverSaved {
                epoch,
                newest: self.newest.map(|newest| newest.epoch),
            });
        };
        if epoch < newest.epoch || progress <= newest.progress {
            return Ok(());
        }
        let generation = self.owner.generation;
        let record = MarkRecord {
            store: self.owner.store,
            generation,
            epoch,
            progress,
        };
        let written = self.write(Name::Mark { generation }, &[&record.encode()]);
        self.still_owner(not_marked)?;
        written.map_err(|error| not_marked(self.place(), error))?;
        self.newest = Some(Newest { progress, ..newest });
        Ok(())
    }

    /// Reads the newest state back.
    ///
    /// A save that failed may turn out to have become durable. From here on it counts as saved,
    /// because the host may build on it.
    pub(crate) fn newest(&mut self) -> Result<Option<Restored<Bytes>>, StoreError> {
        let unreadable = |place: String, error| StoreError::Unreadable {
            place,
            cause: Cause::new(error),
        };
        self.still_owner(unreadable)?;
        // A save that failed may have left a name that is not durable yet. What is restored is
        // committed, so it must not be able to vanish afterwards.
        let listing = self
            .disk
            .sync()
            .and_then(|()| Listing::of(&*self.disk))
            .map_err(|error| unreadable(self.place(), error))?;
        let lineage = Lineage::follow(&*self.disk, &listing)?;
        let found = lineage.newest;
        let restored = match self.newest {
            // Somebody removed what this owner knows to be durable.
            Some(known) if found.is_none_or(|found| found.epoch < known.epoch) => {
                let store = Some(self.owner.store);
                let (_, state) =
                    lineage::load(&*self.disk, known, store, "its running owner".to_owned())?;
                Some((known, state))
            }
            Some(_) | None => lineage.load(&*self.disk)?.1,
        };
        self.still_owner(unreadable)?;
        self.newest = restored.as_ref().map(|(newest, _)| *newest);
        Ok(restored.map(|(newest, state)| {
            Restored::new(newest.epoch, state).settled(newest.progress == Progress::Settled)
        }))
    }

    /// How far the newest state has come.
    pub(crate) fn progress(&self) -> Result<Option<(Epoch, Progress)>, StoreError> {
        self.still_owner(|place, error| StoreError::Unreadable {
            place,
            cause: Cause::new(error),
        })?;
        Ok(self.newest.map(|newest| (newest.epoch, newest.progress)))
    }

    /// Fails when this is not the newest owner any more, or when that cannot be known.
    pub(super) fn still_owner(
        &self,
        unknown: impl Fn(String, io::Error) -> StoreError,
    ) -> Result<(), StoreError> {
        match self.rival() {
            Ok(None) => Ok(()),
            Ok(Some(rival)) => Err(rival),
            Err(error) => Err(unknown(self.place(), error)),
        }
    }

    /// Who replaced this owner, as the error to answer with.
    fn rival(&self) -> io::Result<Option<StoreError>> {
        let newest = Listing::of(&*self.disk)?.owners.last().copied();
        if newest != Some(self.owner.generation) {
            // Also when the record is gone, with the directory perhaps: nothing says any more that
            // this process owns the store.
            let successor = newest.and_then(|newest| owner_record(&*self.disk, newest).ok());
            return Ok(Some(StoreError::NotOwner {
                successor: successor.as_ref().map(describe),
            }));
        }
        let name = Name::Owner {
            generation: self.owner.generation,
        };
        let bytes = match self.disk.read(&name.to_string()) {
            Ok(bytes) => bytes,
            // Removed since the listing: a successor clears the records of its predecessors.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(StoreError::NotOwner { successor: None }));
            }
            Err(error) => return Err(error),
        };
        Ok(match OwnerRecord::decode(bytes.into()) {
            Ok(record) if record.token == self.owner.token => None,
            // The same generation in another life of the directory.
            Ok(record) => Some(StoreError::NotOwner {
                successor: Some(describe(&record)),
            }),
            Err(_) => Some(StoreError::NotOwner { successor: None }),
        })
    }

    /// Writes a file so that its name shows the old content or the new, whatever crashes.
    fn write(&self, name: Name, parts: &[&[u8]]) -> io::Result<()> {
        publish(&*self.disk, name, &self.owner, parts, |_| Ok(())).map(drop)
    }

    /// Removes the states beyond the history. They have no say, so a failure is only told.
    fn prune(&self, generation: u64, epoch: Epoch) {
        let surplus = match Listing::of(&*self.disk) {
            Ok(listing) => listing.surplus(generation, epoch, self.history),
            Err(error) => {
                tracing::warn!(store = %self.place(), %error, "older checkpoints could not be listed and stay");
                return;
            }
        };
        for name in surplus {
            discard(&*self.disk, &name.to_string());
        }
    }

    /// Removes what predecessors left: their records and marks, and files they never finished.
    pub(super) fn clear(&self, listing: &Listing) {
        let own = self.owner.generation;
        let owners = listing
            .owners
            .range(..own)
            .map(|&generation| Name::Owner { generation });
        let marks = listing
            .marks
            .range(..own)
            .map(|&generation| Name::Mark { generation });
        for name in owners.chain(marks) {
            discard(&*self.disk, &name.to_string());
        }
        for name in &listing.temporaries {
            discard(&*self.disk, name);
        }
    }

    fn place(&self) -> String {
        self.disk.path().display().to_string()
    }
}

/// Writes under a temporary name, makes the content durable, then gives it its name.
///
/// `prepare` is called with the file before it has its name.
pub(super) fn publish(
    disk: &dyn Disk,
    name: Name,
    owner: &OwnerRecord,
    parts: &[&[u8]],
    prepare: impl FnOnce(&dyn OpenFile) -> io::Result<()>,
) -> io::Result<FileHandle> {
    let temporary = name.temporary(&owner.token);
    let written = (|| {
        let file = match disk.create(&temporary, parts) {
            // Left by an earlier attempt of this owner, for nobody else has its token.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                disk.remove(&temporary)?;
                disk.create(&temporary, parts)
            }
            created => created,
        }?;
        disk.sync_file(&temporary, &*file)?;
        prepare(&*file)?;
        disk.rename(&temporary, &name.to_string())?;
        disk.sync()?;
        Ok(file)
    })();
    if written.is_err() {
        discard(disk, &temporary);
    }
    written
}

/// Removes a file that has no say any more.
pub(super) fn discard(disk: &dyn Disk, name: &str) {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(store = %disk.path().display(), name, %error, "a file that does not count any more could not be removed");
        }
        Ok(()) | Err(_) => {}
    }
}

/// An owner as others see it.
pub(super) fn describe(record: &OwnerRecord) -> Owner {
    Owner {
        generation: record.generation,
        pid: record.pid,
    }
}
