//! Messages that wait for the host's commit.

use std::{pin::Pin, time::Duration};

use connector_core::{
    Checkpoint, CheckpointError, Epoch, Limits, Next,
    host::{Admission, Room},
    next_when,
};
use futures::{FutureExt, Sink, SinkExt, future::poll_fn, stream};
use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_sink::{Published, SinkError};

use crate::world::{LONG, World, checkpoint, feed, full, keyed, now, numbers, record, seal};

#[tokio::test(start_paused = true)]
async fn a_commit_lets_out_its_epoch_in_order_and_nothing_of_the_next() {
    let world = World::new(&["events"]);
    let mut sink = world.staged().build().unwrap();
    feed(
        &mut sink,
        numbers(0..250).into_iter().map(|n| record("events", n)),
    )
    .await;
    let receipt = sink.snapshot(Epoch::new(1));
    feed(
        &mut sink,
        numbers(250..300).into_iter().map(|n| record("events", n)),
    )
    .await;
    receipt.await.unwrap();
    assert_eq!(world.count(Method::Publish), 0, "a snapshot sends nothing");
    assert_eq!(sink.stats().staged_records, 300);
    let committed = sink.commit(Epoch::new(1)).await.unwrap();
    assert_eq!((committed.settled, committed.retained), (250, 0));
    assert_eq!(world.stored("events"), numbers(0..250));
    assert_eq!(sink.stats().staged_records, 50);
    let (_, committed) = checkpoint(&mut sink, 2).await;
    assert_eq!(committed.settled, 50);
    assert_eq!(world.stored("events"), numbers(0..300));
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stage_of_one_message_goes_on_by_the_checkpoints_that_the_sink_asks_for() {
    let world = World::new(&["events"]);
    let mut sink = world.staged().stage(Limits::items(1)).build().unwrap();
    let mut source = stream::iter(numbers(0..20).into_iter().map(Ok::<_, std::io::Error>));
    let mut epoch = Epoch::default();
    let run = async {
        loop {
            match next_when(&mut source, &mut sink).await.unwrap() {
                Next::Record(number) => {
                    Pin::new(&mut sink)
                        .start_send(record("events", number))
                        .unwrap();
                }
                Next::CheckpointWanted => {
                    epoch = epoch.next();
                    sink.snapshot(epoch).await.unwrap();
                    drop(sink.commit(epoch));
                }
                Next::End => break,
            }
        }
    };
    tokio::time::timeout(LONG, run).await.unwrap();
    sink.close().await.unwrap();
    assert_eq!(epoch, Epoch::new(20), "one checkpoint for each message");
    assert_eq!(world.stored("events"), numbers(0..20));
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_is_wanted_once_at_half_a_stage_and_the_host_may_take_its_time() {
    let world = World::new(&["events"]);
    let mut sink = world.staged().stage(Limits::items(10)).build().unwrap();
    let mut wishes = Vec::new();
    for number in 0..10 {
        if poll_fn(|cx| sink.poll_room(cx)).await.unwrap() == Room::CheckpointWanted {
            wishes.push(number);
        }
        sink.feed(record("events", number.to_string()))
            .await
            .unwrap();
    }
    assert_eq!(wishes, [5]);
    assert!(sink.ready().now_or_never().is_none(), "the stage is full");
    let (_, committed) = checkpoint(&mut sink, 1).await;
    assert_eq!(committed.settled, 10);
    sink.ready().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_stage_refuses_records_and_no_snapshot() {
    let world = World::new(&["events"]);
    let mut sink = world.staged().stage(Limits::items(3)).build().unwrap();
    feed(
        &mut sink,
        numbers(0..3).into_iter().map(|n| record("events", n)),
    )
    .await;
    assert!(sink.ready().now_or_never().is_none());
    let refused = Pin::new(&mut sink).start_send(record("events", "4"));
    assert!(matches!(refused, Err(SinkError::NotReady)));
    let saved = seal(&mut sink, 1).await;
    assert_eq!(saved.restored().state.messages(), 3);
    drop(sink.commit(Epoch::new(1)));
    tokio::time::timeout(LONG, sink.ready())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_stage_without_a_snapshot_for_the_progress_timeout_ends_the_sink() {
    let world = World::new(&["events"]);
    let mut sink = world
        .staged()
        .stage(Limits::items(3))
        .progress_timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    feed(
        &mut sink,
        numbers(0..3).into_iter().map(|n| record("events", n)),
    )
    .await;
    let started = now();
    assert!(
        tokio::time::timeout(Duration::from_secs(59), sink.ready())
            .await
            .is_err()
    );
    // A host that takes snapshots is at work, however slowly.
    drop(sink.snapshot(Epoch::new(1)));
    match sink.ready().await {
        Err(SinkError::StageFull {
            after,
            items: 3,
            bytes,
        }) => {
            assert_eq!(after, Duration::from_secs(60));
            assert!(bytes > 0);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(started.elapsed().as_secs(), 59 + 60);
    assert_eq!(world.count(Method::Publish), 0);
    let closed = sink.snapshot(Epoch::new(2)).await;
    assert!(matches!(closed, Err(CheckpointError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_idle_sink_with_a_full_stage_is_not_at_fault() {
    let world = World::new(&["events"]);
    let mut sink = world.staged().stage(Limits::items(3)).build().unwrap();
    feed(
        &mut sink,
        numbers(0..3).into_iter().map(|n| record("events", n)),
    )
    .await;
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    let (_, committed) = checkpoint(&mut sink, 1).await;
    assert_eq!(committed.settled, 3);
}

#[tokio::test(start_paused = true)]
async fn a_commit_on_which_nothing_completes_ends_the_sink_after_the_progress_timeout() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::answer(Code::Unavailable, "down"));
    let mut sink = world
        .staged()
        .message_ordering(true)
        .progress_timeout(Duration::from_secs(300))
        .build()
        .unwrap();
    feed(&mut sink, [keyed("events", "key", "0")]).await;
    let saved = seal(&mut sink, 1).await;
    let lost = tokio::time::timeout(LONG, sink.commit(Epoch::new(1)))
        .await
        .unwrap();
    assert!(matches!(lost, Err(CheckpointError::Closed { .. })));
    assert!(matches!(
        sink.ready().await,
        Err(SinkError::Stalled { items: 1, .. })
    ));
    assert_eq!(
        saved.restored().state.messages(),
        1,
        "the state still names it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_keeps_its_order_over_epochs_and_failed_requests() {
    let world = World::new(&["events"]);
    world.fault(
        Rule::on(Method::Publish)
            .times(3)
            .then(Fault::answer(Code::Unavailable, "a moment")),
    );
    let mut sink = world
        .staged()
        .message_ordering(true)
        .batch_messages(3)
        .build()
        .unwrap();
    let mut commits = Vec::new();
    for epoch in 0..4u64 {
        let range = usize::try_from(epoch).unwrap();
        for number in range * 10..(range + 1) * 10 {
            let key = ["a", "b"][number % 2];
            feed(&mut sink, [keyed("events", key, number.to_string())]).await;
        }
        seal(&mut sink, epoch + 1).await;
        commits.push(sink.commit(Epoch::new(epoch + 1)));
    }
    for commit in commits {
        assert_eq!(commit.await.unwrap().settled, 10);
    }
    let stored = world.stored("events");
    for parity in 0..2 {
        let of_key: Vec<usize> = stored
            .iter()
            .map(|number| number.parse().unwrap())
            .filter(|number| number % 2 == parity)
            .collect();
        let expected: Vec<usize> = (0..40).filter(|number| number % 2 == parity).collect();
        assert_eq!(of_key, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_stands_still_holds_up_no_other_and_no_later_epoch() {
    let world = World::new(&["slow", "quick"]);
    let slow = full("slow");
    let rule = Rule::on(Method::Publish).when(move |call| call.resource() == Some(&slow));
    let held = world.emulator.faults().add(rule.then(Fault::Never));
    let mut sink = world.staged().build().unwrap();
    feed(&mut sink, [record("slow", "0"), record("quick", "1")]).await;
    seal(&mut sink, 1).await;
    let mut first = sink.commit(Epoch::new(1));
    feed(&mut sink, [record("quick", "2")]).await;
    seal(&mut sink, 2).await;
    let second = sink.commit(Epoch::new(2));
    while world.stored("quick").len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(first.try_now().is_none(), "its first epoch is not complete");
    assert_eq!(sink.stats().staged_records, 0);
    world.emulator.faults().remove(held);
    assert_eq!(second.await.unwrap().settled, 1);
    assert_eq!(first.await.unwrap().settled, 2);
}

#[tokio::test(start_paused = true)]
async fn more_topics_than_may_be_in_use_leave_one_after_the_other() {
    let world = World::new(&[]);
    world.fault_on_publish(Fault::Delay(Duration::from_millis(5)));
    let mut sink = world.staged().max_destinations(4).build().unwrap();
    for topic in 0..50 {
        feed(&mut sink, [record(&format!("topic-{topic}"), "x")]).await;
    }
    seal(&mut sink, 1).await;
    let mut commit = sink.commit(Epoch::new(1));
    let mut most = 0;
    let settled = loop {
        most = most.max(sink.stats().destinations);
        match tokio::time::timeout(Duration::from_millis(1), &mut commit).await {
            Ok(committed) => break committed.unwrap().settled,
            Err(_) => continue,
        }
    };
    assert_eq!(settled, 50);
    assert!((1..=4).contains(&most), "{most} in use");
    assert!(sink.stats().destinations <= 4);
    for topic in 0..50 {
        assert_eq!(world.stored(&format!("topic-{topic}")), ["x"]);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_submitted_a_record_learns_its_message_id_with_the_commit() {
    let world = World::new(&["events"]);
    let mut sink = world.staged().build().unwrap();
    sink.ready().await.unwrap();
    let mut published = sink.submit(record("events", "0"));
    seal(&mut sink, 1).await;
    assert!(published.try_now().is_none());
    sink.commit(Epoch::new(1)).await.unwrap();
    assert!(matches!(published.await.unwrap(), Published::Stored { .. }));
}

#[tokio::test(start_paused = true)]
async fn close_finishes_what_is_committed_and_leaves_the_rest_to_the_state() {
    let world = World::new(&["events"]);
    let mut sink = world.staged().build().unwrap();
    feed(&mut sink, [record("events", "0")]).await;
    seal(&mut sink, 1).await;
    feed(&mut sink, [record("events", "1")]).await;
    let saved = seal(&mut sink, 2).await;
    let commit = sink.commit(Epoch::new(1));
    sink.close().await.unwrap();
    assert_eq!(commit.await.unwrap().settled, 1);
    assert_eq!(world.stored("events"), ["0"]);
    let mut sink = world.staged().restore([saved.restored()]).build().unwrap();
    // The state of epoch 2 was taken before epoch 1 was confirmed.
    assert_eq!(sink.restored().await.unwrap().settled, 2);
    assert_eq!(world.stored("events"), ["0", "0", "1"]);
}

#[tokio::test(start_paused = true)]
async fn an_ended_sink_holds_nothing_that_waits_for_a_commit() {
    let world = World::new(&["events"]);
    let mut sink = world.staged().build().unwrap();
    feed(&mut sink, [record("events", "0")]).await;
    seal(&mut sink, 1).await;
    feed(&mut sink, [record("events", "1")]).await;
    assert_eq!(sink.stats().staged_records, 2);
    sink.close().await.unwrap();
    let stats = sink.stats();
    assert_eq!((stats.staged_records, stats.staged_bytes), (0, 0));
    sink.abort(Epoch::new(1));
    assert_eq!(sink.stats(), stats);
}

#[tokio::test(start_paused = true)]
async fn a_commit_waits_for_no_company() {
    let world = World::new(&["events", "others"]);
    let linger = Duration::from_secs(60);
    let mut sink = world.staged().linger(linger).build().unwrap();
    let records = ["events", "others", "events"].map(|topic| record(topic, "x"));
    feed(&mut sink, records).await;
    let started = now();
    let (_, committed) = checkpoint(&mut sink, 1).await;
    assert_eq!(committed.settled, 3);
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(
        world.count(Method::Publish),
        2,
        "one request for each topic"
    );
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_stands_still_ends_the_sink_though_snapshots_go_on_beside_it() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::answer(Code::Unavailable, "down"));
    // With keys a request is repeated for as long as it takes, so that only this wait ends it.
    let mut sink = world.staged().message_ordering(true).build().unwrap();
    feed(&mut sink, [keyed("events", "key", "0")]).await;
    seal(&mut sink, 1).await;
    let started = now();
    let mut commit = sink.commit(Epoch::new(1));
    let mut epoch = 1;
    // The wait ends between two snapshots.
    let checkpoints_every = Duration::from_secs(7);
    let lost = loop {
        match tokio::time::timeout(checkpoints_every, &mut commit).await {
            Ok(committed) => break committed,
            Err(_) => assert!(started.elapsed() < LONG, "the commit waits for ever"),
        }
        epoch += 1;
        seal(&mut sink, epoch).await;
    };
    assert!(matches!(lost, Err(CheckpointError::Closed { .. })));
    assert_eq!(started.elapsed().as_secs(), 600);
    let error = sink.ready().await.unwrap_err();
    assert!(matches!(error, SinkError::Stalled { items: 1, .. }));
}
