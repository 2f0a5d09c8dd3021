//! The faults that a store in memory can play.

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, Damage, MemoryFault, MemoryPlace, Progress, StoreError};
use connector_core::Epoch;

const ONE: Epoch = Epoch::new(1);
const TWO: Epoch = Epoch::new(2);

fn durable(place: &MemoryPlace) -> Option<Epoch> {
    place.durable().map(|restored| restored.epoch)
}

#[tokio::test]
async fn a_refused_save_is_not_durable_and_the_next_one_is() {
    let place = MemoryPlace::new();
    let mut store = place.open();
    place.fail_next(MemoryFault::SaveRefused);
    let error = store.save(ONE, Bytes::new()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotSaved { epoch: ONE, .. }));
    assert_eq!(durable(&place), None);
    store.save(ONE, Bytes::new()).await.unwrap();
    assert_eq!(durable(&place), Some(ONE));
}

#[tokio::test]
async fn an_unreported_save_is_durable_and_may_be_saved_again() {
    let place = MemoryPlace::new();
    let mut store = place.open();
    place.fail_next(MemoryFault::SaveUnreported);
    store.save(ONE, Bytes::new()).await.unwrap_err();
    assert_eq!(durable(&place), Some(ONE));
    assert!(matches!(
        store.settled(ONE).await.unwrap_err(),
        StoreError::NeverSaved { .. }
    ));
    store.save(ONE, Bytes::new()).await.unwrap();
    store.settled(ONE).await.unwrap();
    assert_eq!(place.progress(), Some((ONE, Progress::Settled)));
}

#[tokio::test]
async fn an_owner_that_reads_an_unreported_save_back_may_mark_it() {
    let place = MemoryPlace::new();
    let mut store = place.open();
    place.fail_next(MemoryFault::SaveUnreported);
    store.save(ONE, Bytes::new()).await.unwrap_err();
    assert_eq!(store.newest().await.unwrap().unwrap().epoch, ONE);
    store.settled(ONE).await.unwrap();
    assert!(store.newest().await.unwrap().unwrap().settled);
}

#[tokio::test]
async fn a_late_save_lands_unless_a_newer_state_or_owner_is_there() {
    let place = MemoryPlace::new();
    let mut store = place.open();
    place.fail_next(MemoryFault::SaveLate);
    store.save(ONE, Bytes::new()).await.unwrap_err();
    assert_eq!(durable(&place), None);
    place.land();
    assert_eq!(durable(&place), Some(ONE));

    place.fail_next(MemoryFault::SaveLate);
    store.save(TWO, Bytes::new()).await.unwrap_err();
    store.save(TWO.next(), Bytes::new()).await.unwrap();
    place.land();
    assert_eq!(durable(&place), Some(TWO.next()));

    place.fail_next(MemoryFault::SaveLate);
    store.save(Epoch::new(9), Bytes::new()).await.unwrap_err();
    let successor = place.open();
    place.land();
    assert_eq!(successor.newest().await.unwrap().unwrap().epoch, TWO.next());
}

#[tokio::test]
async fn marks_are_refused_or_lost_as_scripted() {
    let place = MemoryPlace::new();
    let mut store = place.open();
    store.save(ONE, Bytes::new()).await.unwrap();
    place.fail_next(MemoryFault::MarkRefused);
    place.fail_next(MemoryFault::MarkLost);
    assert!(matches!(
        store.committing(ONE).await.unwrap_err(),
        StoreError::NotMarked {
            mark: Progress::Committing,
            ..
        }
    ));
    store.settled(ONE).await.unwrap();
    assert_eq!(place.progress(), Some((ONE, Progress::Saved)));
    store.settled(ONE).await.unwrap();
    assert_eq!(place.progress(), Some((ONE, Progress::Settled)));
}

#[tokio::test]
async fn a_damaged_place_answers_an_error_and_never_an_older_state() {
    let place = MemoryPlace::new();
    let mut store = place.open();
    store.save(ONE, Bytes::new()).await.unwrap();
    store.save(TWO, Bytes::new()).await.unwrap();
    place.damage();
    for _ in 0..2 {
        let error = store.newest().await.unwrap_err();
        let StoreError::Damaged { damage, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(damage, Damage::Checksum);
        store = place.open();
    }
    place.repair();
    assert_eq!(place.open().newest().await.unwrap().unwrap().epoch, TWO);
}
