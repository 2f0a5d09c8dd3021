//! Splits that are paused, parked and resumed.

use std::time::Duration;

use connector_core::Limits;
use futures::StreamExt;
use gcp_emulator::pubsub::proto::PubsubMessage;
use pubsub_source::{BuildError, Disposition, PubsubSource, SourceError, SubscriptionName};

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

const BOTH: [&str; 2] = [SUBSCRIPTION, OTHER];

/// A world whose subscriptions redeliver nothing by themselves within a test.
fn patient_world() -> World {
    World::with(
        |server| server.response_messages(10),
        |settings| settings.ack_deadline_seconds = 600,
    )
    .with_other(|settings| settings.ack_deadline_seconds = 600)
}

fn name(subscription: &str) -> SubscriptionName {
    subscription.parse().unwrap()
}

fn outstanding(world: &World, subscription: &str) -> usize {
    let seen = world.emulator.observe();
    seen.subscription(subscription).outstanding
}

/// Lets the host poll for a while, and answers what it got.
async fn poll_for(source: &mut PubsubSource, span: Duration) -> Vec<u64> {
    let mut numbers = Vec::new();
    let until = tokio::time::Instant::now() + span;
    while let Ok(message) = tokio::time::timeout_at(until, source.next()).await {
        numbers.push(number(&message.unwrap().unwrap()));
    }
    numbers
}

#[tokio::test(start_paused = true)]
async fn a_paused_split_hands_nothing_out_and_the_others_go_on() {
    let world = patient_world().with_both_published(0..30, 100..130);
    let mut source = world.source_of(&BOTH).build().unwrap();
    assert!(source.pause(&name(SUBSCRIPTION)));
    assert!(source.is_paused(&name(SUBSCRIPTION)) && !source.is_paused(&name(OTHER)));
    let got = poll_for(&mut source, SECOND * 10).await;
    assert_eq!(sorted(got), (100..130).collect::<Vec<_>>());
    let stats = source.stats();
    assert_eq!((stats.paused, stats.parked, stats.buffered), (1, 0, 30));
    assert!(stats.paused_seconds >= 10.0);

    assert!(source.resume(&name(SUBSCRIPTION)));
    let rest = tokio::time::timeout(SECOND, read(&mut source, 30)).await;
    assert_eq!(rest.unwrap(), (0..30).collect::<Vec<_>>(), "without a wait");
    assert_eq!(source.stats().paused, 0);
}

