use bytes::Bytes;
use connector_core::Epoch;

use super::*;
use crate::{CheckpointStore, StoreError};

/// What a host did with its disk, and what was there afterwards.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    saved: u64,
    failed: u64,
    died: u64,
    damaged: u64,
    newer: u64,
    lost: u64,
}

/// A host saves until its disk fails, and its successor looks: for every step, every fault, and
/// every share of what a loss of power leaves.
fn tally(lies: bool) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let faults = [
        DiskFault::Refused,
        DiskFault::Unreported,
        DiskFault::Full,
        DiskFault::Death,
    ];
    let mut tally = Tally::default();
    for (fault, step, seed) in
        scenes(&faults, 30, 3).filter(|(fault, _, _)| !lies || *fault == DiskFault::Death)
    {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = SimulatedDisk::new();
        if lies {
            disk.lie_about_syncs();
        }
        let mut saved = 0;
        runtime.block_on(async {
            let mut store = disk.open().unwrap();
            disk.fail_after(step, fault);
            for epoch in 1..=5 {
                match store
                    .save(Epoch::new(epoch), Bytes::from(vec![7; 100]))
                    .await
                {
                    Ok(()) => saved = epoch,
                    Err(_) => tally.failed += 1,
                }
            }
        });
        tally.saved += u64::from(saved > 0);
        tally.died += u64::from(disk.is_dead());
        assert!(disk.heal(), "{fault:?} at {step}");
        disk.lose_power(|most| random.usize(..=most));
        let found = disk
            .open()
            .and_then(|store| runtime.block_on(store.newest()));
        match found {
            Ok(found) => {
                let found = found.map_or(0, |found| found.epoch.get());
                tally.newer += u64::from(found > saved);
                tally.lost += u64::from(found < saved);
            }
            Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => tally.damaged += 1,
            Err(error) => panic!("{error}"),
        }
    }
    tally
}

fn scenes(
    faults: &[DiskFault],
    steps: usize,
    seeds: u64,
) -> impl Iterator<Item = (DiskFault, usize, u64)> {
    faults.iter().flat_map(move |&fault| {
        (0..steps).flat_map(move |step| (0..seeds).map(move |seed| (fault, step, seed)))
    })
}

#[test]
fn a_store_loses_nothing_by_any_fault_and_any_loss_of_power() {
    let tally = tally(false);
    assert_eq!((tally.lost, tally.damaged), (0, 0), "{tally:?}");
    assert!(tally.newer > 0, "a save that failed was durable: {tally:?}");
    assert!(tally.saved > 0 && tally.failed > 0, "{tally:?}");
    assert_eq!(tally.died, 90, "{tally:?}");
}

#[test]
fn a_disk_that_lies_loses_states_and_leaves_torn_ones() {
    let tally = tally(true);
    assert!(tally.lost > 0 && tally.damaged > 0, "{tally:?}");
}

#[test]
fn a_living_owner_is_respected_and_a_dead_one_is_not() {
    let disk = SimulatedDisk::new();
    let first = disk.open().unwrap();
    assert!(matches!(disk.open(), Err(StoreError::InUse { .. })));
    disk.end_processes();
    let second = disk.open().unwrap();
    drop(first);
    assert!(matches!(disk.open(), Err(StoreError::InUse { .. })));
    drop(second);
    disk.open().unwrap();
}

#[test]
fn damage_is_noticed_and_can_be_undone() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let disk = SimulatedDisk::new();
    let mut store = disk.open().unwrap();
    runtime
        .block_on(store.save(Epoch::new(1), Bytes::from("one")))
        .unwrap();
    drop(store);
    let names = disk.names();
    let newest = names.iter().find(|name| name.starts_with("checkpoint"));
    let newest = newest.unwrap();
    assert!(disk.damage(newest, 70));
    assert!(matches!(disk.open(), Err(StoreError::Damaged { .. })));
    assert!(disk.damage(newest, 70));
    drop(disk.open().unwrap());
    assert!(disk.remove(newest));
    assert!(matches!(disk.open(), Err(StoreError::Missing { .. })));
    disk.clear();
    assert_eq!(disk.names(), Vec::<String>::new());
}
