//! What a crash can leave of the directory, at every step, and what the next owner makes of it.
//!
//! A file system keeps of what was not synced whatever it likes: of names given and taken any part,
//! of contents nothing, half or all. Every such image must open to a state that was saved, and to
//! none older than the last one whose save was answered with `Ok`.

use std::{collections::BTreeMap, fs, path::Path};

use bytes::Bytes;
use connector_core::Epoch;

use super::{
    claim::{Mode, claim},
    disk::LocalDisk,
    lineage::Lineage,
    listing::Listing,
    scripted_disk::{ScriptedDisk, Step},
    tenure::Tenure,
};
use crate::Progress;

/// What the host knew at a point of the journal.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The journal's length at this point.
    at: usize,
    /// The newest epoch whose save has begun.
    begun: u64,
    /// The newest epoch whose save was answered with `Ok`.
    saved: u64,
    /// The newest epoch whose settled mark has begun.
    marking: u64,
    /// The newest epoch whose settled mark was answered with `Ok`.
    marked: u64,
}

fn state(epoch: u64) -> Bytes {
    Bytes::from(format!("the state of epoch {epoch}, long enough to be cut"))
}

/// Runs owners one after the other, and writes down what the host knew when.
struct Host {
    disk: std::sync::Arc<ScriptedDisk>,
    known: Vec<Known>,
}

impl Host {
    fn learn(&mut self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.last().copied().unwrap_or_default();
        known.at = self.disk.journal().len();
        change(&mut known);
        self.known.push(known);
    }

    fn open(&self, mode: Mode) -> Tenure {
        claim(self.disk.handle(), mode, 1).unwrap()
    }

    fn save(&mut self, tenure: &mut Tenure, epoch: u64) {
        self.learn(|known| known.begun = epoch);
        tenure.save(Epoch::new(epoch), &state(epoch)).unwrap();
        self.learn(|known| known.saved = epoch);
    }

    fn settle(&mut self, tenure: &mut Tenure, epoch: u64) {
        tenure
            .mark(Epoch::new(epoch), Progress::Committing)
            .unwrap();
        self.learn(|known| known.marking = epoch);
        tenure.mark(Epoch::new(epoch), Progress::Settled).unwrap();
        self.learn(|known| known.marked = epoch);
    }

    fn run(directory: &Path) -> Self {
        let mut host = Self {
            disk: ScriptedDisk::new(directory),
            known: vec![Known::default()],
        };
        let mut first = host.open(Mode::Open);
        for epoch in 1..=3 {
            host.save(&mut first, epoch);
        }
        host.settle(&mut first, 3);
        drop(first);
        let mut second = host.open(Mode::Open);
        drop(second);
        second = host.open(Mode::Open);
        host.save(&mut second, 5);
        host.settle(&mut second, 5);
        host.save(&mut second, 6);
        let mut third = host.open(Mode::TakeOver);
        host.settle(&mut third, 6);
        host.save(&mut third, 7);
        host
    }
}

/// A file's content, and whether it survives.
#[derive(Debug, Clone)]
struct Content {
    bytes: Vec<u8>,
    synced: bool,
}

/// A change of names that may or may not have reached the disk.
#[derive(Debug, Clone)]
enum Rename {
    Give { name: String, content: usize },
    Take { name: String },
}

/// What is on the disk after a part of the journal.
#[derive(Debug, Default)]
struct Remains {
    contents: Vec<Content>,
    durable: BTreeMap<String, usize>,
    pending: Vec<Vec<Rename>>,
}

impl Remains {
    fn after(journal: &[Step]) -> Self {
        let mut remains = Self::default();
        for step in journal {
            remains.take(step);
        }
        remains
    }

    fn names(&self) -> BTreeMap<String, usize> {
        apply(&self.durable, &self.pending)
    }

    fn take(&mut self, step: &Step) {
        let now = self.names();
        match step {
            Step::Create { name, content } => {
                self.contents.push(Content {
                    bytes: content.clone(),
                    synced: false,
                });
                self.pending.push(vec![Rename::Give {
                    name: name.clone(),
                    content: self.contents.len() - 1,
                }]);
            }
            Step::SyncFile { name } => self.contents[now[name]].synced = true,
            // One step of the file system: both halves or none.
            Step::Rename { from, to } => self.pending.push(vec![
                Rename::Take { name: from.clone() },
                Rename::Give {
                    name: to.clone(),
                    content: now[from],
                },
            ]),
            Step::Link { from, to } => self.pending.push(vec![Rename::Give {
                name: to.clone(),
                content: now[from],
            }]),
            Step::Remove { name } => {
                self.pending.push(vec![Rename::Take { name: name.clone() }]);
            }
            Step::Sync => {
                self.durable = now;
                self.pending.clear();
            }
        }
    }

