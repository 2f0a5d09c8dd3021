//! Hosts that decide about single messages.

use std::time::Duration;

use connector_core::Epoch;
use pubsub_source::{Disposition, SettleError};

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_host_without_checkpoints_settles_each_message() {
    let world = World::new();
    world.publish(0..100);
    let mut source = world.source().build().unwrap();
    for _ in 0..100 {
        let message = next(&mut source).await;
        let receipt = source.settle(message.delivery(), Disposition::Ack).unwrap();
        assert_eq!(receipt.await.unwrap().settled, 1);
    }
    assert_eq!(world.acked(), 100);
    nothing_for(&mut source, SECOND * 1800).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_given_back_comes_again() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    let first = next(&mut source).await;
    let receipt = source.settle(first.delivery(), Disposition::Nack).unwrap();
    assert_eq!(receipt.await.unwrap().settled, 1);
    let again = tokio::time::timeout(SECOND, next(&mut source))
        .await
        .unwrap();
    assert_eq!(again.id(), first.id());
    assert_ne!(again.delivery(), first.delivery());
}

#[tokio::test(start_paused = true)]
async fn a_message_can_be_held_back_for_a_while() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    let message = next(&mut source).await;
    let later = Disposition::NackAfter(Duration::from_millis(19_500));
    source
        .settle(message.delivery(), later)
        .unwrap()
        .await
        .unwrap();
    nothing_for(&mut source, SECOND * 19).await;
    assert_eq!(read(&mut source, 1).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_leaves_its_epoch() {
    let world = World::new();
    world.publish(0..3);
    let mut source = world.source().build().unwrap();
    let messages = [
        next(&mut source).await,
        next(&mut source).await,
        next(&mut source).await,
    ];
    drop(
        source
            .settle(messages[0].delivery(), Disposition::Ack)
            .unwrap(),
    );
    drop(
        source
            .settle(messages[1].delivery(), Disposition::Nack)
            .unwrap(),
    );
    let state = seal(&mut source, 1).await;
    assert_eq!(state.named(), 1);
    assert_eq!(commit(&mut source, 1).await.settled, 1);
}

#[tokio::test(start_paused = true)]
async fn a_sealed_delivery_is_settled_by_its_commit_only() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    let message = next(&mut source).await;
    seal(&mut source, 7).await;
    let refused = source.settle(message.delivery(), Disposition::Nack);
    let Err(SettleError::Sealed { epoch, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(epoch, Epoch::new(7));
    assert_eq!(commit(&mut source, 7).await.settled, 1);
    let refused = source.settle(message.delivery(), Disposition::Ack);
    assert!(matches!(refused, Err(SettleError::Unknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_services_limit_is_refused_and_changes_nothing() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    let message = next(&mut source).await;
    let too_long = Disposition::NackAfter(SECOND * 601);
    let refused = source.settle(message.delivery(), too_long);
    assert!(matches!(refused, Err(SettleError::DelayTooLong { .. })));
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 1);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_stays_the_same_when_its_message_comes_again() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    let message = next(&mut source).await;
    assert!(world.emulator.redeliver_early(SUBSCRIPTION, message.id()));
    nothing_for(&mut source, SECOND).await;
    let receipt = source.settle(message.delivery(), Disposition::Ack).unwrap();
    assert_eq!(receipt.await.unwrap().settled, 1);
    assert_eq!(world.acked(), 1);
}
