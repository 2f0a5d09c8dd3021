//! Directories as they are found after accidents: one clear error each, and nothing is lost.

#![expect(clippy::unwrap_used, reason = "a test fails where an expectation does")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, Damage, FileStore, Progress, Stake, StoreError};
use connector_core::Epoch;
use proptest::prelude::*;

fn state(epoch: u64) -> Bytes {
    Bytes::from(format!("state {epoch}, long enough to be cut in half"))
}

/// A directory in which epochs 1 to 3 were saved and the last one was settled.
async fn populated() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut store = FileStore::open(directory.path()).await.unwrap();
    for epoch in 1..=3 {
        store.save(Epoch::new(epoch), state(epoch)).await.unwrap();
    }
    store.settled(Epoch::new(3)).await.unwrap();
    store.close().await;
    directory
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn named(directory: &Path, name: &str) -> PathBuf {
    files(directory)
        .into_iter()
        .rfind(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(name)
        })
        .unwrap()
}

/// Opens the directory, which must fail and change nothing.
async fn refused(directory: &Path) -> StoreError {
    let contents = || -> Vec<_> {
        files(directory)
            .into_iter()
            .map(|path| (fs::read(&path).ok(), path))
            .collect()
    };
    let before = contents();
    let opened = FileStore::open(directory).await.unwrap_err();
    let taken = FileStore::take_over(directory).await.unwrap_err();
    assert_eq!(opened.to_string(), taken.to_string());
    assert!(contents() == before, "nothing was changed");
    opened
}

#[tokio::test]
async fn a_newest_file_cut_in_half_is_named_and_never_skipped() {
    let directory = populated().await;
    let newest = named(directory.path(), "checkpoint-");
    let bytes = fs::read(&newest).unwrap();
    fs::write(&newest, &bytes[..bytes.len() / 2]).unwrap();
    let error = refused(directory.path()).await;
    let text = error.to_string();
    let StoreError::Damaged {
        place,
        damage,
        stake,
    } = error
    else {
        panic!("{text}");
    };
    assert_eq!(place, newest.display().to_string());
    assert!(matches!(damage, Damage::Truncated { .. }));
    assert_eq!(
        stake,
        Stake::State {
            epoch: Epoch::new(3)
        }
    );
    for said in [place.as_str(), "left in place", "gives up epoch 3", "lost"] {
        assert!(text.contains(said), "{said:?} in {text:?}");
    }
}

#[tokio::test]
async fn an_empty_newest_file_is_damage() {
    let directory = populated().await;
    fs::write(named(directory.path(), "checkpoint-"), b"").unwrap();
    assert!(matches!(
        refused(directory.path()).await,
        StoreError::Damaged {
            damage: Damage::Truncated { found: 0, .. },
            ..
        }
    ));
}

#[tokio::test]
async fn a_damaged_older_file_is_nobodys_concern() {
    let directory = populated().await;
    let oldest = files(directory.path()).into_iter().next().unwrap();
    fs::write(&oldest, b"garbage").unwrap();
    let store = FileStore::open(directory.path()).await.unwrap();
    assert_eq!(store.newest().await.unwrap().unwrap().epoch, Epoch::new(3));
}

#[tokio::test]
async fn a_file_of_something_else_under_the_newest_name_is_foreign() {
    let directory = populated().await;
    let newest = named(directory.path(), "checkpoint-");
    fs::write(&newest, b"{\"connector\":\"something else\"}").unwrap();
    let error = refused(directory.path()).await;
    let StoreError::Foreign { place, stake } = error else {
        panic!("{error}");
    };
    assert_eq!(place, newest.display().to_string());
    assert_eq!(
        stake,
        Stake::State {
            epoch: Epoch::new(3)
        }
    );
}

#[tokio::test]
async fn a_checkpoint_of_another_store_is_foreign() {
    let (directory, other) = (populated().await, populated().await);
    let newest = named(directory.path(), "checkpoint-");
    fs::copy(named(other.path(), "checkpoint-"), &newest).unwrap();
    assert!(matches!(
        refused(directory.path()).await,
        StoreError::Foreign { .. }
    ));
}

