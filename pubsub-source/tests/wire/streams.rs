//! Streams that end, break, or say nothing.

use std::time::Duration;

use connector_core::Checkpoint;
use futures::StreamExt;
use gcp_emulator::{Body, Code, Fault, Method, Rule};

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

/// From a status CANCELLED nobody may conclude that the user wants to stop.
#[tokio::test(start_paused = true)]
async fn a_status_cancelled_from_the_server_does_not_stop_anything() {
    let world = World::new();
    world.emulator.faults().add(
        Rule::on(Method::StreamingPull)
            .times(20)
            .then(Fault::answer(Code::Cancelled, "")),
    );
    world.publish(0..8);
    let mut source = world.source().streams(4).build().unwrap();
    assert_eq!(read(&mut source, 8).await.len(), 8);
    tokio::time::sleep(SECOND * 60).await;
    assert_eq!(source.stats().open_streams, 4, "all four are open again");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_is_made_again() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    assert_eq!(read(&mut source, 1).await, [1]);
    world.emulator.drop_connections();
    world.emulator.faults().add(
        Rule::on(Method::StreamingPull)
            .once()
            .then(Fault::answer(Code::Cancelled, "")),
    );
    world.publish([2]);
    assert_eq!(read(&mut source, 1).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_yet_is_waited_for() {
    let world = World::new();
    world.emulator.refuse_connections(true).await.unwrap();
    world.publish(0..10);
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND * 30).await;
    let tries = source.stats().streams_opened;
    assert!((3..=20).contains(&tries), "{tries} tries in 30 s");
    world.emulator.refuse_connections(false).await.unwrap();
    assert_eq!(read(&mut source, 10).await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn routine_closure_of_streams_costs_nothing_but_a_new_stream() {
    for end in [
        Fault::answer(
            Code::Unavailable,
            "The service was unable to fulfill your request.",
        ),
        Fault::EndStream,
    ] {
        let world = World::with(|server| server.response_messages(3), |_| {});
        world.emulator.faults().add(
            Rule::on(Method::StreamingPull)
                .times(50)
                .then(end.after_responses(1)),
        );
        world.publish(0..150);
        let mut source = world.source().build().unwrap();
        let start = tokio::time::Instant::now();
        let got = read(&mut source, 150).await;
        assert_eq!(sorted(got), (0..150).collect::<Vec<_>>());
        assert!(
            start.elapsed() < SECOND * 50,
            "each is open again within a second"
        );
        seal(&mut source, 1).await;
        assert_eq!(commit(&mut source, 1).await.settled, 150);
        assert!(source.stats().streams_opened >= 50);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_of_any_kind_leads_to_a_new_stream() {
    for code in [2, 0, 7, 8] {
        let world = World::with(|server| server.response_messages(3), |_| {});
        world.emulator.faults().add(
            Rule::on(Method::StreamingPull)
                .once()
                .then(Fault::ResetStream(code).after_responses(1)),
        );
        world.publish(0..3);
        let mut source = world.source().build().unwrap();
        assert_eq!(read(&mut source, 3).await.len(), 3);
        world.publish([3]);
        assert_eq!(
            read(&mut source, 1).await,
            [3],
            "after RST_STREAM with code {code}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_goaway_moves_the_stream_to_a_new_connection() {
    let world = World::new();
    let mut source = world.source().build().unwrap();
    world.publish([1]);
    assert_eq!(read(&mut source, 1).await, [1]);
    world.emulator.faults().add(
        Rule::on(Method::StreamingPull)
            .once()
            .then(Fault::GoAwayUnseen(0)),
    );
    world.emulator.drop_connections();
    world.publish([2]);
    assert_eq!(read(&mut source, 1).await, [2]);
}

/// What belongs into the first request only is in no other.
#[tokio::test(start_paused = true)]
async fn later_requests_on_a_stream_are_empty_or_change_the_lease() {
    let world = World::new();
    let mut source = world
        .source()
        .first_outstanding(100)
        .outstanding_bytes(10_000_000)
        .build()
        .unwrap();
    for epoch in 1..=40 {
        world.publish([epoch]);
        read(&mut source, 1).await;
        tokio::time::sleep(SECOND * 8).await;
        seal(&mut source, epoch).await;
        commit(&mut source, epoch).await;
    }
    let seen = world.emulator.observe();
    let (mut first, mut later) = (0, 0);
    for call in seen.requests_of(Method::StreamingPull) {
        let Body::StreamingPull(request) = &call.body else {
            panic!("a StreamingPull has its body")
        };
        if call.stream.is_none() {
            first += 1;
            assert_eq!(request.max_outstanding_messages, 100);
            assert_eq!(request.max_outstanding_bytes, 10_000_000);
            assert!(!request.client_id.is_empty());
        } else {
            later += 1;
            assert!(request.subscription.is_empty() && request.client_id.is_empty());
            assert_eq!(request.max_outstanding_messages, 0);
            assert_eq!(request.max_outstanding_bytes, 0);
            assert_eq!(request.protocol_version, 0);
        }
    }
    assert_eq!(first, 1, "the stream stayed up");
    assert!(later >= 10, "320 s are ten pings");
}

#[tokio::test(start_paused = true)]
async fn a_client_keeps_its_id_over_reconnects() {
    let world = World::new();
    let mut source = world.source().build().unwrap();
    for number in 0..3 {
        world.publish([number]);
        read(&mut source, 1).await;
        world.emulator.drop_connections();
    }
    world.publish([3]);
    read(&mut source, 1).await;
    let seen = world.emulator.observe();
    let ids: Vec<&str> = seen
        .requests_of(Method::StreamingPull)
        .filter_map(|call| match &call.body {
            Body::StreamingPull(request) if call.stream.is_none() => {
                Some(request.client_id.as_str())
            }
            _ => None,
        })
        .collect();
    assert!(ids.len() >= 3);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

/// The service closes a stream that sends nothing for 75 s.
#[tokio::test(start_paused = true)]
async fn an_idle_stream_is_kept_open_by_pings() {
    let world = World::with(|server| server.idle_stream_limit(SECOND * 75), |_| {});
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND * 240).await;
    assert_eq!(source.stats().streams_opened, 1);
    let requests = world
        .record()
        .streams
        .values()
        .map(|stream| stream.requests)
        .sum::<u64>();
    assert!((7..=9).contains(&requests), "{requests} pings in 240 s");
}

/// Half-open: no data, no error, for ever.
#[tokio::test(start_paused = true)]
async fn a_connection_that_went_silent_is_replaced() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    assert_eq!(read(&mut source, 1).await, [1]);
    seal(&mut source, 1).await;
    tokio::time::sleep(SECOND * 35).await;
    let connections = world.emulator.observe().connections_opened;
    world.emulator.silence_connections();
    nothing_for(&mut source, SECOND * 45).await;
    assert!(world.emulator.observe().connections_opened > connections);
    // The server does not know yet: up to the stream's limit it sends into the dead one.
    world.publish(2..1502);
    let arrive = tokio::time::timeout(SECOND, read(&mut source, 500)).await;
    assert!(arrive.unwrap().iter().all(|number| *number >= 2));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_pings_gets_new_streams_while_it_is_silent_and_nothing_is_lost() {
    let world = World::with(|server| server.answer_pings(false), |_| {});
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    assert_eq!(read(&mut source, 1).await, [1]);
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 1);
    // Silent it is as well while idle, as Google's emulator is, as when it died after its answer.
    nothing_for(&mut source, SECOND * 1190).await;
    // The first after 300 s; its successors, which were never answered at all, after 75 s each.
    assert_eq!(source.stats().streams_opened, 1 + 1 + (1190 - 300) / 75);
    assert_eq!(world.record().delivered, 1, "nothing was leased to nobody");
    world.publish([2]);
    assert_eq!(read(&mut source, 1).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_never_answered_is_followed_by_another() {
    let world = World::new();
    world
        .emulator
        .faults()
        .add(Rule::on(Method::StreamingPull).times(3).then(Fault::Never));
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND * 220).await;
    assert_eq!(read(&mut source, 1).await, [1]);
    assert_eq!(source.stats().streams_opened, 4);
}

#[tokio::test(start_paused = true)]
async fn the_streams_together_are_never_told_more_than_the_bound() {
    let world = World::with(|server| server.response_messages(10), |_| {});
    world.publish(0..5000);
    let mut source = world
        .source()
        .streams(8)
        .outstanding(400)
        .first_outstanding(100)
        .build()
        .unwrap();
    let mut epoch = 0;
    let mut got = 0;
    while got < 3000 {
        got += read(&mut source, 50).await.len();
        epoch += 1;
        seal(&mut source, epoch).await;
        commit(&mut source, epoch).await;
        let record = world.record();
        assert!(
            record.told_limit().unwrap() <= 400,
            "{:?}",
            record.told_limit()
        );
        assert!(record.outstanding <= 400 + 8 * 10, "{}", record.outstanding);
    }
}

#[tokio::test(start_paused = true)]
async fn the_told_limit_starts_small_and_follows_need() {
    let world = World::new();
    world.publish(0..100_000);
    let mut source = world.source().build().unwrap();
    let mut told = Vec::new();
    for epoch in 1..=4 {
        told.push(source.stats().told_limit);
        // Takes all that comes without a commit.
        let quiet = Duration::from_secs(2);
        while let Ok(message) = tokio::time::timeout(quiet, source.next()).await {
            message.unwrap().unwrap();
        }
        seal(&mut source, epoch).await;
        commit(&mut source, epoch).await;
    }
    assert_eq!(told, [1000, 4000, 16_000, 64_000]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_source_sends_nothing_but_pings() {
    let world = World::new();
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND * 300).await;
    let seen = world.emulator.observe();
    assert_eq!(seen.count(Method::StreamingPull), 1);
    assert_eq!(seen.count(Method::ModifyAckDeadline), 0);
    assert_eq!(seen.count(Method::Acknowledge), 0);
    assert!(
        seen.requests.len() <= 1 + 10,
        "{} requests in 300 s",
        seen.requests.len()
    );
    let receipt = source.snapshot(connector_core::Epoch::new(1));
    drop(receipt);
}
