//! Flushes of the queue: what they wait for, and for how long.

use std::time::Duration;

use connector_core::{Checkpoint, CheckpointError, Epoch, FailureHandler, Verdict};
use gcp_emulator::{Call, Code, Fault, Method, Rule};
use pubsub_sink::{DeadLetterError, SinkError};

use super::{dead_letter_error, invalid, is_dead_letter, on_dead_letters, rejected};
use crate::world::{LONG, World, feed, is_poisoned, now, published, record};

#[tokio::test(start_paused = true)]
async fn a_dead_letter_whose_flush_failed_is_owed_to_the_snapshot_after_an_abort() {
    let world = World::new(&["events", "rejected"]);
    // Pauses of 100 ms, 200 ms, … with ±25 %: out of reach for at least 19 s.
    let unavailable = Fault::answer(Code::Unavailable, "an outage");
    world.fault(on_dead_letters(unavailable).times(8));
    let queue = world
        .queue()
        .flush_timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let mut sink = world.builder().on_rejected(queue).build().unwrap();
    feed(&mut sink, [invalid(), record("events", "0")]).await;

    let start = now();
    let error = sink.snapshot(Epoch::new(1)).await.unwrap_err();
    assert!(start.elapsed() <= Duration::from_secs(6));
    let CheckpointError::Incomplete { cause, .. } = error else {
        panic!("{error}");
    };
    let handler: &CheckpointError = cause.get().downcast_ref().unwrap();
    let text = dead_letter_error(handler).to_string();
    assert!(text.contains("1 of 1 dead letters"), "{text}");
    assert!(text.contains("none arrived"), "{text}");
    assert_eq!(world.stored("rejected").len(), 0);
    sink.abort(Epoch::new(1));

    // Still out of reach: no later snapshot succeeds before the letter has arrived.
    let mut epoch = Epoch::new(2);
    let mut failed = 0;
    while sink.snapshot(epoch).await.is_err() {
        assert_eq!(world.stored("rejected").len(), 0);
        sink.abort(epoch);
        epoch = epoch.next();
        failed += 1;
        assert!(failed < 100, "the outage is over and the letter owed");
    }
    assert!(failed > 0, "the outage lasts longer than one flush");
    assert_eq!(world.stored("rejected").len(), 1);
    sink.commit(epoch).await.unwrap();
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_longest_flush_timeout_is_not_spent_at_once() {
    let world = World::new(&["rejected"]);
    world.fault(on_dead_letters(Fault::Delay(Duration::from_secs(2))));
    let mut queue = world.queue().flush_timeout(Duration::MAX).build().unwrap();
    assert_eq!(queue.handle(rejected("a")).await.unwrap(), Verdict::Drop);
    queue.flush().await.unwrap();
    assert_eq!(world.stored("rejected"), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_was_given_up_counts_what_did_arrive() {
    let world = World::new(&["rejected"]);
    let never = |call: &Call| published(call).messages.iter().any(|m| m.data == "stuck");
    world.fault(Rule::on(Method::Publish).when(never).then(Fault::Never));
    let mut queue = world.queue().build().unwrap();
    queue.handle(rejected("fine")).await.unwrap();
    queue.flush().await.unwrap();
    world.fault(on_dead_letters(Fault::Delay(Duration::from_secs(1))));
    // Each is a request of its own: the first has arrived before the second is handled.
    for (payload, requests) in [("a", 2), ("stuck", 3)] {
        queue.handle(rejected(payload)).await.unwrap();
        for _ in 0..10_000 {
            if world.count(Method::Publish) == requests {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(world.count(Method::Publish), requests);
    }
    let start = now();
    let error = queue.flush().await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 60);
    let DeadLetterError::Unconfirmed {
        unconfirmed, of, ..
    } = dead_letter_error(&error)
    else {
        panic!("{error}");
    };
    assert_eq!((*unconfirmed, *of), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_flush_is_known_and_an_empty_one_leaves_it() {
    let world = World::new(&["rejected"]);
    world.fault(on_dead_letters(Fault::Delay(Duration::from_secs(3))).once());
    let mut queue = world.queue().build().unwrap();
    let watch = queue.watch();
    queue.flush().await.unwrap();
    assert_eq!(watch.last_flush(), None, "there was nothing to wait for");
    queue.handle(rejected("one")).await.unwrap();
    queue.flush().await.unwrap();
    let first = watch.last_flush().unwrap();
    assert!((3..5).contains(&first.as_secs()), "{first:?}");
    queue.handle(rejected("two")).await.unwrap();
    queue.flush().await.unwrap();
    queue.flush().await.unwrap();
    assert!(watch.last_flush().unwrap() < Duration::from_secs(1));
    assert_eq!(watch.longest_flush(), Some(first));
    assert_eq!(watch.stats().records_published, 2);
}

#[tokio::test(start_paused = true)]
async fn a_commit_behind_a_queue_that_has_ended_ends_the_sink_after_the_progress_timeout() {
    // Also beside a host that goes on taking checkpoints, none of which is complete.
    for checkpoints_every in [LONG, Duration::from_secs(20)] {
        let world = World::new(&["events", "rejected"]);
        let poisoned = |call: &Call| !is_dead_letter(call) && is_poisoned(call);
        let refuse = Fault::answer(Code::InvalidArgument, "does not match the schema");
        world.fault(Rule::on(Method::Publish).when(poisoned).then(refuse));
        let denied = Fault::answer(Code::PermissionDenied, "no");
        world.fault(on_dead_letters(denied));
        let queue = world.queue().build().unwrap();
        let mut sink = world.staged().on_rejected(queue).build().unwrap();
        feed(&mut sink, [record("events", "bad!")]).await;
        let mut epoch = Epoch::new(1);
        sink.snapshot(epoch).await.unwrap();
        let started = now();
        let mut commit = sink.commit(epoch);
        let lost = loop {
            match tokio::time::timeout(checkpoints_every, &mut commit).await {
                Ok(committed) => break committed,
                Err(_) => assert!(started.elapsed() < LONG, "the commit waits for ever"),
            }
            epoch = epoch.next();
            sink.snapshot(epoch).await.unwrap_err();
            sink.abort(epoch);
        };
        assert!(matches!(lost, Err(CheckpointError::Closed { .. })));
        assert_eq!(started.elapsed().as_secs(), 600);
        let error = sink.ready().await.unwrap_err();
        let SinkError::Stalled {
            topic: None, items, ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(*items, 1);
    }
}
