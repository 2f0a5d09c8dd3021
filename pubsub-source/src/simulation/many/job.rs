//! One run of the job: its readers, and what its coordinator knows.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use checkpoint_store::MemoryStore;
use connector_core::Epoch;

use super::{
    event::{Delivered, Place},
    reader::Reader,
};

/// A checkpoint that is being put together.
pub(super) struct Pending {
    pub(super) epoch: Epoch,
    /// The state of each reader, with what it had handed out.
    pub(super) states: BTreeMap<usize, (Bytes, BTreeSet<Delivered>)>,
    pub(super) saving: bool,
}

/// One run of the job.
pub(super) struct Job {
    pub(super) number: u32,
    pub(super) readers: BTreeMap<usize, Reader>,
    /// How many readers it began with.
    pub(super) width: usize,
    pub(super) store: MemoryStore,
    pub(super) epoch: Epoch,
    pub(super) pending: Option<Pending>,
    /// What the restored state covers.
    pub(super) restored: BTreeSet<Delivered>,
    /// What the restored states name, whichever reader's.
    pub(super) named: BTreeSet<Delivered>,
    /// What was durable when it opened the store.
    pub(super) inherited: Option<usize>,
    /// It takes no checkpoint any more.
    pub(super) ending: bool,
}

impl Job {
    pub(super) fn places(&self) -> Vec<Place> {
        let readers = self.readers.keys();
        readers.map(|reader| (self.number, *reader)).collect()
    }

    /// What this run's line has handed out.
    pub(super) fn covered(&self) -> BTreeSet<Delivered> {
        let mut covered = self.restored.clone();
        for reader in self.readers.values() {
            covered.extend(&reader.handed);
        }
        covered
    }
}
