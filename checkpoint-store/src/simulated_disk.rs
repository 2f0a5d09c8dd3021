//! A directory in memory that fails and crashes as it is told.

mod fault;
mod files;
mod process;

pub use fault::DiskFault;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::{files::Files, process::Process};
use crate::{
    FileStore, StoreError,
    file_store::{Mode, claim},
};

/// A directory in memory, for simulations of hosts: [`FileStore`]s in it write the same files by the
/// same steps as on a real disk, and the test says what becomes of them.
///
/// What a store does is done when its call returns: no thread takes part, so a run is a function of
/// what the test does. The directory outlives the stores in it as a disk outlives processes, and
/// clones are the same directory.
///
/// ```
/// use bytes::Bytes;
/// use checkpoint_store::{CheckpointStore, DiskFault, SimulatedDisk};
/// use connector_core::Epoch;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let disk = SimulatedDisk::new();
/// let mut store = disk.open()?;
/// store.save(Epoch::new(1), Bytes::from("one")).await?;
///
/// // The disk is full, and then the machine loses its power. Nothing that was not synced stays.
/// disk.fail_after(0, DiskFault::Full);
/// assert!(store.save(Epoch::new(2), Bytes::from("two")).await.is_err());
/// disk.lose_power(|_| 0);
///
/// // Whoever starts it again has made room.
/// assert!(disk.heal());
/// let successor = disk.open()?;
/// assert_eq!(successor.newest().await?.expect("saved").epoch, Epoch::new(1));
/// # Ok::<(), checkpoint_store::StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct SimulatedDisk {
    files: Arc<Mutex<Files>>,
}

impl SimulatedDisk {
    /// Makes an empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the store as [`FileStore::open`] does.
    ///
    /// # Errors
    ///
    /// Those of [`FileStore::open`].
    pub fn open(&self) -> Result<FileStore, StoreError> {
        self.claim(Mode::Open)
    }

    /// Opens the store as [`FileStore::take_over`] does.
    ///
    /// # Errors
    ///
    /// Those of [`FileStore::take_over`].
    pub fn take_over(&self) -> Result<FileStore, StoreError> {
        self.claim(Mode::TakeOver)
    }

    fn claim(&self, mode: Mode) -> Result<FileStore, StoreError> {
        let life = self.lock().life;
        let process = Process::new(Arc::clone(&self.files), life);
        let tenure = claim(Box::new(process), mode, 1)?;
        Ok(FileStore::in_line("simulated".into(), tenure))
    }

    /// Has a step go wrong: the one after `steps` more. Replaces what was to go wrong before.
    ///
    /// A step is what a system call would be: a read counts as well as a write.
    pub fn fail_after(&self, steps: usize, fault: DiskFault) {
        let mut files = self.lock();
        files.fault = Some((files.steps + steps, fault));
    }

    /// From now on nothing goes wrong. Answers whether what was to go wrong did.
    pub fn heal(&self) -> bool {
        self.lock().heal()
    }

    /// Whether the process died at a step, by [`DiskFault::Death`]. Ends with
    /// [`end_processes`](Self::end_processes) or [`lose_power`](Self::lose_power).
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// Every process that has a store here ends: their locks are gone, what they wrote stays, in
    /// the machine's memory as far as it was not synced.
    pub fn end_processes(&self) {
        self.lock().end_processes();
    }

    /// The machine loses its power: of what was not synced, `keep(n)` says how much survives, a
    /// number up to `n`. It is asked with 1 for each change of names, and with the length for each
    /// content.
    ///
    /// # Panics
    ///
    /// When `keep` answers more than it was asked about.
    pub fn lose_power(&self, keep: impl FnMut(usize) -> usize) {
        self.lock().lose_power(keep);
    }

    /// A disk that reports syncs and does not do them, which is what stores are lost by.
    pub fn lie_about_syncs(&self) {
        self.lock().lies = true;
    }

    /// The names in the directory, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock().names.keys().cloned().collect()
    }

    /// Flips a bit of a file, in the byte at `place` modulo its length. Done twice, the file is as it
    /// was. Answers whether there is such a file, with content.
    pub fn damage(&self, name: &str, place: usize) -> bool {
        self.lock().damage(name, place)
    }

    /// Removes a file, as an operator does, durably. Answers whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        self.lock().remove_durably(name)
    }

    /// Removes all files, durably.
    pub fn clear(&self) {
        for name in self.names() {
            self.remove(&name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        // A chooser of the test may panic in between; every step leaves the files whole.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