    /// Every directory that a crash can leave.
    fn images(&self) -> Vec<BTreeMap<String, Vec<u8>>> {
        assert!(
            self.pending.len() < 12,
            "too many subsets: {:?}",
            self.pending
        );
        let mut images = Vec::new();
        for subset in 0..1_u32 << self.pending.len() {
            let survived: Vec<_> = (0_u32..)
                .zip(&self.pending)
                .filter(|(bit, _)| subset >> bit & 1 == 1)
                .map(|(_, change)| change.clone())
                .collect();
            let names = apply(&self.durable, &survived);
            for share in 0..=2 {
                let image: BTreeMap<_, _> = names
                    .iter()
                    .map(|(name, &content)| {
                        let content = &self.contents[content];
                        let kept = if content.synced {
                            content.bytes.len()
                        } else {
                            content.bytes.len() * share / 2
                        };
                        (name.clone(), content.bytes[..kept].to_vec())
                    })
                    .collect();
                if images.last() != Some(&image) {
                    images.push(image);
                }
            }
        }
        images
    }
}

fn apply(names: &BTreeMap<String, usize>, changes: &[Vec<Rename>]) -> BTreeMap<String, usize> {
    let mut names = names.clone();
    for change in changes.iter().flatten() {
        match change {
            Rename::Give { name, content } => {
                names.insert(name.clone(), *content);
            }
            Rename::Take { name } => {
                names.remove(name);
            }
        }
    }
    names
}

fn write(directory: &Path, image: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in image {
        fs::write(directory.join(name), bytes).unwrap();
    }
}

#[test]
fn a_crash_at_any_step_leaves_the_old_state_or_the_new_one() {
    let scene = tempfile::tempdir().unwrap();
    let host = Host::run(scene.path());
    let journal = host.disk.journal();
    let mut seen = [0_usize; 2];
    for length in 0..=journal.len() {
        let known = host.known.iter().rfind(|known| known.at <= length).unwrap();
        for image in Remains::after(&journal[..length]).images() {
            let place = tempfile::tempdir().unwrap();
            write(place.path(), &image);
            let disk = LocalDisk::open(place.path().to_owned()).unwrap();
            let found = Listing::of(&disk)
                .map_err(|error| error.to_string())
                .and_then(|listing| {
                    Lineage::follow(&disk, &listing)
                        .and_then(|lineage| lineage.load(&disk))
                        .map_err(|error| error.to_string())
                })
                .unwrap_or_else(|error| {
                    panic!("after {length} steps: {error}; {:?}", image.keys())
                });
            let Some((newest, found)) = found.1 else {
                assert_eq!(known.saved, 0, "after {length} steps: {:?}", image.keys());
                continue;
            };
            let epoch = newest.epoch.get();
            assert!(
                epoch == known.saved || epoch == known.begun,
                "after {length} steps: {epoch}, not {known:?}"
            );
            assert_eq!(found, state(epoch));
            let settled = newest.progress == Progress::Settled;
            assert!(!settled || epoch == known.marking, "{known:?}");
            assert!(
                settled || epoch != known.marked,
                "after {length} steps: {known:?}"
            );
            seen[usize::from(epoch == known.saved)] += 1;
        }
    }
    assert!(
        seen.iter().all(|&seen| seen > 0),
        "both outcomes occur: {seen:?}"
    );
}

#[test]
fn the_next_owner_clears_every_crash_image_and_goes_on() {
    let scene = tempfile::tempdir().unwrap();
    let host = Host::run(scene.path());
    let journal = host.disk.journal();
    for length in 0..=journal.len() {
        // The image of a process that died with the machine still up: everything it did is there.
        let image = Remains::after(&journal[..length]).images().pop().unwrap();
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &image);
        let disk = ScriptedDisk::new(place.path());
        let mut tenure = claim(disk.handle(), Mode::Open, 1).unwrap();
        tenure.save(Epoch::new(9), &state(9)).unwrap();
        let listing = Listing::of(&*disk.handle()).unwrap();
        assert!(
            listing.temporaries.is_empty(),
            "after {length} steps: {listing:?}"
        );
        assert_eq!(listing.owners.len(), 1, "after {length} steps: {listing:?}");
        assert!(
            listing.checkpoints.len() <= 2,
            "after {length} steps: {listing:?}"
        );
        let newest = tenure.newest().unwrap().unwrap();
        assert_eq!((newest.epoch, newest.state), (Epoch::new(9), state(9)));
    }
}

