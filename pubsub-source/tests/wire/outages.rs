//! A service that cannot be reached, or goes on refusing, for as long as the host bears, or longer.

use std::time::Duration;

use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_source::SourceError;
use tokio::time::Instant;

use crate::{listening::listen, log::Loud, world::*};

const SECOND: Duration = Duration::from_secs(1);

fn exhausted() -> Fault {
    Fault::answer(Code::ResourceExhausted, "open streams are used up")
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_stays_used_up_is_told_and_tried_ever_more_slowly_for_as_long_as_it_takes() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    let rule = Rule::on(Method::StreamingPull).then(exhausted());
    let rule = world.emulator.faults().add(rule);
    world.publish(0..10);
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND * 60).await;
    let first = source.stats().streams_opened;
    nothing_for(&mut source, SECOND * 60 * 59).await;
    let tries = source.stats().streams_opened;
    // Full jitter over a delay of at most 10 s: 5 s between two tries on average.
    assert!((8..=40).contains(&first), "{first} tries in a minute");
    assert!((360..=1000).contains(&tries), "{tries} tries in an hour");
    let told = loud.matching("fails again and again").len();
    assert!((4..=9).contains(&told), "once per doubling: {told}");
    world.emulator.faults().remove(rule);
    assert_eq!(read(&mut source, 10).await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_bears_an_outage_for_so_long_gets_an_error_then_with_the_cause() {
    let world = World::new();
    let rule = Rule::on(Method::StreamingPull).then(exhausted());
    world.emulator.faults().add(rule);
    world.publish(0..10);
    let after = SECOND * 300;
    let mut source = world
        .source()
        .unreachable_after(Some(after))
        .build()
        .unwrap();
    let begun = Instant::now();
    let error = last_word(&mut source).await;
    assert!(
        (300..=301).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
    let SourceError::Unreachable {
        subscription,
        after: told,
        cause,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((subscription.as_str(), told), (SUBSCRIPTION, after));
    assert_eq!(cause.unwrap().code(), gcp_wire::Code::ResourceExhausted);
    assert_eq!(world.acked(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_ends_in_time_counts_for_nothing() {
    let world = World::new();
    let mut source = world
        .source()
        .unreachable_after(Some(SECOND * 60))
        .build()
        .unwrap();
    for outage in 0..5 {
        world.emulator.refuse_connections(true).await.unwrap();
        world.emulator.drop_connections();
        nothing_for(&mut source, SECOND * 45).await;
        world.emulator.refuse_connections(false).await.unwrap();
        world.publish([outage]);
        assert_eq!(read(&mut source, 1).await, [outage]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_subscription_whose_streams_are_closed_now_and_then_is_reachable() {
    let world = World::new();
    let mut source = world
        .source()
        .unreachable_after(Some(SECOND * 60))
        .build()
        .unwrap();
    for _ in 0..20 {
        world.emulator.drop_connections();
        nothing_for(&mut source, SECOND * 90).await;
    }
    world.publish([7]);
    assert_eq!(read(&mut source, 1).await, [7]);
}

/// A stream that nobody reads cannot be seen to open.
#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_read_is_not_told_that_the_service_is_away() {
    let world = World::new();
    world.publish(0..100);
    let wait = Some(SECOND * 60);
    let source = world.source().unreachable_after(wait);
    let mut source = source
        .buffer(connector_core::Limits::items(10))
        .build()
        .unwrap();
    assert_eq!(read(&mut source, 1).await.len(), 1);
    for _ in 0..10 {
        world.emulator.drop_connections();
        tokio::time::sleep(SECOND * 30).await;
    }
    let (begun, mut got) = (Instant::now(), 1);
    while got < 100 {
        read(&mut source, 1).await;
        got += 1;
    }
    assert!(begun.elapsed() < SECOND * 120);
}
