//! Limits that several sources, or several streams, have together.

use std::time::Duration;

use connector_core::{Budget, Limits};
use futures::StreamExt;
use pubsub_source::{BuildError, PubsubSource};

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

/// What each of two sources may hold beyond the budget: a response of ten.
const OVERSHOOT: usize = 2 * 10;

fn two_of(world: &World, budget: &Budget) -> (PubsubSource, PubsubSource) {
    let of = |subscription: &'static str| {
        world
            .source_of(&[subscription])
            .instance(subscription)
            .budget(budget.clone())
            .build()
            .unwrap()
    };
    (of(SUBSCRIPTION), of(OTHER))
}

fn world_of_small_responses() -> World {
    World::with(|server| server.response_messages(10), |_| {}).with_other(|_| {})
}

#[tokio::test(start_paused = true)]
async fn two_sources_never_hold_more_than_their_one_budget() {
    let world = world_of_small_responses().with_both_published(0..500, 1000..1500);
    let budget = Budget::new(Limits::items(100));
    let (mut first, mut second) = two_of(&world, &budget);
    let mut got = Vec::new();
    for _ in 0..50 {
        got.extend(read(&mut first, 10).await);
        got.extend(read(&mut second, 10).await);
        let held = first.stats().buffered + second.stats().buffered;
        assert!(held <= 100 + OVERSHOOT, "{held}");
        // The rest of a response that is being handed out is on no account twice.
        assert!(budget.held().items >= held);
    }
    let all: Vec<u64> = (0..500).chain(1000..1500).collect();
    assert_eq!(sorted(got), all);
}

#[tokio::test(start_paused = true)]
async fn a_source_whose_host_stands_still_does_not_starve_the_other() {
    let world = world_of_small_responses().with_both_published(0..500, 1000..1500);
    let budget = Budget::new(Limits::items(100));
    let (mut stuck, mut other) = two_of(&world, &budget);
    read(&mut stuck, 1).await;
    tokio::time::sleep(SECOND * 5).await;
    let held = stuck.stats().buffered;
    assert!((60..=75 + 10).contains(&held), "{held}: all but a reserve");
    let got = tokio::time::timeout(SECOND * 60, read(&mut other, 500)).await;
    assert_eq!(got.unwrap(), (1000..1500).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_holds_nothing_is_admitted_however_small_the_budget_is() {
    let world = world_of_small_responses().with_both_published(0..50, 1000..1050);
    let budget = Budget::new(Limits::new(1, 1));
    let (mut first, mut second) = two_of(&world, &budget);
    read(&mut first, 1).await;
    let got = tokio::time::timeout(SECOND * 60, read(&mut second, 50)).await;
    assert_eq!(got.unwrap().len(), 50, "beside another that holds it all");
    assert_eq!(read(&mut first, 49).await.len(), 49);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_source_goes_on_as_soon_as_another_hands_out() {
    let world = world_of_small_responses().with_both_published(0..200, 1000..1200);
    let budget = Budget::new(Limits::items(40));
    let (mut first, mut second) = two_of(&world, &budget);
    read(&mut first, 1).await;
    tokio::time::sleep(SECOND).await;
    read(&mut second, 1).await;
    // Long enough to be told of, and not so long that anything lapses.
    tokio::time::sleep(SECOND * 12).await;
    assert!(second.stats().budget_wait_seconds >= 10.0);
    let before = second.stats().received;
    read(&mut first, 150).await;
    tokio::time::sleep(SECOND).await;
    assert!(second.stats().received > before, "unasked");
    read(&mut first, 49).await;
    assert_eq!(read(&mut second, 199).await.len(), 199);
    assert_eq!(second.stats().budget_wait_seconds, 0.0);
}

#[tokio::test(start_paused = true)]
async fn what_a_source_held_is_given_back_when_it_ends() {
    let world = world_of_small_responses().with_both_published(0..100, 1000..1100);
    let budget = Budget::new(Limits::items(1000));
    let (mut first, mut second) = two_of(&world, &budget);
    read(&mut first, 5).await;
    read(&mut second, 5).await;
    tokio::time::sleep(SECOND).await;
    // What was handed out is told with the next response.
    assert!((190..=200).contains(&budget.held().items));
    first.close().await.unwrap();
    assert!((95..=100).contains(&budget.held().items));
    assert!(first.next().await.is_none());
    drop(second);
    let mut rest = budget.held();
    for _ in 0..10 {
        tokio::time::sleep(SECOND).await;
        rest = budget.held();
    }
    assert_eq!(rest, Limits::default());
    drop(first);
    assert_eq!(budget.holders(), []);
}

#[tokio::test(start_paused = true)]
async fn a_paused_split_is_parked_before_it_starves_its_source_of_a_shared_budget() {
    let world = world_of_small_responses().with_both_published(0..500, 1000..1500);
    let budget = Budget::new(Limits::items(60));
    let mut source = world
        .source_of(&[SUBSCRIPTION, OTHER])
        .budget(budget.clone())
        .build()
        .unwrap();
    let mut greedy = world.source_of(&[OTHER]).instance("greedy");
    greedy = greedy.budget(budget.clone());
    let mut greedy = greedy.build().unwrap();
    read(&mut greedy, 1).await;
    tokio::time::sleep(SECOND).await;
    source.pause(&SUBSCRIPTION.parse().unwrap());
    let got = tokio::time::timeout(SECOND * 60, read(&mut source, 100)).await;
    assert_eq!(got.unwrap().len(), 100);
}

/// Whether messages or bytes are bounded: it holds for all streams together, and alone.
#[tokio::test(start_paused = true)]
async fn the_streams_together_are_never_told_more_bytes_than_the_bound() {
    let world = World::with(|server| server.response_messages(10), |_| {});
    world.publish(0..5000);
    let bound = 4000;
    let mut source = world
        .source()
        .streams(8)
        .outstanding_bytes(bound)
        .first_outstanding(100)
        .build()
        .unwrap();
    let mut got = 0;
    for epoch in 1..=40 {
        got += read(&mut source, 50).await.len();
        seal(&mut source, epoch).await;
        commit(&mut source, epoch).await;
        let record = world.record();
        let told = record.streams.values();
        let told = told.map(|stream| stream.max_outstanding_bytes.expect("each has its part"));
        assert!(told.sum::<u64>() <= bound);
        // A message may go beyond the limit of its stream.
        let out = record.outstanding_bytes as u64;
        assert!(out <= bound + 8 * 500, "{out} bytes");
    }
    assert_eq!(got, 2000);
}

/// Whoever wants no bound says so with the largest number there is.
#[tokio::test(start_paused = true)]
async fn bounds_beyond_all_numbers_are_none() {
    for first in [10, usize::MAX] {
        let world = World::new();
        world.publish(0..100);
        let mut source = world
            .source()
            .streams(2)
            .outstanding(usize::MAX)
            .first_outstanding(first)
            .outstanding_bytes(u64::MAX)
            .build()
            .unwrap();
        for epoch in 1..=10 {
            read(&mut source, 10).await;
            seal(&mut source, epoch).await;
            assert_eq!(commit(&mut source, epoch).await.settled, 10);
        }
        assert_eq!(world.acked(), 100);
    }
}

#[test]
fn fewer_bytes_than_streams_are_refused_with_both_values() {
    let source = PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
        .streams(4)
        .outstanding_bytes(3);
    let error = source.build_with_driver().unwrap_err();
    assert!(
        matches!(
            &error,
            BuildError::Contradiction {
                second: "outstanding_bytes",
                ..
            }
        ),
        "{error}"
    );
}
