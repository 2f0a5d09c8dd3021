//! What a host learns of acknowledgements that the service does not confirm.

use std::time::Duration;

use connector_core::{Checkpoint, CheckpointError, Epoch};
use gcp_emulator::{Code, Fault, Method, Rule};

use crate::{listening::listen, log::Loud, world::*};

const SECOND: Duration = Duration::from_secs(1);

fn refusing() -> Rule {
    Rule::on(Method::Acknowledge).then(Fault::answer(Code::Unavailable, "not now"))
}

#[tokio::test(start_paused = true)]
async fn a_receipt_that_is_not_confirmed_in_time_fails_and_its_commit_goes_on() {
    let world = World::new();
    world.publish(0..10);
    let mut source = world.source().confirm_acks(SECOND * 5).build().unwrap();
    read(&mut source, 10).await;
    let state = seal(&mut source, 1).await;
    let outage = world.emulator.faults().add(refusing());
    let started = tokio::time::Instant::now();
    let error = source.commit(Epoch::new(1)).await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 5);
    let CheckpointError::Unconfirmed {
        epoch,
        pending,
        after,
        ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!((epoch.get(), *pending, *after), (1, 10, SECOND * 5));
    let text = error.to_string();
    assert!(
        text.contains("10 items") && text.contains("still being sent"),
        "{text}"
    );
    assert_eq!(source.stats().unconfirmed_commits, 1);
    assert_eq!(state.named(), 10);

    // Nothing was taken back: later states name them, and they stay leased until they are confirmed.
    tokio::time::sleep(SECOND * 300).await;
    assert_eq!(seal(&mut source, 2).await.named(), 10);
    assert!(world.emulator.faults().remove(outage));
    world.until_acked(10).await;
    assert_eq!(world.record().lapses, 0);
    assert_eq!(commit(&mut source, 2).await.total(), 0);
    assert_eq!(source.stats().acknowledged, 10);
}

#[tokio::test(start_paused = true)]
async fn the_next_commit_covers_what_the_failed_one_left() {
    let world = World::new();
    world.publish(0..2);
    let mut source = world.source().confirm_acks(SECOND).build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    let outage = world.emulator.faults().add(refusing());
    assert!(source.commit(Epoch::new(1)).await.is_err());
    read(&mut source, 1).await;
    seal(&mut source, 2).await;
    let error = source.commit(Epoch::new(2)).await.unwrap_err();
    assert!(
        matches!(error, CheckpointError::Unconfirmed { pending: 2, .. }),
        "{error:?}"
    );
    assert!(world.emulator.faults().remove(outage));
    world.until_acked(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_receipt_waits_for_ever_where_nobody_asked_for_a_confirmation() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    let outage = world.emulator.faults().add(refusing());
    let mut receipt = source.commit(Epoch::new(1));
    tokio::time::sleep(SECOND * 3600).await;
    assert!(receipt.try_now().is_none());
    assert!(world.emulator.faults().remove(outage));
    assert_eq!(receipt.await.unwrap().settled, 1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_does_not_finish_says_what_it_waits_for() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    world.publish(0..7);
    let mut source = world.source().build().unwrap();
    read(&mut source, 7).await;
    seal(&mut source, 1).await;
    world.emulator.faults().add(refusing());
    let receipt = source.commit(Epoch::new(1));
    tokio::time::sleep(SECOND * 59).await;
    let about = |loud: &Loud| loud.matching("A commit does not finish");
    assert_eq!(about(&loud).len(), 0);
    tokio::time::sleep(SECOND * 541).await;
    let lines = about(&loud);
    assert_eq!(lines.len(), 4, "after 1, 2, 4 and 8 minutes: {lines:?}");
    let first = &lines[0];
    assert!(
        first.contains("unconfirmed=7") && first.contains("not now"),
        "{first}"
    );
    assert!(first.contains("epoch=1"), "{first}");
    assert!(source.stats().oldest_commit_seconds > 599.0);
    drop(receipt);
}

/// Without a confirmation a host would settle what it gave up long ago.
#[tokio::test(start_paused = true)]
async fn a_settled_delivery_whose_lease_ended_is_told_as_lapsed() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 10,
    );
    world.publish([1]);
    let mut source = world.source().max_extension(SECOND * 10).build().unwrap();
    let message = next(&mut source).await;
    let down = Rule::on(Method::ModifyAckDeadline).then(Fault::answer(Code::Unavailable, ""));
    world.emulator.faults().add(down);
    let pulls = Rule::on(Method::StreamingPull).then(Fault::answer(Code::Unavailable, ""));
    world.emulator.faults().add(pulls);
    world.emulator.drop_connections();
    tokio::time::sleep(SECOND * 15).await;
    let receipt = source
        .settle(message.delivery(), pubsub_source::Disposition::Ack)
        .unwrap();
    assert_eq!(receipt.await.unwrap().lapsed, 1);
}