/// What the handle has taken in bulk is held back like the rest.
#[tokio::test(start_paused = true)]
async fn a_pause_in_the_middle_of_a_response_holds_the_rest_of_it() {
    let world = patient_world().with_both_published(0..20, []);
    let mut source = world.source_of(&BOTH).build().unwrap();
    assert_eq!(read(&mut source, 3).await, [0, 1, 2]);
    source.pause(&name(SUBSCRIPTION));
    nothing_for(&mut source, SECOND).await;
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 3, "and no more");
    source.resume(&name(SUBSCRIPTION));
    assert_eq!(read(&mut source, 17).await, (3..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn below_its_limit_a_paused_split_keeps_its_streams_and_its_leases() {
    let world = patient_world().with_both_published(0..50, []);
    let mut source = world.source_of(&BOTH).build().unwrap();
    source.pause(&name(SUBSCRIPTION));
    poll_for(&mut source, SECOND * 600).await;
    assert_eq!(outstanding(&world, SUBSCRIPTION), 50);
    let record = world.record();
    assert_eq!((record.delivered, record.lapses, record.nacks), (50, 0, 0));
    assert_eq!(record.streams.len(), 1);
    assert_eq!(record.streams_opened, 1, "it was never closed");
    source.resume(&name(SUBSCRIPTION));
    assert_eq!(read(&mut source, 50).await.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn beyond_its_limit_a_paused_split_is_parked_and_others_get_its_messages() {
    let world = patient_world().with_both_published(0..100, []);
    let mut source = world
        .source_of(&BOTH)
        .paused_limit(Limits::new(40, 1 << 20))
        .build()
        .unwrap();
    let held = read(&mut source, 15).await;
    seal(&mut source, 1).await;
    source.pause(&name(SUBSCRIPTION));
    poll_for(&mut source, SECOND * 5).await;
    let stats = source.stats();
    assert_eq!((stats.parked, stats.parks, stats.buffered), (1, 1, 0));
    assert_eq!(outstanding(&world, SUBSCRIPTION), 15, "what was handed out");
    assert!(world.record().streams.is_empty());

    // Another subscriber gets everything else at once, and only that.
    let mut other = world.source().build().unwrap();
    let theirs = tokio::time::timeout(SECOND * 5, read(&mut other, 85)).await;
    let theirs = theirs.unwrap();
    poll_for(&mut source, SECOND * 300).await;
    nothing_for(&mut other, SECOND).await;
    let all = sorted([held, theirs].concat());
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    assert_eq!(
        commit(&mut source, 1).await.settled,
        15,
        "its leases lasted"
    );

    world.publish([500]);
    nothing_for(&mut source, SECOND * 60).await;
    other.close().await.unwrap();
    source.resume(&name(SUBSCRIPTION));
    let mut back = read(&mut source, 86).await;
    assert_eq!(back.pop_if(|number| *number == 500), Some(500));
    let stats = source.stats();
    assert_eq!((stats.paused, stats.parked, stats.parks), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_split_that_is_paused_when_it_holds_too_much_is_parked_at_once() {
    let world = patient_world().with_both_published(0..100, []);
    let mut source = world
        .source_of(&BOTH)
        .paused_limit(Limits::new(40, 1 << 20))
        .build()
        .unwrap();
    read(&mut source, 1).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(source.stats().buffered, 99);
    // Nothing comes any more, and nobody polls.
    source.pause(&name(SUBSCRIPTION));
    let given_back = world
        .emulator
        .wait_until(
            |seen| seen.subscription(SUBSCRIPTION).nacks >= 99,
            SECOND * 5,
        )
        .await;
    assert!(given_back, "{} of 99", world.record().nacks);
}

/// A megabyte and more is on its way when the streams are closed, leased and unread.
#[tokio::test(start_paused = true)]
async fn what_was_on_its_way_when_a_split_is_parked_is_given_back_too() {
    let world = patient_world();
    let message = PubsubMessage {
        data: vec![b'7'; 50_000].into(),
        ..PubsubMessage::default()
    };
    for _ in 0..4 {
        let request = vec![message.clone(); 100];
        world.emulator.publish(TOPIC, request).unwrap();
    }
    let mut source = world
        .source_of(&BOTH)
        .paused_limit(Limits::new(40, 16 << 20))
        .build()
        .unwrap();
    source.pause(&name(SUBSCRIPTION));
    poll_for(&mut source, SECOND * 5).await;
    assert_eq!(source.stats().parked, 1);
    let record = world.record();
    assert!(record.delivered > 41 + 10, "{} delivered", record.delivered);
    assert_eq!(record.outstanding, 0, "of {}", record.delivered);
}

#[tokio::test(start_paused = true)]
async fn each_key_goes_on_in_order_after_its_split_was_parked() {
    let world = World::with(
        |server| server.response_messages(10),
        |settings| {
            settings.ack_deadline_seconds = 600;
            settings.enable_message_ordering = true;
        },
    );
    for value in 0..60u64 {
        let message = PubsubMessage {
            data: value.to_string().into(),
            ordering_key: format!("key {}", value % 3),
            ..PubsubMessage::default()
        };
        world.emulator.publish(TOPIC, vec![message]).unwrap();
    }
    let mut source = world
        .source()
        .message_ordering(true)
        .paused_limit(Limits::new(5, 16 << 20))
        .build()
        .unwrap();
    let mut numbers = read(&mut source, 13).await;
    seal(&mut source, 1).await;
    source.pause(&name(SUBSCRIPTION));
    assert!(poll_for(&mut source, SECOND * 30).await.is_empty());
    assert_eq!(source.stats().parked, 1);
    assert_eq!(commit(&mut source, 1).await.settled, 13);
    source.resume(&name(SUBSCRIPTION));
    numbers.extend(read(&mut source, 47).await);
    nothing_for(&mut source, SECOND * 120).await;
    for key in 0..3 {
        let of_key: Vec<u64> = numbers.iter().copied().filter(|n| n % 3 == key).collect();
        let expected: Vec<u64> = (0..60).filter(|n| n % 3 == key).collect();
        assert_eq!(of_key, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_split_is_never_parked_however_much_it_holds() {
    let world = patient_world().with_both_published(0..100, []);
    let mut source = world
        .source_of(&BOTH)
        .paused_limit(Limits::new(5, 1 << 20))
        .build()
        .unwrap();
    read(&mut source, 1).await;
    tokio::time::sleep(SECOND * 100).await;
    let stats = source.stats();
    assert_eq!((stats.parks, stats.buffered), (0, 99));
}

/// The buffer is one for all: what a paused split fills of it is missing for the others.
#[tokio::test(start_paused = true)]
async fn a_paused_split_does_not_starve_a_running_one() {
    let world = patient_world().with_both_published(0..400, 1000..1400);
    let buffer = Limits::new(100, 64 << 20);
    let mut source = world.source_of(&BOTH).buffer(buffer).build().unwrap();
    source.pause(&name(SUBSCRIPTION));
    let got = read(&mut source, 400).await;
    assert!(got.iter().all(|number| *number >= 1000));
    nothing_for(&mut source, SECOND * 60).await;
    let split = source.stats_by_split();
    let running = split.iter().find(|(name, _)| name.as_str() == OTHER);
    assert_eq!(running.unwrap().1.handed_out, 400);
}

/// Each of the subscriptions may be far ahead of a host that does not poll.
#[tokio::test(start_paused = true)]
async fn a_host_that_stops_polling_never_makes_the_source_grow_past_its_budget() {
    let world = patient_world();
    let body = vec![b'7'; 50_000];
    for topic in [TOPIC, OTHER_TOPIC] {
        for _ in 0..4 {
            let message = PubsubMessage {
                data: body.clone().into(),
                ..PubsubMessage::default()
            };
            world.emulator.publish(topic, vec![message; 100]).unwrap();
        }
    }
    let bound = 4 << 20;
    let mut source = world
        .source_of(&BOTH)
        .streams(2)
        .buffer(Limits::new(10_000, bound))
        .build()
        .unwrap();
    assert!(source.next().await.is_some());
    // A response holds ten messages.
    let overshoot = 4 * 10 * 51_000;
    for second in 0..200 {
        tokio::time::sleep(SECOND).await;
        let held = source.stats().buffered_bytes;
        assert!(
            held <= bound + overshoot,
            "{held} bytes after {second} seconds"
        );
    }
    assert!(source.stats().buffered_bytes >= bound / 2);
}

#[tokio::test(start_paused = true)]
async fn a_paused_split_still_fails_and_a_parked_one_when_it_is_resumed() {
    for parked in [false, true] {
        let world = patient_world().with_both_published(0..100, []);
        let limit = if parked { 10 } else { 2000 };
        let mut source = world
            .source_of(&BOTH)
            .paused_limit(Limits::new(limit, 1 << 20))
            .build()
            .unwrap();
        source.pause(&name(SUBSCRIPTION));
        poll_for(&mut source, SECOND).await;
        assert_eq!(source.stats().parked, usize::from(parked));
        world.emulator.delete_subscription(SUBSCRIPTION).unwrap();
        world.emulator.drop_connections();
        if parked {
            nothing_for(&mut source, SECOND * 60).await;
            source.resume(&name(SUBSCRIPTION));
        }
        let error = last_word(&mut source).await;
        assert!(
            matches!(&error, SourceError::Missing { subscription, .. }
                if subscription.as_str() == SUBSCRIPTION),
            "{error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn closing_a_source_with_a_parked_split_finds_nothing_to_give_back_there() {
    let world = patient_world().with_both_published(0..100, 200..210);
    let mut source = world
        .source_of(&BOTH)
        .paused_limit(Limits::new(10, 1 << 20))
        .build()
        .unwrap();
    source.pause(&name(SUBSCRIPTION));
    assert_eq!(read(&mut source, 10).await.len(), 10);
    poll_for(&mut source, SECOND * 5).await;
    assert_eq!(source.stats().parked, 1);
    let before = world.record().nacks;
    source.close().await.unwrap();
    assert_eq!(world.record().nacks, before);
    assert_eq!(world.emulator.observe().subscription(OTHER).nacks, 10);
}

/// A host without checkpoints decides message by message, and of a paused split about none.
#[tokio::test(start_paused = true)]
async fn a_host_that_settles_one_split_need_not_checkpoint_for_a_paused_one() {
    let world = patient_world().with_both_published(0..10, [100]);
    let mut source = world.source_of(&BOTH).build().unwrap();
    source.pause(&name(SUBSCRIPTION));
    let message = next(&mut source).await;
    let settled = source.settle(message.delivery(), Disposition::Ack);
    assert_eq!(settled.unwrap().await.unwrap().settled, 1);
    nothing_for(&mut source, SECOND * 1200).await;
    source.resume(&name(SUBSCRIPTION));
    assert_eq!(read(&mut source, 10).await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_something_else_is_no_pause() {
    let world = patient_world().with_both_published([1], []);
    let mut source = world.source().build().unwrap();
    assert!(!source.pause(&name(OTHER)));
    assert!(!source.resume(&name(OTHER)));
    assert_eq!(read(&mut source, 1).await, [1]);
    assert!(source.resume(&name(SUBSCRIPTION)), "it was not paused");
}

#[test]
fn a_paused_limit_beyond_a_quarter_of_the_buffer_is_refused_with_both_values() {
    let source = PubsubSource::builder(name(SUBSCRIPTION))
        .buffer(Limits::new(100, 1000))
        .paused_limit(Limits::new(25, 251));
    let error = source.build_with_driver().unwrap_err();
    assert!(
        matches!(
            &error,
            BuildError::Contradiction {
                first: "paused_limit",
                second: "buffer",
                ..
            }
        ),
        "{error}"
    );
}