#[tokio::test]
async fn a_file_renamed_to_a_newer_epoch_is_damage() {
    let directory = populated().await;
    let newest = named(directory.path(), "checkpoint-");
    let newer = newest.display().to_string().replace("0003", "0004");
    fs::copy(&newest, newer).unwrap();
    assert!(matches!(
        refused(directory.path()).await,
        StoreError::Damaged {
            damage: Damage::Contradiction,
            ..
        }
    ));
}

#[tokio::test]
async fn a_name_that_only_begins_like_a_checkpoint_is_foreign() {
    let directory = populated().await;
    let copy = directory.path().join("checkpoint-3.backup");
    fs::copy(named(directory.path(), "checkpoint-"), &copy).unwrap();
    let error = refused(directory.path()).await;
    let StoreError::Foreign { place, stake } = error else {
        panic!("{error}");
    };
    assert_eq!((place, stake), (copy.display().to_string(), Stake::Unknown));
}

#[tokio::test]
async fn other_files_in_the_directory_are_left_alone() {
    let directory = populated().await;
    fs::create_dir(directory.path().join("lost+found")).unwrap();
    fs::write(directory.path().join("notes.txt"), b"notes").unwrap();
    let mut store = FileStore::open(directory.path()).await.unwrap();
    store.save(Epoch::new(4), state(4)).await.unwrap();
    assert_eq!(
        fs::read(directory.path().join("notes.txt")).unwrap(),
        b"notes"
    );
}

