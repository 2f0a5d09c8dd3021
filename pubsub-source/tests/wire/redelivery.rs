//! What happens when the service delivers a message again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use connector_core::Checkpoint;
use gcp_emulator::{
    Code, Fault, Method, Rule,
    pubsub::state::{LateAcks, OnStreamClose},
};

use pubsub_source::{Endpoint, PubsubSource};

use crate::world::*;

/// A stream that the service closes may have all its messages sent again at once, with new ack ids.
#[tokio::test(start_paused = true)]
async fn messages_that_come_again_after_a_stream_closed_are_handed_out_once_and_acked_by_the_newest_id()
 {
    let world = World::with(
        |server| server.on_stream_close(OnStreamClose::RedeliverAtOnce),
        |_| {},
    );
    world.emulator.faults().add(
        Rule::on(Method::StreamingPull)
            .once()
            .then(Fault::answer(Code::Unavailable, "closing").after_responses(1)),
    );
    world.publish([1, 2]);
    let mut source = world.source().build().unwrap();
    assert_eq!(sorted(read(&mut source, 2).await), [1, 2]);
    world.publish([3]);
    assert_eq!(read(&mut source, 1).await, [3]);
    assert_eq!(source.stats().redelivered, 2);
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 3);
    assert_eq!(world.acked(), 3);
    nothing_for(&mut source, Duration::from_secs(120)).await;
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_under_a_live_lease_renews_what_is_held() {
    let world = World::with(|server| server.late_acks(LateAcks::Never), |_| {});
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    let message = next(&mut source).await;
    assert!(world.emulator.redeliver_early(SUBSCRIPTION, message.id()));
    nothing_for(&mut source, Duration::from_secs(5)).await;
    assert_eq!(source.stats().redelivered, 1);
    seal(&mut source, 1).await;
    assert_eq!(
        commit(&mut source, 1).await.settled,
        1,
        "under the newest ack id"
    );
    assert_eq!(world.acked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_of_what_is_being_acknowledged_is_acknowledged_by_its_new_id() {
    let world = World::with(|server| server.late_acks(LateAcks::Never), |_| {});
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    let message = next(&mut source).await;
    seal(&mut source, 1).await;
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .once()
            .then(Fault::Delay(Duration::from_secs(5))),
    );
    let receipt = source.commit(connector_core::Epoch::new(1));
    world.until_called(Method::Acknowledge, 1).await;
    assert!(world.emulator.redeliver_early(SUBSCRIPTION, message.id()));
    nothing_for(&mut source, Duration::from_secs(20)).await;
    assert_eq!(receipt.await.unwrap().settled, 1);
    assert_eq!(world.acked(), 1);
    assert_eq!(world.emulator.observe().count(Method::Acknowledge), 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_restored_state_names_is_acknowledged_when_it_comes_again_and_not_handed_out() {
    let world = World::new();
    world.publish(1..=4);
    let (mut source, driver) = world.source().build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    let covered = read(&mut source, 2).await;
    let state = seal(&mut source, 1).await;
    driver.abort();
    drop(driver.await);
    drop(source);

    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let receipt = source.restored();
    let rest = read(&mut source, 2).await;
    assert_eq!(sorted([covered, rest].concat()), [1, 2, 3, 4]);
    nothing_for(&mut source, Duration::from_secs(120)).await;
    world.until_acked(2).await;
    assert_eq!(source.stats().recognised, 2);
    assert_eq!(source.stats().seen, 0, "an entry is used up");
    assert_eq!(receipt.await.unwrap().lapsed, 2);
}

/// An operator seeks back, or an id comes again for another reason: once used up, it is handed out.
#[tokio::test(start_paused = true)]
async fn a_replay_after_the_first_recognition_is_handed_out() {
    let world = World::with(
        |server| server,
        |settings| settings.retain_acked_messages = true,
    );
    world.publish([1]);
    let (mut source, driver) = world.source().build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    read(&mut source, 1).await;
    let state = seal(&mut source, 1).await;
    driver.abort();
    drop(driver.await);
    drop(source);

    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    nothing_for(&mut source, Duration::from_secs(90)).await;
    world.until_acked(1).await;
    world.seek_to_the_beginning().await;
    assert_eq!(read(&mut source, 1).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn forgetting_the_seen_ids_lets_a_replay_through() {
    let world = World::new();
    world.publish([1]);
    let (mut source, driver) = world.source().build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    read(&mut source, 1).await;
    let state = seal(&mut source, 1).await;
    driver.abort();
    drop(driver.await);
    drop(source);

    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    source.forget_seen();
    assert_eq!(read(&mut source, 1).await, [1]);
}

/// Google's emulator starts again at id "1", and ids are unique per topic only.
#[tokio::test(start_paused = true)]
async fn another_message_under_a_restored_id_is_handed_out() {
    let world = World::with(
        |server| server.wall_clock(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000)),
        |_| {},
    );
    world.publish([1]);
    let (mut source, driver) = world.source().build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    read(&mut source, 1).await;
    let state = seal(&mut source, 1).await;
    driver.abort();
    drop(driver.await);
    drop(source);
    drop(world);

    // A server that forgot everything, and gives the same ids to other messages, later.
    let world = World::with(
        |server| server.wall_clock(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(9_000)),
        |_| {},
    );
    world.publish([2]);
    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    assert_eq!(read(&mut source, 1).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_delivery_is_told_and_acknowledged_when_it_comes_again() {
    let world = World::with(|server| server.late_acks(LateAcks::Never), |_| {});
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    // Nothing gets through for two minutes: the lease ends on both sides.
    let extend = world
        .emulator
        .faults()
        .add(Rule::on(Method::ModifyAckDeadline).then(Fault::answer(Code::Unavailable, "")));
    let acks = world
        .emulator
        .faults()
        .add(Rule::on(Method::Acknowledge).then(Fault::answer(Code::Unavailable, "")));
    let pulls = world
        .emulator
        .faults()
        .add(Rule::on(Method::StreamingPull).then(Fault::answer(Code::Unavailable, "")));
    world.emulator.drop_connections();
    tokio::time::sleep(Duration::from_secs(120)).await;
    seal(&mut source, 1).await;
    let receipt = source.commit(connector_core::Epoch::new(1));
    for rule in [extend, acks] {
        assert!(world.emulator.faults().remove(rule));
    }
    let committed = receipt.await.unwrap();
    assert_eq!((committed.settled, committed.lapsed), (0, 1));
    assert!(world.emulator.faults().remove(pulls));
    nothing_for(&mut source, Duration::from_secs(60)).await;
    world.until_acked(1).await;
    assert_eq!(source.stats().recognised, 1);
}

/// An emulator that is started again has forgotten everything, and counts ids from the beginning.
#[tokio::test(start_paused = true)]
async fn a_new_message_under_the_id_of_a_held_one_is_handed_out() {
    let (first, second) = (World::new(), World::new());
    let restarted = Arc::new(AtomicBool::new(false));
    let dial = {
        let (before, after) = (first.emulator.dialer(), second.emulator.dialer());
        let restarted = Arc::clone(&restarted);
        move || {
            if restarted.load(Ordering::Relaxed) {
                after()
            } else {
                before()
            }
        }
    };
    first.publish([1, 2]);
    let source = PubsubSource::builder(SUBSCRIPTION.parse().unwrap());
    let mut source = source.endpoint(Endpoint::in_memory(dial)).build().unwrap();
    let (one, two) = (next(&mut source).await, next(&mut source).await);
    seal(&mut source, 1).await;

    restarted.store(true, Ordering::Relaxed);
    first.emulator.drop_connections();
    tokio::time::advance(Duration::from_secs(1)).await;
    second.publish([3, 4, 5]);
    let mut ids = Vec::new();
    let mut numbers = Vec::new();
    for _ in 0..3 {
        let message = next(&mut source).await;
        ids.push(message.id().to_owned());
        numbers.push(number(&message));
    }
    assert_eq!(sorted(numbers), [3, 4, 5]);
    assert!(ids.iter().any(|id| id == one.id()), "the ids come again");
    assert!(ids.iter().any(|id| id == two.id()), "the ids come again");
    assert_eq!(source.stats().redelivered, 0);

    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (0, 2));
    seal(&mut source, 2).await;
    assert_eq!(commit(&mut source, 2).await.settled, 3);
    assert_eq!(second.acked(), 3);
    nothing_for(&mut source, Duration::from_secs(120)).await;
}

/// The answer to the first try was lost, so the message may be under way once more when the second
/// is answered. Nothing was handed out since the restore that the id could be measured by.
#[tokio::test(start_paused = true)]
async fn a_recognised_message_that_crosses_its_second_acknowledgement_is_not_handed_out() {
    let world = World::new();
    world.publish([1]);
    let (mut source, driver) = world.source().build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    let id = next(&mut source).await.id().to_owned();
    let state = seal(&mut source, 1).await;
    driver.abort();
    drop(driver.await);
    drop(source);

    let faults = world.emulator.faults();
    let lost = Fault::answer(Code::Unavailable, "lost");
    faults.add(Rule::on(Method::Acknowledge).once().then(lost));
    faults.add(
        Rule::on(Method::Acknowledge)
            .once()
            .then(Fault::OkWithoutEffect),
    );
    let restored = world.source().restore([restored(1, &state)]);
    let mut source = restored.build().unwrap();
    let recognised = |source: &PubsubSource| source.stats().recognised;
    while world.emulator.observe().count(Method::Acknowledge) < 2 {
        nothing_for(&mut source, Duration::from_millis(100)).await;
    }
    nothing_for(&mut source, Duration::from_secs(1)).await;
    assert_eq!(recognised(&source), 1);
    assert!(world.emulator.redeliver_early(SUBSCRIPTION, &id));
    nothing_for(&mut source, Duration::from_secs(5)).await;
    assert_eq!(recognised(&source), 2);
    world.until_acked(1).await;
}
