//! A directory that format version 1 wrote: it opens for ever.

#![expect(clippy::unwrap_used, reason = "a test fails where an expectation does")]

use std::{fs, path::Path};

use checkpoint_store::{CheckpointStore, FileStore, Progress};
use connector_core::Epoch;

fn golden() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/version-1")
}

/// The golden files never change, so the test works on a copy.
fn copy() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(golden()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
    }
    directory
}

#[tokio::test]
async fn a_directory_of_format_version_1_opens() {
    let directory = copy();
    let mut store = FileStore::open(directory.path()).await.unwrap();
    assert_eq!(store.generation(), 3);
    let newest = store.newest().await.unwrap().unwrap();
    assert_eq!(newest.epoch, Epoch::new(41));
    assert_eq!(
        newest.state,
        "the state of epoch 41, as version 1 wrote it\n"
    );
    assert!(newest.settled);
    let progress = store.progress().await.unwrap();
    assert_eq!(progress, Some((Epoch::new(41), Progress::Settled)));
    store.save(Epoch::new(42), newest.state).await.unwrap();
}

#[test]
fn the_golden_directory_has_one_file_of_each_kind() {
    let mut names: Vec<_> = fs::read_dir(golden())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "checkpoint-00000000000000000002-00000000000000000041",
            "mark-00000000000000000002",
            "owner-00000000000000000002",
        ]
    );
}