#[tokio::test]
async fn a_file_of_a_newer_format_is_named_with_both_versions() {
    for kind in ["checkpoint-", "owner-", "mark-"] {
        let directory = populated().await;
        let file = named(directory.path(), kind);
        let mut bytes = fs::read(&file).unwrap();
        bytes[8] = 7;
        fs::write(&file, bytes).unwrap();
        let error = refused(directory.path()).await;
        let text = error.to_string();
        let StoreError::NewerVersion {
            place,
            found,
            newest,
            ..
        } = error
        else {
            panic!("{text}");
        };
        assert_eq!((place, found, newest), (file.display().to_string(), 7, 1));
        assert!(
            text.contains("version 7") && text.contains("up to 1"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_damaged_record_of_the_owner_is_named() {
    let directory = populated().await;
    let file = named(directory.path(), "owner-");
    let mut bytes = fs::read(&file).unwrap();
    bytes[30] ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = refused(directory.path()).await;
    let StoreError::Damaged { place, stake, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(
        (place, stake),
        (file.display().to_string(), Stake::Ownership)
    );
}

#[tokio::test]
async fn a_damaged_mark_reads_as_attempted_and_unfinished() {
    let directory = populated().await;
    let file = named(directory.path(), "mark-");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let store = FileStore::open(directory.path()).await.unwrap();
    let newest = store.newest().await.unwrap().unwrap();
    assert_eq!((newest.epoch, newest.settled), (Epoch::new(3), false));
    let progress = store.progress().await.unwrap();
    assert_eq!(progress, Some((Epoch::new(3), Progress::Committing)));
}

#[tokio::test]
async fn a_newest_file_that_is_gone_is_missed_until_a_person_gives_it_up() {
    let directory = populated().await;
    fs::remove_file(named(directory.path(), "checkpoint-")).unwrap();
    let mark = named(directory.path(), "mark-");
    let error = refused(directory.path()).await;
    let text = error.to_string();
    let StoreError::Missing { epoch, witness, .. } = error else {
        panic!("{text}");
    };
    assert_eq!(
        (epoch, witness),
        (Epoch::new(3), mark.display().to_string())
    );
    // The way out that the text names.
    fs::remove_file(mark).unwrap();
    let store = FileStore::open(directory.path()).await.unwrap();
    let newest = store.newest().await.unwrap().unwrap();
    assert_eq!((newest.epoch, newest.settled), (Epoch::new(2), false));
}

#[tokio::test]
async fn the_state_a_lineage_began_from_is_missed_as_well() {
    let directory = populated().await;
    FileStore::open(directory.path())
        .await
        .unwrap()
        .close()
        .await;
    fs::remove_file(named(directory.path(), "checkpoint-")).unwrap();
    let owner = named(directory.path(), "owner-");
    let error = refused(directory.path()).await;
    let StoreError::Missing { epoch, witness, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(
        (epoch, witness),
        (Epoch::new(3), owner.display().to_string())
    );
    fs::remove_file(owner).unwrap();
    let store = FileStore::open(directory.path()).await.unwrap();
    assert_eq!(store.newest().await.unwrap().unwrap().epoch, Epoch::new(2));
}

#[tokio::test]
async fn a_state_that_vanishes_under_its_owner_is_missed() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = FileStore::open(directory.path()).await.unwrap();
    store.save(Epoch::new(1), state(1)).await.unwrap();
    store.save(Epoch::new(2), state(2)).await.unwrap();
    fs::remove_file(named(directory.path(), "checkpoint-")).unwrap();
    let error = store.newest().await.unwrap_err();
    assert!(
        matches!(error, StoreError::Missing { epoch, .. } if epoch == Epoch::new(2)),
        "{error}"
    );
}

#[tokio::test]
async fn a_deleted_directory_ends_the_ownership_and_starts_from_nothing() {
    let directory = populated().await;
    let mut old = FileStore::open(directory.path()).await.unwrap();
    fs::remove_dir_all(directory.path()).unwrap();
    let error = old.save(Epoch::new(4), state(4)).await.unwrap_err();
    assert!(matches!(error, StoreError::NotSaved { .. }), "{error}");
    let mut new = FileStore::open(directory.path()).await.unwrap();
    assert_eq!(new.newest().await.unwrap(), None);
    assert!(
        old.save(Epoch::new(4), state(4))
            .await
            .unwrap_err()
            .is_not_owner()
    );
    new.save(Epoch::new(1), state(1)).await.unwrap();
}

#[tokio::test]
async fn an_owner_of_a_directory_that_was_copied_back_is_not_its_owner() {
    let directory = tempfile::tempdir().unwrap();
    let mut old = FileStore::open(directory.path()).await.unwrap();
    let generation = old.generation();
    fs::remove_file(named(directory.path(), "owner-")).unwrap();
    let new = FileStore::open(directory.path()).await.unwrap();
    assert_eq!(
        new.generation(),
        generation,
        "the numbers do not tell them apart"
    );
    assert!(
        old.save(Epoch::new(4), state(4))
            .await
            .unwrap_err()
            .is_not_owner()
    );
}

#[tokio::test]
async fn left_over_temporary_files_are_removed() {
    let directory = populated().await;
    let newest = named(directory.path(), "checkpoint-").display().to_string();
    let torn = PathBuf::from(format!("{newest}.00000000000000000000000000000000.temp"));
    fs::write(&torn, b"half a st").unwrap();
    let store = FileStore::open(directory.path()).await.unwrap();
    assert!(!torn.exists());
    assert_eq!(store.newest().await.unwrap().unwrap().epoch, Epoch::new(3));
}

#[tokio::test]
async fn the_history_is_kept_and_no_more() {
    for (history, kept) in [(0, vec![9]), (1, vec![8, 9]), (2, vec![7, 8, 9])] {
        let directory = tempfile::tempdir().unwrap();
        let builder = FileStore::builder(directory.path()).history(history);
        let mut store = builder.open().await.unwrap();
        for epoch in 1..=9 {
            store.save(Epoch::new(epoch), state(epoch)).await.unwrap();
        }
        let found: Vec<u64> = files(directory.path())
            .into_iter()
            .filter_map(|path| {
                let name = path.file_name()?.to_str()?;
                name.strip_prefix("checkpoint-")?
                    .rsplit('-')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert_eq!(found, kept);
    }
}

#[tokio::test]
async fn two_older_states_are_kept_by_default() {
    let directory = populated().await;
    let mut store = FileStore::open(directory.path()).await.unwrap();
    store.save(Epoch::new(4), state(4)).await.unwrap();
    let names = files(directory.path());
    let checkpoints = names
        .iter()
        .filter(|path| path.display().to_string().contains("checkpoint-"));
    assert_eq!(checkpoints.count(), 3);
}

#[tokio::test]
async fn a_path_that_is_no_directory_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, b"content").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = FileStore::open(&path).await.unwrap_err();
        assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
        assert!(std::error::Error::source(&error).is_some());
    }
    assert_eq!(fs::read(file).unwrap(), b"content");
}

#[tokio::test]
async fn a_directory_is_made_with_its_parents() {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("a/b/c");
    let mut store = FileStore::open(&deep).await.unwrap();
    store.save(Epoch::new(1), state(1)).await.unwrap();
    store.close().await;
    assert!(
        FileStore::open(&deep)
            .await
            .unwrap()
            .newest()
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_store_in_use_is_refused_in_the_same_process_too_until_it_is_closed() {
    let directory = populated().await;
    let store = FileStore::open(directory.path()).await.unwrap();
    let error = FileStore::open(directory.path()).await.unwrap_err();
    let text = error.to_string();
    let StoreError::InUse { owner, .. } = error else {
        panic!("{text}");
    };
    let owner = owner.unwrap();
    assert_eq!(
        (owner.pid, owner.generation),
        (std::process::id(), store.generation())
    );
    assert!(text.contains(&format!("process {}", owner.pid)), "{text}");
    store.close().await;
    let next = FileStore::open(directory.path()).await.unwrap();
    assert!(next.generation() > owner.generation);
}

#[tokio::test]
async fn a_failed_open_leaves_the_owner_in_its_place() {
    let directory = populated().await;
    let mut store = FileStore::open(directory.path()).await.unwrap();
    FileStore::open(directory.path()).await.unwrap_err();
    store.save(Epoch::new(4), state(4)).await.unwrap();
}

#[test]
fn a_store_used_outside_a_runtime_answers_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut open = std::pin::pin!(FileStore::open(directory.path()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(answer) = open.as_mut().poll(&mut context) else {
        panic!("nothing could wake this future");
    };
    assert!(matches!(answer.unwrap_err(), StoreError::NoRuntime { .. }));
}

#[tokio::test]
async fn a_dropped_save_has_happened_or_not_when_the_next_call_begins() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = FileStore::open(directory.path()).await.unwrap();
    let mut begun = 0;
    for epoch in 1..=20 {
        {
            let mut save = std::pin::pin!(store.save(Epoch::new(epoch), state(epoch)));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            if epoch % 2 == 0 && save.as_mut().poll(&mut context).is_pending() {
                begun = epoch;
            }
        }
        // Polled once, the write was handed to a blocking thread, so it happens; never polled, it
        // does not.
        let newest = store.newest().await.unwrap();
        assert_eq!(
            newest.as_ref().map_or(0, |newest| newest.epoch.get()),
            begun
        );
        if let Some(newest) = newest {
            assert_eq!(newest.state, state(begun));
        }
    }
    assert_eq!(begun, 20);
}

#[tokio::test]
async fn closing_waits_for_a_save_that_was_given_up() {
    let directory = tempfile::tempdir().unwrap();
    for epoch in 1..=50 {
        let mut store = FileStore::open(directory.path()).await.unwrap();
        {
            let mut save = std::pin::pin!(store.save(Epoch::new(epoch), state(epoch)));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(save.as_mut().poll(&mut context).is_pending());
        }
        store.close().await;
        let store = FileStore::open(directory.path()).await.unwrap();
        let newest = store.newest().await.unwrap().unwrap();
        assert_eq!(newest.epoch, Epoch::new(epoch));
        store.close().await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn file_work_does_not_hold_up_the_executor() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = FileStore::open(directory.path()).await.unwrap();
    let large = Bytes::from(vec![7; 1 << 20]);
    let mut turns = 0_u32;
    let save = store.save(Epoch::new(1), large);
    tokio::pin!(save);
    loop {
        tokio::select! { biased;
            () = tokio::task::yield_now() => turns += 1,
            saved = &mut save, if turns > 100 => break saved.unwrap(),
        }
    }
    assert!(turns > 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_changed_byte_of_the_newest_file_is_noticed(
        at in any::<prop::sample::Index>(), flip in 1_u8..,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let directory = populated().await;
            let newest = named(directory.path(), "checkpoint-");
            let mut bytes = fs::read(&newest).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            fs::write(&newest, bytes).unwrap();
            let error = refused(directory.path()).await;
            assert!(error.to_string().contains(&newest.display().to_string()), "{error}");
        });
    }
}
