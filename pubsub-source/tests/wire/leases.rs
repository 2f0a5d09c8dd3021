//! How long deliveries stay ours.

use std::time::Duration;

use connector_core::{Checkpoint, Epoch};
use gcp_emulator::{Body, Code, Fault, Method, Rule};
use pubsub_source::SourceError;

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_lease_is_extended_until_the_checkpoint_however_late_it_comes() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 10,
    );
    world.publish([1]);
    for lease in [10, 12, 14, 15, 60, 600] {
        let mut source = world
            .source()
            .max_extension(SECOND * lease)
            .stall_after(Duration::ZERO)
            .build()
            .unwrap();
        let delivered = world.record().delivered;
        assert_eq!(read(&mut source, 1).await, [1]);
        nothing_for(&mut source, SECOND * 40 + SECOND * lease * 2).await;
        assert_eq!(
            world.record().delivered,
            delivered + 1,
            "a lease of {lease} s"
        );
        source.close().await.unwrap();
    }
}

/// Buffered, handed out, sealed: all of them are kept alive.
#[tokio::test(start_paused = true)]
async fn everything_outstanding_is_extended_before_it_expires() {
    let world = World::new();
    world.publish(0..500);
    let mut source = world.source().max_extension(SECOND * 10).build().unwrap();
    read(&mut source, 100).await;
    seal(&mut source, 1).await;
    read(&mut source, 100).await;
    tokio::time::sleep(SECOND * 120).await;
    assert_eq!(world.record().lapses, 0);
    assert_eq!(world.record().delivered, 500);
    assert!(world.record().extensions >= 500 * 10);
    assert_eq!(
        read(&mut source, 300).await.len(),
        300,
        "the buffered ones are still ours"
    );
}

#[tokio::test(start_paused = true)]
async fn at_a_steady_cadence_nearly_nothing_is_extended() {
    let world = World::new();
    let mut source = world.source().first_outstanding(10_000).build().unwrap();
    let mut now = 0;
    for epoch in 1..=30 {
        world.publish(now..now + 500);
        now += 500;
        read(&mut source, 500).await;
        tokio::time::sleep(SECOND * 10).await;
        seal(&mut source, epoch).await;
        commit(&mut source, epoch).await;
    }
    let stats = source.stats();
    assert_eq!(stats.lease_seconds, 30);
    assert_eq!(stats.acknowledged, 15_000);
    assert!(
        stats.extended * 20 < stats.received,
        "{} of {}",
        stats.extended,
        stats.received
    );
    let record = world.record();
    let told = record.streams.values().map(|stream| stream.ack_deadline);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [SECOND * 30],
        "the server was told"
    );
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_fails_is_tried_again_in_time() {
    let world = World::new();
    world.publish(0..10);
    world.emulator.faults().add(
        Rule::on(Method::ModifyAckDeadline)
            .times(3)
            .then(Fault::answer(Code::Unavailable, "")),
    );
    let mut source = world.source().max_extension(SECOND * 10).build().unwrap();
    read(&mut source, 10).await;
    tokio::time::sleep(SECOND * 30).await;
    assert_eq!(world.record().lapses, 0);
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 10);
}

#[tokio::test(start_paused = true)]
async fn a_crashed_source_hides_its_messages_no_longer_than_the_longest_lease() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 10,
    );
    world.publish([1]);
    let (mut source, driver) = world.source().build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    tokio::time::sleep(SECOND * 30).await;
    driver.abort();
    drop(driver.await);
    drop(source);
    let mut other = world.source().build().unwrap();
    let arrives = tokio::time::timeout(SECOND * 60, next(&mut other)).await;
    assert_eq!(number(&arrives.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_too_long_is_given_back_and_its_late_commit_is_harmless() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().max_hold(SECOND * 120).build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    assert_eq!(
        read(&mut source, 1).await,
        [1],
        "given back, delivered and handed out again"
    );
    assert_eq!(source.stats().held_too_long, 1);
    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (0, 1));
    seal(&mut source, 2).await;
    assert_eq!(commit(&mut source, 2).await.settled, 1);
    world.until_acked(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_takes_no_checkpoints_is_told_so() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    let error = last_word(&mut source).await;
    let SourceError::Stalled { after, held, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((*after, *held), (SECOND * 600, 1));
    assert!(error.to_string().contains("stall_after"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn one_checkpoint_retires_the_watch_for_good() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    nothing_for(&mut source, SECOND * 1800).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_source_is_never_called_stalled() {
    let world = World::new();
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND * 3600).await;
}

/// A host that stands still so long that leases end does not get what is no longer its own.
#[tokio::test(start_paused = true)]
async fn messages_whose_lease_ended_in_the_buffer_are_not_handed_out() {
    let world = World::with(|server| server.response_messages(5), |_| {});
    world.publish(0..10);
    world
        .emulator
        .faults()
        .add(Rule::on(Method::ModifyAckDeadline).then(Fault::answer(Code::Unavailable, "")));
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    tokio::time::sleep(SECOND * 50).await;
    let pulls = world
        .emulator
        .faults()
        .add(Rule::on(Method::StreamingPull).then(Fault::answer(Code::Unavailable, "")));
    world.emulator.drop_connections();
    tokio::time::sleep(SECOND * 30).await;
    nothing_for(&mut source, SECOND).await;
    assert_eq!(source.stats().lapsed_in_buffer, 9);
    assert!(world.emulator.faults().remove(pulls));
    // They come again; the one that was handed out is recognised by being held.
    assert_eq!(read(&mut source, 9).await.len(), 9);
    nothing_for(&mut source, SECOND).await;
    assert!(source.stats().redelivered >= 1);
}

#[tokio::test(start_paused = true)]
async fn extensions_are_cut_like_acknowledgements() {
    let world = World::with(|server| server.ack_id_length(500), |_| {});
    world.publish(0..5000);
    let mut source = world
        .source()
        .first_outstanding(10_000)
        .max_extension(SECOND * 10)
        .build()
        .unwrap();
    read(&mut source, 5000).await;
    tokio::time::sleep(SECOND * 10).await;
    let seen = world.emulator.observe();
    let mut extended = 0;
    for call in seen.requests_of(Method::ModifyAckDeadline) {
        assert!(call.encoded_len <= 512_000, "{} bytes", call.encoded_len);
        let Body::ModifyAckDeadline(request) = &call.body else {
            panic!("a ModifyAckDeadline has its body")
        };
        assert!(request.ack_ids.len() <= 1000);
        extended += request.ack_ids.len();
    }
    assert!(extended >= 5000);
    assert_eq!(world.record().lapses, 0);
    let receipt = source.snapshot(Epoch::new(1));
    drop(receipt);
}