/// Saves epochs 1 to 5 through failures; answers the last one that was saved.
fn save_some(tenure: &mut Tenure) -> u64 {
    let mut saved = 0;
    for epoch in 1..=5 {
        match tenure.save(Epoch::new(epoch), &state(epoch)) {
            Ok(()) => saved = epoch,
            Err(error) => assert!(!error.is_not_owner(), "{error}"),
        }
        if tenure.mark(Epoch::new(saved), Progress::Settled).is_err() {
            continue;
        }
    }
    saved
}

fn steps_of_a_run() -> usize {
    let place = tempfile::tempdir().unwrap();
    let disk = ScriptedDisk::new(place.path());
    let mut tenure = claim(disk.handle(), Mode::Open, 1).unwrap();
    let before = disk.steps();
    assert_eq!(save_some(&mut tenure), 5);
    disk.steps() - before
}

#[test]
fn a_failing_disk_never_costs_a_state_that_was_reported_saved() {
    let steps = steps_of_a_run();
    assert!(steps > 40, "the run has its steps: {steps}");
    for (at, for_ever) in (0..steps).flat_map(|at| [(at, false), (at, true)]) {
        let place = tempfile::tempdir().unwrap();
        let disk = ScriptedDisk::new(place.path());
        let mut tenure = claim(disk.handle(), Mode::Open, 1).unwrap();
        if for_ever {
            disk.fail_from(at);
        } else {
            disk.fail(at);
        }
        let saved = save_some(&mut tenure);
        assert_eq!(disk.heal(), for_ever, "the fault at step {at} was met");
        let mut next = claim(disk.handle(), Mode::TakeOver, 1).unwrap();
        let found = next.newest().unwrap();
        let newest = found.as_ref().map_or(0, |found| found.epoch.get());
        assert!(
            newest >= saved,
            "step {at}: {newest} after {saved} was reported saved"
        );
        if let Some(found) = found {
            assert_eq!(found.state, state(newest));
        }
    }
}

#[test]
fn a_failing_disk_lets_the_same_epoch_be_saved_again() {
    for at in 0..12 {
        let place = tempfile::tempdir().unwrap();
        let disk = ScriptedDisk::new(place.path());
        let mut tenure = claim(disk.handle(), Mode::Open, 0).unwrap();
        disk.fail(at);
        let first = tenure.save(Epoch::new(1), &state(1));
        if first.is_err() {
            tenure.save(Epoch::new(1), &state(1)).unwrap();
        }
        disk.heal();
        let newest = tenure.newest().unwrap().unwrap();
        assert_eq!((newest.epoch, newest.state), (Epoch::new(1), state(1)));
    }
}

#[test]
fn what_was_read_back_or_restored_after_a_failed_save_cannot_vanish_any_more() {
    let mut unreported = 0;
    for (at, reopened) in (0..12).flat_map(|at| [(at, false), (at, true)]) {
        let place = tempfile::tempdir().unwrap();
        let disk = ScriptedDisk::new(place.path());
        let mut tenure = claim(disk.handle(), Mode::Open, 1).unwrap();
        tenure.save(Epoch::new(1), &state(1)).unwrap();
        disk.fail(at);
        let reported = tenure.save(Epoch::new(2), &state(2)).is_ok();
        disk.heal();
        if reopened {
            tenure = claim(disk.handle(), Mode::TakeOver, 1).unwrap();
        }
        let seen = tenure.newest().unwrap().unwrap();
        unreported += usize::from(!reported && seen.epoch == Epoch::new(2));
        for image in Remains::after(&disk.journal()).images() {
            let after = tempfile::tempdir().unwrap();
            write(after.path(), &image);
            let mut next = claim(ScriptedDisk::new(after.path()).handle(), Mode::Open, 1).unwrap();
            assert_eq!(next.newest().unwrap().unwrap(), seen, "fault at step {at}");
        }
    }
    assert!(unreported > 0, "a save that failed was durable after all");
}
