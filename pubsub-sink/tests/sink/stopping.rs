//! Waits that end, closes that return, and sinks that go away.

use std::time::Duration;

use connector_core::{Checkpoint, CheckpointError, Epoch, host::StepError, next_when};
use futures::SinkExt;
use gcp_emulator::{Fault, Method};
use pubsub_sink::SinkError;
use tracing::Level;

use crate::{
    log::Log,
    world::{LONG, Record, World, feed, keyed, now, numbers, record},
};

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_publishes_that_are_never_answered_fails_and_names_the_topic() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::Never);
    let timeout = Duration::from_secs(20);
    let mut sink = world.builder().progress_timeout(timeout).build().unwrap();
    feed(
        &mut sink,
        numbers(0..5).into_iter().map(|n| record("events", n)),
    )
    .await;
    let start = now();
    let error = sink.snapshot(Epoch::new(1)).await.unwrap_err();
    assert!(start.elapsed() <= timeout + Duration::from_secs(1));
    let CheckpointError::Closed { cause } = error else {
        panic!("{error}");
    };
    let text = cause.to_string();
    assert!(text.contains("projects/demo/topics/events"), "{text}");
    assert!(text.contains("5 messages"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_ends_while_the_source_is_idle_ends_the_hosts_loop() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::Never);
    let timeout = Duration::from_secs(20);
    let mut sink = world.builder().progress_timeout(timeout).build().unwrap();
    feed(&mut sink, [record("events", "0")]).await;
    // Nobody waits for the receipt; it is the loop that must hear of the end.
    drop(sink.snapshot(Epoch::new(1)));
    let mut idle = futures::stream::pending::<Result<Record, SinkError>>();
    let start = now();
    let step = tokio::time::timeout(LONG, next_when(&mut idle, &mut sink)).await;
    // Whoever is not woken looks once more when the limit has passed, and finds the end then.
    assert!(
        start.elapsed() <= timeout + Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    let error = step.expect("the end wakes the loop").unwrap_err();
    let StepError::Sink { index: 0, cause } = error else {
        panic!("{error}");
    };
    let text = cause.to_string();
    assert!(text.contains("projects/demo/topics/events"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn close_returns_within_its_limit_with_the_number_of_unsent_records() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::Never);
    let limit = Duration::from_secs(5);
    for ordering in [false, true] {
        let mut sink = world
            .builder()
            .message_ordering(ordering)
            .close_timeout(limit)
            .build()
            .unwrap();
        let key = if ordering { "k" } else { "" };
        feed(
            &mut sink,
            numbers(0..5).into_iter().map(|n| keyed("events", key, n)),
        )
        .await;
        let snapshot = sink.snapshot(Epoch::new(1));
        let start = now();
        let error = sink.close().await.unwrap_err();
        assert!(
            start.elapsed() <= limit + Duration::from_millis(100),
            "{:?}",
            start.elapsed()
        );
        assert!(
            matches!(error, SinkError::Unsent { items: 5, .. }),
            "{error}"
        );
        assert!(matches!(
            snapshot.await,
            Err(CheckpointError::Closed { .. })
        ));
    }
    // The drivers have ended: nobody holds the connections any more.
    let closed = world
        .emulator
        .wait_until(|seen| seen.connections == 0, LONG)
        .await;
    assert!(closed, "no task is left");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_dropped_fails_every_receipt_and_every_later_call() {
    let world = World::new(&["events"]);
    let (mut sink, driver) = world.builder().build_with_driver().unwrap();
    feed(&mut sink, [record("events", "0")]).await;
    let snapshot = sink.snapshot(Epoch::new(1));
    drop(driver);
    let error = snapshot.await.unwrap_err();
    assert!(matches!(&error, CheckpointError::Closed { .. }), "{error}");
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, SinkError::DriverGone), "{error}");
    let error = sink.close().await.unwrap_err();
    assert!(matches!(error, SinkError::Closed { .. }), "{error}");
    assert!(matches!(
        sink.commit(Epoch::new(1)).await,
        Err(CheckpointError::Closed { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_failure_handler_is_an_error_of_the_sink_and_no_silence() {
    struct Panics;
    impl connector_core::FailureHandler for Panics {
        fn handle(
            &mut self,
            _: connector_core::Rejected,
        ) -> connector_core::Receipt<connector_core::Verdict> {
            panic!("the handler is broken");
        }
        fn flush(&mut self) -> connector_core::Receipt<()> {
            connector_core::Receipt::ready(())
        }
    }
    let world = World::new(&["events"]);
    let mut sink = world.builder().on_rejected(Panics).build().unwrap();
    feed(&mut sink, [record("a/b", "x")]).await;
    let error = sink.flush().await.unwrap_err();
    assert!(
        matches!(&error, SinkError::Panicked { message } if message.contains("is broken")),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn close_sends_the_last_partial_batch_at_once() {
    let world = World::new(&["events"]);
    let linger = Duration::from_secs(10);
    let mut sink = world
        .builder()
        .linger(linger)
        .batch_messages(100)
        .build()
        .unwrap();
    feed(
        &mut sink,
        numbers(0..3).into_iter().map(|n| record("events", n)),
    )
    .await;
    let start = now();
    sink.close().await.unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(world.stored("events"), numbers(0..3));
    sink.close().await.unwrap();
    let error = sink.feed(record("events", "late")).await.unwrap_err();
    assert!(matches!(error, SinkError::Closed { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_does_not_wait_for_the_linger() {
    let world = World::new(&["events"]);
    let mut sink = world
        .builder()
        .linger(Duration::from_secs(10))
        .build()
        .unwrap();
    feed(
        &mut sink,
        numbers(0..3).into_iter().map(|n| record("events", n)),
    )
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        world.count(Method::Publish),
        0,
        "the batch waits for company"
    );
    let start = now();
    sink.snapshot(Epoch::new(1)).await.unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(world.stored("events"), numbers(0..3));
}

#[tokio::test(start_paused = true)]
async fn a_sink_dropped_without_close_warns_and_still_sends_what_it_had() {
    let (log, _guard) = Log::collect();
    let world = World::new(&["events"]);
    let mut sink = world
        .builder()
        .linger(Duration::from_secs(10))
        .build()
        .unwrap();
    feed(
        &mut sink,
        numbers(0..3).into_iter().map(|n| record("events", n)),
    )
    .await;
    drop(sink);
    let warnings = log.lines(Level::WARN);
    assert!(
        warnings
            .iter()
            .any(|line| line.contains("dropped without close")),
        "{warnings:?}"
    );
    let topic = crate::world::full("events");
    assert!(
        world
            .emulator
            .wait_until(|seen| seen.topic(&topic).published == 3, LONG)
            .await
    );
    assert!(
        world
            .emulator
            .wait_until(|seen| seen.connections == 0, LONG)
            .await,
        "the driver ends"
    );
}

#[tokio::test(start_paused = true)]
async fn a_standstill_is_warned_of_before_it_ends_the_sink() {
    let (log, _guard) = Log::collect();
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::Never);
    let mut sink = world.builder().message_ordering(true).build().unwrap();
    feed(&mut sink, [keyed("events", "k", "0")]).await;
    let start = now();
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, SinkError::Stalled { .. }), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(600));
    let warnings = log.lines(Level::WARN);
    let slow = warnings
        .iter()
        .filter(|line| line.contains("Nothing has completed"))
        .count();
    assert_eq!(slow, 9, "one per tenth: {warnings:?}");
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the test is the driver's host")]
async fn a_program_that_ends_with_nothing_left_to_send_logs_no_error() {
    let (log, _guard) = Log::collect();
    let world = World::new(&["events"]);
    let (mut sink, driver) = world.builder().build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    feed(&mut sink, [record("events", "0")]).await;
    sink.flush().await.unwrap();
    drop(sink);
    // As a runtime does that is dropped when `main` returns: the driver is never polled again.
    driver.abort();
    drop(driver.await);
    assert_eq!(log.lines(Level::WARN), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_second_close_does_nothing_and_no_record_comes_behind_the_first() {
    let world = World::new(&["events"]);
    let mut sink = world.sink();
    feed(&mut sink, [record("events", "0")]).await;
    sink.close().await.unwrap();
    sink.close().await.unwrap();
    let error = sink.feed(record("events", "1")).await.unwrap_err();
    assert!(matches!(error, SinkError::Closed { .. }), "{error}");
    assert_eq!(world.stored("events"), ["0"]);
    assert_eq!(world.count(Method::Publish), 1);
}

#[tokio::test(start_paused = true)]
async fn seven_topics_that_never_answer_share_the_time_that_a_close_may_take() {
    let topics = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let world = World::new(&topics);
    world.fault_on_publish(Fault::Never);
    let mut sink = world.sink();
    feed(&mut sink, topics.map(|topic| record(topic, "x"))).await;
    let start = now();
    let error = sink.close().await.unwrap_err();
    assert!(
        matches!(error, SinkError::Unsent { items: 7, .. }),
        "{error}"
    );
    assert_eq!(start.elapsed().as_secs(), 30);
    assert_eq!(sink.stats().closes_abandoned, 1);
}
