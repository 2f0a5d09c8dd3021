//! How a source ends on purpose, and what becomes of its leases then.

use std::time::Duration;

use connector_core::{Checkpoint, Epoch};
use futures::StreamExt;
use gcp_emulator::{Body, Method, pubsub::proto::DeadLetterPolicy};
use pubsub_source::{BuildError, OnDrop, PubsubSource};

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

/// Reads to the end of the stream.
async fn rest(source: &mut PubsubSource) -> Vec<u64> {
    let mut numbers = Vec::new();
    let reading = async {
        while let Some(message) = source.next().await {
            numbers.push(number(&message.unwrap()));
        }
    };
    tokio::time::timeout(LONG, reading).await.unwrap();
    numbers
}

#[tokio::test(start_paused = true)]
async fn a_stopped_source_hands_out_what_it_has_fetched_and_commits_it_before_it_closes() {
    let world = World::with(|server| server.response_messages(10), |_| {});
    world.publish(0..35);
    let limits = connector_core::Limits::items(20);
    let mut source = world.source().buffer(limits).build().unwrap();
    let mut all = read(&mut source, 5).await;
    let fetched = source.stats().buffered;
    source.stop();
    let last = rest(&mut source).await;
    assert_eq!(last.len(), fetched, "what was fetched, and nothing more");
    all.extend(last);
    assert!(source.next().await.is_none());
    // The end of the stream is not the end of the source.
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, all.len());
    source.close().await.unwrap();
    assert_eq!(world.acked(), all.len());
    // The others are free: nobody holds them.
    let mut other = world.source().build().unwrap();
    let others = 35 - all.len();
    let left = tokio::time::timeout(SECOND * 5, read(&mut other, others)).await;
    all.extend(left.unwrap());
    assert_eq!(sorted(all), (0..35).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_stream_that_waits_for_a_message() {
    let world = World::new();
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND).await;
    source.stop();
    assert_eq!(rest(&mut source).await, [0; 0]);
    // The service has seen the end of the stream too.
    tokio::time::sleep(SECOND).await;
    world.publish([1]);
    assert!(source.next().await.is_none());
    source.close().await.unwrap();
    assert_eq!(world.record().delivered, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_fetched_of_a_paused_subscription_is_given_back_by_a_stop() {
    let world = World::new();
    world.publish(0..10);
    let mut source = world.source().build().unwrap();
    read(&mut source, 4).await;
    assert!(source.pause(&SUBSCRIPTION.parse().unwrap()));
    source.stop();
    assert_eq!(rest(&mut source).await, [0; 0]);
    let mut other = world.source().build().unwrap();
    let left = tokio::time::timeout(SECOND * 5, read(&mut other, 6)).await;
    assert_eq!(left.unwrap().len(), 6);
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 4);
}

/// A source that has read 4 of 10 messages and ends, and what others get at once.
async fn ends(world: &World, choice: Option<OnDrop>) -> usize {
    world.publish(0..10);
    let mut builder = world.source();
    if let Some(choice) = choice {
        builder = builder.on_drop(choice);
    }
    let mut source = builder.build().unwrap();
    read(&mut source, 4).await;
    source.close().await.unwrap();
    let mut other = world.source().build().unwrap();
    let mut got = 0;
    while let Ok(message) = tokio::time::timeout(SECOND * 5, next(&mut other)).await {
        drop(message);
        got += 1;
    }
    got
}

fn with_dead_letters() -> World {
    World::with(
        |server| server,
        |settings| {
            settings.dead_letter_policy = Some(DeadLetterPolicy {
                dead_letter_topic: TOPIC.to_owned(),
                max_delivery_attempts: 5,
            });
        },
    )
}

#[tokio::test(start_paused = true)]
async fn a_source_that_ends_gives_everything_back_by_default() {
    assert_eq!(ends(&World::new(), None).await, 10);
}

#[tokio::test(start_paused = true)]
async fn where_a_dead_letter_policy_exists_what_was_handed_out_is_left_to_lapse() {
    let world = with_dead_letters();
    assert_eq!(ends(&world, None).await, 6, "only what nobody has tried");
    assert_eq!(world.record().nacks, 6);
}

#[tokio::test(start_paused = true)]
async fn a_host_may_ask_for_releases_where_a_dead_letter_policy_exists() {
    assert_eq!(ends(&with_dead_letters(), Some(OnDrop::Release)).await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_lets_its_leases_lapse_sends_nothing_and_others_wait_for_their_end() {
    let world = World::new();
    assert_eq!(ends(&world, Some(OnDrop::Lapse)).await, 0);
    assert_eq!(world.record().nacks, 0);
    let mut other = world.source().build().unwrap();
    let all = tokio::time::timeout(SECOND * 61, read(&mut other, 10)).await;
    assert_eq!(all.unwrap().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_release_may_hold_messages_back_for_a_while() {
    let world = World::new();
    let choice = OnDrop::ReleaseAfter(Duration::from_millis(29_500));
    assert_eq!(ends(&world, Some(choice)).await, 0);
    let seen = world.emulator.observe();
    for call in seen.requests_of(Method::ModifyAckDeadline) {
        assert!(matches!(&call.body, Body::ModifyAckDeadline(request)
            if request.ack_deadline_seconds == 30));
    }
    let mut other = world.source().build().unwrap();
    let all = tokio::time::timeout(SECOND * 30, read(&mut other, 10)).await;
    assert_eq!(all.unwrap().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_later_than_the_service_allows_is_refused() {
    let world = World::new();
    let choice = OnDrop::ReleaseAfter(SECOND * 601);
    let refused = world.source().on_drop(choice).build();
    assert!(matches!(
        refused,
        Err(BuildError::Setting {
            setting: "on_drop",
            ..
        })
    ));
}

#[tokio::test(start_paused = true)]
async fn what_was_committed_is_acknowledged_whatever_becomes_of_the_rest() {
    for choice in [OnDrop::Release, OnDrop::Lapse, OnDrop::ReleaseAfter(SECOND)] {
        let world = World::new();
        world.publish(0..10);
        let mut source = world.source().on_drop(choice).build().unwrap();
        read(&mut source, 3).await;
        seal(&mut source, 1).await;
        read(&mut source, 2).await;
        let receipt = source.commit(Epoch::new(1));
        source.close().await.unwrap();
        assert_eq!(receipt.await.unwrap().settled, 3, "{choice:?}");
        assert_eq!(world.acked(), 3, "{choice:?}");
    }
}
