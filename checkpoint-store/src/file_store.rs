//! A store in a directory of a local file system.

mod claim;
mod disk;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod lineage;
mod listing;
mod name;
mod record;
mod tenure;

#[cfg(test)]
mod crash_images;
#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod scripted_disk;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use connector_core::{Cause, Epoch, Restored};
use tokio::{runtime::Handle, sync::Mutex};

pub(crate) use self::claim::{Mode, claim};
#[cfg(feature = "simulation")]
pub(crate) use self::disk::{Disk, FileHandle, OpenFile};
use self::{disk::LocalDisk, tenure::Tenure};
use crate::{CheckpointStore, Progress, StoreError};

/// A checkpoint store in a directory of a local file system.
///
/// # Durability
///
/// A state is written under a temporary name, synced, renamed, and its directory is synced: a crash
/// at any moment leaves the old state or the new one. Left-over temporary files are removed by the
/// next owner.
///
/// # Ownership
///
/// [`open`](Self::open) refuses while the owner's process lives, by a kernel lock that ends with the
/// process. [`take_over`](Self::take_over) does not wait for anybody: it replaces the owner, also
/// one that is stopped or hangs in the middle of a write, and whatever that one does when it wakes
/// answers [`StoreError::NotOwner`] and is not read. It is for whoever knows that the owner is to be
/// replaced, such as the orchestrator's successor of an instance that does not answer.
///
/// The directory belongs to one store. Files whose names do not begin like the store's own are left
/// alone. It needs a local file system with file locks, hard links and directories that can be
/// synced (any Unix file system; not SMB or FAT); a lock is seen by other machines only where the
/// file system says so.
///
/// # Executors
///
/// File work runs on tokio's blocking threads, so a slow disk does not hold up the executor's other
/// tasks. Calls of one store run one after the other.
///
/// # Cancel safety
///
/// The work belongs to the call. A call whose future is dropped before it was polled has done
/// nothing; after that it may happen or not, and is never half done: the next call waits for it.
/// So a host may put a time limit around a call. Dropping the store releases it once the work in
/// hand is done; [`close`](Self::close) waits for that.
pub struct FileStore {
    directory: PathBuf,
    generation: u64,
    tenure: Arc<Mutex<Tenure>>,
    threads: Threads,
}

/// Where file work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threads {
    /// On tokio's blocking threads.
    Blocking,
    /// In the call: a directory in memory waits for nothing, and no thread may take part in a
    /// simulation.
    #[cfg(feature = "simulation")]
    InLine,
}

/// How a [`FileStore`] is opened.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until the store is opened"]
pub struct FileStoreBuilder {
    directory: PathBuf,
    history: usize,
}

impl FileStoreBuilder {
    /// How many older states stay beside the newest, for people to look at.
    ///
    /// Default: 2, so that after an accident there is a state from before it, at three times the
    /// space. The store never goes back to one of them by itself: what was acknowledged since would
    /// not come again.
    pub fn history(mut self, states: usize) -> Self {
        self.history = states;
        self
    }

    /// Opens the directory as [`FileStore::open`] does.
    ///
    /// # Errors
    ///
    /// Those of [`FileStore::open`].
    ///
    /// # Cancel safety
    ///
    /// That of [`FileStore::open`].
    pub async fn open(self) -> Result<FileStore, StoreError> {
        self.claim(Mode::Open).await
    }

    /// Opens the directory as [`FileStore::take_over`] does.
    ///
    /// # Errors
    ///
    /// Those of [`FileStore::take_over`].
    ///
    /// # Cancel safety
    ///
    /// That of [`FileStore::take_over`].
    pub async fn take_over(self) -> Result<FileStore, StoreError> {
        self.claim(Mode::TakeOver).await
    }

    async fn claim(self, mode: Mode) -> Result<FileStore, StoreError> {
        let Self { directory, history } = self;
        let path = directory.clone();
        let tenure = on_blocking_thread(&directory, move || {
            let disk = LocalDisk::open(path.clone()).map_err(|error| StoreError::Unreadable {
                place: path.display().to_string(),
                cause: Cause::new(error),
            })?;
            claim(Box::new(disk), mode, history)
        })
        .await?;
        Ok(FileStore {
            directory,
            generation: tenure.generation(),
            tenure: Arc::new(Mutex::new(tenure)),
            threads: Threads::Blocking,
        })
    }
}

impl FileStore {
    #[cfg(feature = "simulation")]
    pub(crate) fn in_line(directory: PathBuf, tenure: Tenure) -> Self {
        Self {
            directory,
            generation: tenure.generation(),
            tenure: Arc::new(Mutex::new(tenure)),
            threads: Threads::InLine,
        }
    }

    /// Sets a store up in `directory`, which is made when it does not exist.
    pub fn builder(directory: impl Into<PathBuf>) -> FileStoreBuilder {
        FileStoreBuilder {
            directory: directory.into(),
            history: 2,
        }
    }

    /// Opens the store in `directory` and becomes its owner, unless it has a living one.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] with the owner's process id while it lives; [`StoreError::Damaged`],
    /// [`StoreError::Foreign`], [`StoreError::NewerVersion`] or [`StoreError::Missing`] when the
    /// newest state or the owner's record cannot be used; [`StoreError::Unreadable`] when the
    /// directory cannot. The previous owner then stays the owner. [`StoreError::NotOwner`] when
    /// somebody took the store over at the same moment.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the store claimed for a moment; it is released when the work
    /// in hand is done.
    pub async fn open(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::builder(directory).open().await
    }

    /// Opens the store in `directory` and becomes its owner in the place of a living one.
    ///
    /// The replaced owner finds out at its next call; its host then drops its connectors without
    /// committing.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); [`StoreError::InUse`] only when other processes took the
    /// store over again and again meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the previous owner replaced all the same.
    pub async fn take_over(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::builder(directory).take_over().await
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The number of this ownership, higher than that of every owner before.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The newest epoch, and how far it is known to have come.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOwner`] for an owner that was replaced, [`StoreError::Unreadable`] when the
    /// directory cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Only reads; dropping the future changes nothing.
    pub async fn progress(&self) -> Result<Option<(Epoch, Progress)>, StoreError> {
        self.with(|tenure| tenure.progress()).await
    }

    /// Waits for the work in hand and releases the store, so that it can be opened again at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the store as dropping it does.
    pub async fn close(self) {
        self.tenure.lock().await.release();
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tenure) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut tenure = Arc::clone(&self.tenure).lock_owned().await;
        match self.threads {
            Threads::Blocking => {
                on_blocking_thread(&self.directory, move || work(&mut tenure)).await
            }
            #[cfg(feature = "simulation")]
            Threads::InLine => work(&mut tenure),
        }
    }
}

async fn on_blocking_thread<T: Send + 'static>(
    directory: &Path,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let place = || directory.display().to_string();
    let runtime = Handle::try_current().map_err(|_| StoreError::NoRuntime { place: place() })?;
    match runtime.spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(StoreError::CutOff { place: place() }),
        },
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore")
            .field("directory", &self.directory)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl CheckpointStore for FileStore {
    async fn newest(&self) -> Result<Option<Restored<Bytes>>, StoreError> {
        self.with(Tenure::newest).await
    }

    async fn save(&mut self, epoch: Epoch, state: Bytes) -> Result<(), StoreError> {
        self.with(move |tenure| tenure.save(epoch, &state)).await
    }

    async fn settled(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        self.with(move |tenure| tenure.mark(epoch, Progress::Settled))
            .await
    }

    async fn committing(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        self.with(move |tenure| tenure.mark(epoch, Progress::Committing))
            .await
    }
}
