//! Everything transient is retried inside: nothing is lost, and the log stays readable.

use std::time::Duration;

use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_sink::SinkError;
use tracing::Level;

use crate::{
    log::Log,
    world::{LONG, World, feed, now, numbers, record},
};

fn sorted(mut payloads: Vec<String>) -> Vec<String> {
    payloads.sort_by_key(|payload| payload.parse::<usize>().unwrap());
    payloads
}

#[tokio::test(start_paused = true)]
async fn records_written_while_nobody_listens_arrive_when_someone_does() {
    let (log, _guard) = Log::collect();
    let world = World::new(&["events"]);
    world.emulator.refuse_connections(true).await.unwrap();
    let mut sink = world.sink();
    feed(
        &mut sink,
        numbers(0..10).into_iter().map(|n| record("events", n)),
    )
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(
        log.lines(Level::DEBUG).len() < 20,
        "{:?}",
        log.lines(Level::DEBUG)
    );
    world.emulator.refuse_connections(false).await.unwrap();
    tokio::time::timeout(LONG, sink.flush())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(sorted(world.stored("events")), numbers(0..10));

    // The server goes away in the middle of a run and comes back.
    let before = log.lines(Level::DEBUG).len();
    world.emulator.refuse_connections(true).await.unwrap();
    world.emulator.drop_connections();
    feed(
        &mut sink,
        numbers(10..20).into_iter().map(|n| record("events", n)),
    )
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(log.lines(Level::DEBUG).len() - before < 20);
    world.emulator.refuse_connections(false).await.unwrap();
    tokio::time::timeout(LONG, sink.flush())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(sorted(world.stored("events")), numbers(0..20));
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_connection_dies_is_sent_again_and_stored_once() {
    let world = World::new(&["events"]);
    world.fault(Rule::on(Method::Publish).once().then(Fault::DropConnection));
    let mut sink = world.sink();
    feed(
        &mut sink,
        numbers(0..10).into_iter().map(|n| record("events", n)),
    )
    .await;
    sink.flush().await.unwrap();
    assert_eq!(sorted(world.stored("events")), numbers(0..10));
}

#[tokio::test(start_paused = true)]
async fn broken_streams_and_connections_are_retried_whatever_breaks_them() {
    let faults = [
        Fault::ResetStream(0x2),
        Fault::ResetStream(0x7),
        Fault::ResetStream(0x8),
        Fault::GoAway(0x0),
        Fault::GoAwayUnseen(0x0),
        Fault::answer(Code::Cancelled, "gone"),
        Fault::answer(Code::Unknown, "what"),
        Fault::answer(Code::Internal, "oops"),
        Fault::answer(Code::Aborted, "again"),
        Fault::answer(Code::DeadlineExceeded, "late"),
        Fault::answer(Code::Unavailable, "later"),
    ];
    for fault in faults {
        let world = World::new(&["events"]);
        let name = format!("{fault:?}");
        world.fault(Rule::on(Method::Publish).once().then(fault));
        let mut sink = world.sink();
        sink.feed(record("events", "0")).await.unwrap();
        let flushed = tokio::time::timeout(LONG, sink.flush()).await;
        assert!(matches!(flushed, Ok(Ok(()))), "{name}: {flushed:?}");
        assert_eq!(world.stored("events"), ["0"], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_after_storing_repeats_and_loses_nothing() {
    let world = World::new(&["events"]);
    let lost = Fault::answer(Code::Unavailable, "the answer is lost").after_effect();
    world.fault(Rule::on(Method::Publish).times(2).then(lost));
    let mut sink = world.sink();
    feed(
        &mut sink,
        numbers(0..3).into_iter().map(|n| record("events", n)),
    )
    .await;
    sink.flush().await.unwrap();
    let mut distinct = sorted(world.stored("events"));
    distinct.dedup();
    assert_eq!(distinct, numbers(0..3));
    let requests = world.requests();
    assert_eq!(
        requests[0].0,
        requests[requests.len() - 1].0,
        "the same bytes are sent again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_given_up_in_bounded_time() {
    let world = World::new(&["events"]);
    let mut sink = world.sink();
    sink.send(record("events", "0")).await.unwrap();
    world.emulator.silence_connections();
    let start = now();
    sink.send(record("events", "1")).await.unwrap();
    assert!(
        start.elapsed() <= Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(world.stored("events"), ["0", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_used_up_quota_is_waited_for_with_few_attempts_and_one_warning() {
    let (log, _guard) = Log::collect();
    let world = World::new(&["events"]);
    let quota = Fault::answer(Code::ResourceExhausted, "publish quota");
    let rule = world
        .emulator
        .faults()
        .add(Rule::on(Method::Publish).then(quota));
    let mut sink = world.sink();
    feed(
        &mut sink,
        numbers(0..100).into_iter().map(|n| record("events", n)),
    )
    .await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.emulator.faults().remove(rule);
    let attempts = world.emulator.faults().fired(rule);
    assert!((4..=40).contains(&attempts), "{attempts} attempts in 30 s");
    sink.flush().await.unwrap();
    assert_eq!(
        sorted(world.stored("events")),
        numbers(0..100),
        "none lost, none twice"
    );
    let warnings = log.lines(Level::WARN);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_beyond_the_retry_budget_ends_the_sink_with_the_topic_and_the_code() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::answer(Code::Unavailable, "down"));
    let mut sink = world
        .builder()
        .retry_for(Duration::from_secs(20))
        .build()
        .unwrap();
    sink.feed(record("events", "0")).await.unwrap();
    let error = sink.flush().await.unwrap_err();
    assert!(
        matches!(error, SinkError::RetriesExhausted { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("projects/demo/topics/events"),
        "{error}"
    );
    assert_eq!(error.code(), Some(pubsub_sink::Code::Unavailable));
    let again = sink.feed(record("events", "1")).await.unwrap_err();
    assert!(matches!(again, SinkError::Closed { .. }), "{again}");
}
