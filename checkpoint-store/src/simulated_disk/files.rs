//! What is in the directory, in the machine's memory and on the disk.

use std::{collections::BTreeMap, io};

use super::fault::{DiskFault, Simulated};

#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) synced: bool,
    /// Which handle has locked it.
    pub(super) locked: Option<u64>,
}

/// One step of the file system: it survives whole or not at all.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) takes: Option<String>,
    pub(super) gives: Option<(String, usize)>,
}

#[derive(Debug, Default)]
pub(super) struct Files {
    contents: Vec<Content>,
    /// As processes see them.
    pub(super) names: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    pending: Vec<Change>,
    /// Counts the times at which all processes ended.
    pub(super) life: u64,
    pub(super) dead: bool,
    pub(super) lies: bool,
    pub(super) steps: usize,
    pub(super) fault: Option<(usize, DiskFault)>,
    struck: bool,
    handles: u64,
}

fn apply(names: &mut BTreeMap<String, usize>, change: &Change) {
    if let Some(name) = &change.takes {
        names.remove(name);
    }
    if let Some((name, content)) = &change.gives {
        names.insert(name.clone(), *content);
    }
}

fn simulated(fault: DiskFault) -> io::Error {
    let kind = match fault {
        DiskFault::Full => io::ErrorKind::StorageFull,
        DiskFault::Refused | DiskFault::Unreported | DiskFault::Death => io::ErrorKind::Other,
    };
    io::Error::new(kind, Simulated(fault))
}

impl Files {
    /// A step of the process of `life`. `Ok(true)`: it is done and must report an error.
    pub(super) fn step(&mut self, life: u64, makes: bool) -> io::Result<bool> {
        if self.dead || life != self.life {
            return Err(simulated(DiskFault::Death));
        }
        let step = self.steps;
        self.steps += 1;
        let Some((at, fault)) = self.fault.filter(|(at, _)| step >= *at) else {
            return Ok(false);
        };
        match fault {
            DiskFault::Refused | DiskFault::Unreported if step > at => return Ok(false),
            DiskFault::Full if !makes => return Ok(false),
            DiskFault::Refused | DiskFault::Unreported | DiskFault::Full => {}
            DiskFault::Death => self.dead = true,
        }
        self.struck = true;
        if fault == DiskFault::Unreported {
            return Ok(true);
        }
        Err(simulated(fault))
    }

    /// What a step says that is done: an error where it must report one.
    pub(super) fn report(unreported: bool) -> io::Result<()> {
        if unreported {
            return Err(simulated(DiskFault::Unreported));
        }
        Ok(())
    }

    pub(super) fn heal(&mut self) -> bool {
        self.fault = None;
        std::mem::take(&mut self.struck)
    }

    pub(super) fn end_processes(&mut self) {
        self.life += 1;
        self.dead = false;
        for content in &mut self.contents {
            content.locked = None;
        }
    }

    pub(super) fn lose_power(&mut self, mut keep: impl FnMut(usize) -> usize) {
        self.end_processes();
        for change in std::mem::take(&mut self.pending) {
            if keep(1) == 1 {
                apply(&mut self.durable, &change);
            }
        }
        self.names.clone_from(&self.durable);
        for &content in self.names.values() {
            let content = &mut self.contents[content];
            if !content.synced {
                let kept = keep(content.bytes.len());
                assert!(kept <= content.bytes.len(), "more than there is");
                content.bytes.truncate(kept);
                content.synced = true;
            }
        }
    }

    pub(super) fn content(&self, name: &str) -> io::Result<usize> {
        let content = self.names.get(name).copied();
        content.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn bytes(&self, content: usize) -> &[u8] {
        &self.contents[content].bytes
    }

    /// A handle of its own for whoever opens a file.
    pub(super) fn handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    pub(super) fn make(&mut self, name: &str, bytes: Vec<u8>) -> usize {
        let content = self.contents.len();
        self.contents.push(Content {
            bytes,
            synced: false,
            locked: None,
        });
        self.change(Change {
            takes: None,
            gives: Some((name.to_owned(), content)),
        });
        content
    }

    pub(super) fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.pending.push(change);
    }

    pub(super) fn sync_content(&mut self, content: usize) {
        self.contents[content].synced |= !self.lies;
    }

    pub(super) fn sync_names(&mut self) {
        if !self.lies {
            self.durable.clone_from(&self.names);
            self.pending.clear();
        }
    }

    pub(super) fn locked(&mut self, content: usize) -> &mut Option<u64> {
        &mut self.contents[content].locked
    }

    pub(super) fn damage(&mut self, name: &str, place: usize) -> bool {
        let Ok(content) = self.content(name) else {
            return false;
        };
        let bytes = &mut self.contents[content].bytes;
        let Some(place) = place.checked_rem(bytes.len()) else {
            return false;
        };
        bytes[place] ^= 1;
        true
    }

    pub(super) fn remove_durably(&mut self, name: &str) -> bool {
        let was = self.names.remove(name).is_some();
        self.durable.clone_from(&self.names);
        self.pending.clear();
        was
    }
}
