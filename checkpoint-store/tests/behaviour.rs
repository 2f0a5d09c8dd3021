//! What every store does, whatever it keeps its states in.

#![expect(clippy::unwrap_used, reason = "a test fails where an expectation does")]

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, FileStore, MemoryPlace, StoreError};
use connector_core::{Epoch, Restored};

/// A place in which stores are opened one after the other, each replacing the one before.
enum Place {
    Directory(tempfile::TempDir),
    Memory(MemoryPlace),
}

impl Place {
    async fn open(&self) -> Box<dyn CheckpointStore> {
        match self {
            Self::Directory(directory) => {
                Box::new(FileStore::take_over(directory.path()).await.unwrap())
            }
            Self::Memory(place) => Box::new(place.open()),
        }
    }
}

fn places() -> [Place; 2] {
    [
        Place::Directory(tempfile::tempdir().unwrap()),
        Place::Memory(MemoryPlace::new()),
    ]
}

fn state(epoch: u64) -> Bytes {
    Bytes::from(format!("state {epoch}"))
}

async fn save(store: &mut impl CheckpointStore, epoch: u64) -> Result<(), StoreError> {
    store.save(Epoch::new(epoch), state(epoch)).await
}

fn restored(epoch: u64, settled: bool) -> Option<Restored<Bytes>> {
    Some(Restored::new(Epoch::new(epoch), state(epoch)).settled(settled))
}

#[tokio::test]
async fn an_empty_store_restores_nothing() {
    for place in places() {
        assert_eq!(place.open().await.newest().await.unwrap(), None);
        assert_eq!(place.open().await.newest().await.unwrap(), None);
    }
}

#[tokio::test]
async fn the_newest_saved_state_comes_back_with_its_mark() {
    for place in places() {
        let mut store = place.open().await;
        save(&mut store, 1).await.unwrap();
        save(&mut store, 5).await.unwrap();
        assert_eq!(store.newest().await.unwrap(), restored(5, false));
        store.committing(Epoch::new(5)).await.unwrap();
        assert_eq!(store.newest().await.unwrap(), restored(5, false));
        store.settled(Epoch::new(5)).await.unwrap();
        assert_eq!(store.newest().await.unwrap(), restored(5, true));
        drop(store);
        // An owner that only looks passes the mark on.
        assert_eq!(
            place.open().await.newest().await.unwrap(),
            restored(5, true)
        );
        assert_eq!(
            place.open().await.newest().await.unwrap(),
            restored(5, true)
        );
    }
}

#[tokio::test]
async fn a_mark_does_not_outlive_its_epoch() {
    for place in places() {
        let mut store = place.open().await;
        save(&mut store, 1).await.unwrap();
        store.settled(Epoch::new(1)).await.unwrap();
        save(&mut store, 2).await.unwrap();
        assert_eq!(store.newest().await.unwrap(), restored(2, false));
        drop(store);
        assert_eq!(
            place.open().await.newest().await.unwrap(),
            restored(2, false)
        );
    }
}

#[tokio::test]
async fn a_late_mark_of_an_older_epoch_is_accepted_and_says_nothing_of_the_newest() {
    for place in places() {
        let mut store = place.open().await;
        save(&mut store, 3).await.unwrap();
        save(&mut store, 7).await.unwrap();
        for epoch in [1, 3, 5] {
            store.settled(Epoch::new(epoch)).await.unwrap();
            store.committing(Epoch::new(epoch)).await.unwrap();
        }
        assert_eq!(store.newest().await.unwrap(), restored(7, false));
    }
}

#[tokio::test]
async fn a_settled_epoch_stays_settled() {
    for place in places() {
        let mut store = place.open().await;
        save(&mut store, 1).await.unwrap();
        store.settled(Epoch::new(1)).await.unwrap();
        store.committing(Epoch::new(1)).await.unwrap();
        assert_eq!(store.newest().await.unwrap(), restored(1, true));
    }
}

#[tokio::test]
async fn an_epoch_that_was_never_saved_cannot_be_marked() {
    for place in places() {
        let mut store = place.open().await;
        for (saved, asked) in [(None, 1), (Some(4), 5)] {
            if let Some(saved) = saved {
                save(&mut store, saved).await.unwrap();
            }
            for error in [
                store.settled(Epoch::new(asked)).await.unwrap_err(),
                store.committing(Epoch::new(asked)).await.unwrap_err(),
            ] {
                let StoreError::NeverSaved { epoch, newest } = error else {
                    panic!("{error}");
                };
                assert_eq!((epoch, newest), (Epoch::new(asked), saved.map(Epoch::new)));
            }
        }
        assert_eq!(store.newest().await.unwrap(), restored(4, false));
    }
}

#[tokio::test]
async fn an_epoch_that_is_not_newer_is_refused_and_changes_nothing() {
    for place in places() {
        let mut store = place.open().await;
        save(&mut store, 4).await.unwrap();
        drop(store);
        let mut store = place.open().await;
        for refused in [0, 3, 4] {
            let error = save(&mut store, refused).await.unwrap_err();
            let StoreError::OutOfOrder { epoch, newest } = error else {
                panic!("{error}");
            };
            assert_eq!((epoch, newest), (Epoch::new(refused), Epoch::new(4)));
        }
        assert_eq!(store.newest().await.unwrap(), restored(4, false));
        save(&mut store, 5).await.unwrap();
    }
}

#[tokio::test]
async fn a_replaced_owner_can_do_nothing_and_is_told_so_before_anything_else() {
    for place in places() {
        let mut old = place.open().await;
        save(&mut old, 1).await.unwrap();
        let new = place.open().await;
        // Epoch 1 would be out of order, epoch 9 was never saved: that it is not the owner counts.
        for epoch in [1, 2, 9] {
            assert!(save(&mut old, epoch).await.unwrap_err().is_not_owner());
            let epoch = Epoch::new(epoch);
            assert!(old.settled(epoch).await.unwrap_err().is_not_owner());
            assert!(old.committing(epoch).await.unwrap_err().is_not_owner());
        }
        assert!(old.newest().await.unwrap_err().is_not_owner());
        assert_eq!(new.newest().await.unwrap(), restored(1, false));
    }
}

#[tokio::test]
async fn an_empty_and_a_large_state_come_back_whole() {
    for place in places() {
        let mut store = place.open().await;
        store.save(Epoch::new(1), Bytes::new()).await.unwrap();
        assert_eq!(store.newest().await.unwrap().unwrap().state, Bytes::new());
        let large: Bytes = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        store.save(Epoch::new(2), large.clone()).await.unwrap();
        assert!(store.newest().await.unwrap().unwrap().state == large);
    }
}

#[test]
fn stores_and_their_futures_can_move_between_threads() {
    fn assert_send<T: Send>(_: T) {}
    let mut store = MemoryPlace::new().open();
    let mut boxed: Box<dyn CheckpointStore> = Box::new(MemoryPlace::new().open());
    assert_send(store.save(Epoch::new(1), Bytes::new()));
    assert_send(boxed.save(Epoch::new(1), Bytes::new()));
    assert_send(boxed.newest());
    assert_send(FileStore::open("nowhere"));
    assert_send(boxed);
}
