//! What is in a store's directory, by name alone.

use std::{collections::BTreeSet, io};

use connector_core::Epoch;

use super::{
    disk::Disk,
    name::{Entry, Name},
};

/// The files of a directory that belong to the store.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// States by generation, then epoch.
    pub(crate) checkpoints: BTreeSet<(u64, Epoch)>,
    /// Generations with an owner's record.
    pub(crate) owners: BTreeSet<u64>,
    /// Generations with a mark.
    pub(crate) marks: BTreeSet<u64>,
    /// Files that are, or were, being written.
    pub(crate) temporaries: Vec<String>,
    /// Names that begin like the store's and are none.
    pub(crate) foreign: BTreeSet<String>,
}

impl Listing {
    pub(crate) fn of(disk: &dyn Disk) -> io::Result<Self> {
        let mut listing = Self::default();
        for name in disk.list()? {
            match Entry::of(&name) {
                Entry::Named(Name::Checkpoint { generation, epoch }) => {
                    listing.checkpoints.insert((generation, epoch));
                }
                Entry::Named(Name::Owner { generation }) => {
                    listing.owners.insert(generation);
                }
                Entry::Named(Name::Mark { generation }) => {
                    listing.marks.insert(generation);
                }
                Entry::Temporary(name) => listing.temporaries.push(name),
                Entry::Foreign => {
                    listing.foreign.insert(name.to_string_lossy().into_owned());
                }
                Entry::Unrelated => {}
            }
        }
        listing.temporaries.sort_unstable();
        Ok(listing)
    }

    /// The newest generation that any file names; zero when there is none.
    pub(crate) fn highest_generation(&self) -> u64 {
        let checkpoint = self.checkpoints.last().map(|(generation, _)| generation);
        [checkpoint, self.owners.last(), self.marks.last()]
            .into_iter()
            .flatten()
            .max()
            .copied()
            .unwrap_or(0)
    }

    /// The newest state that the owner of `generation` saved.
    pub(crate) fn saved_by(&self, generation: u64) -> Option<Epoch> {
        let all = (generation, Epoch::new(0))..=(generation, Epoch::new(u64::MAX));
        let (_, epoch) = self.checkpoints.range(all).next_back()?;
        Some(*epoch)
    }

    /// The states before the one of `generation` and `epoch`, without the newest `kept` of them.
    pub(crate) fn surplus(&self, generation: u64, epoch: Epoch, kept: usize) -> Vec<Name> {
        self.checkpoints
            .range(..(generation, epoch))
            .rev()
            .skip(kept)
            .map(|&(generation, epoch)| Name::Checkpoint { generation, epoch })
            .collect()
    }
}
