//! Staged messages that the service refuses.

use std::time::Duration;

use connector_core::{
    Checkpoint, CheckpointError, Epoch, Limits, RejectedReason, Verdict,
    host::{Admission, Room},
};
use futures::{FutureExt, future::poll_fn};
use gcp_emulator::{Code, Fault, Method, Rule, RuleId};
use gcp_wire::proto::pubsub::PubsubMessage;
use prost::Message;
use pubsub_sink::{PubsubSink, SinkError};

use crate::world::{
    Bin, LONG, Record, World, checkpoint, desk, feed, is_poisoned, keyed, numbers, record, seal,
};

fn world() -> (World, RuleId) {
    let world = World::new(&["events"]);
    let rule = Rule::on(Method::Publish)
        .when(is_poisoned)
        .then(Fault::answer(
            Code::InvalidArgument,
            "does not match the schema",
        ));
    let rule = world.emulator.faults().add(rule);
    (world, rule)
}

async fn wish(sink: &mut PubsubSink<Record>) -> Room {
    poll_fn(|cx| sink.poll_room(cx)).await.unwrap()
}

#[expect(clippy::future_not_send, reason = "the tests run on one thread")]
async fn until_quarantined(sink: &PubsubSink<Record>, count: u64) {
    while sink.stats().quarantined_records < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_is_kept_aside_and_its_neighbours_and_later_epochs_leave() {
    let (world, _) = world();
    let mut sink = world.staged().build().unwrap();
    feed(
        &mut sink,
        [
            record("events", "0"),
            record("events", "bad!"),
            record("events", "1"),
        ],
    )
    .await;
    seal(&mut sink, 1).await;
    let mut first = sink.commit(Epoch::new(1));
    until_quarantined(&sink, 1).await;
    assert_eq!(world.stored("events"), ["0", "1"]);
    assert!(
        first.try_now().is_none(),
        "no durable state names it as kept aside"
    );
    assert_eq!(wish(&mut sink).await, Room::CheckpointWanted);
    assert_eq!(wish(&mut sink).await, Room::Ready, "asked once");

    feed(&mut sink, [record("events", "2")]).await;
    let (saved, second) = checkpoint(&mut sink, 2).await;
    assert_eq!((second.settled, second.retained), (1, 0));
    let first = first.await.unwrap();
    assert_eq!((first.settled, first.retained), (2, 1));
    assert_eq!(world.stored("events"), ["0", "1", "2"]);
    assert_eq!(saved.restored().state.quarantined(), 1);

    let kept = sink.quarantined();
    assert_eq!(kept.len(), 1);
    assert!(kept[0].reason.contains("does not match the schema"));
    let message = PubsubMessage::decode(kept[0].message.clone()).unwrap();
    assert_eq!(message.data.as_ref(), b"bad!");
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_is_lost_by_no_crash_and_ends_no_restart() {
    let (world, _) = world();
    let mut sink = world.staged().build().unwrap();
    feed(&mut sink, [record("events", "bad!"), record("events", "0")]).await;
    let saved = seal(&mut sink, 1).await;
    drop(sink.commit(Epoch::new(1)));
    until_quarantined(&sink, 1).await;
    drop(sink);

    // The crash came before a state named it as kept aside: it is tried again, and kept aside again.
    let mut sink = world.staged().restore([saved.restored()]).build().unwrap();
    let restored = sink.restored();
    until_quarantined(&sink, 1).await;
    assert_eq!(world.stored("events"), ["0", "0"]);
    let (saved, _) = checkpoint(&mut sink, 2).await;
    assert_eq!(restored.await.unwrap().retained, 1);
    drop(sink);

    // From here on it is not even tried, with the mark or without.
    let requests = world.count(Method::Publish);
    for restored in [saved.settled(), saved.restored()] {
        let mut sink = world.staged().restore([restored]).build().unwrap();
        assert_eq!(sink.restored().await.unwrap().total(), 0);
        assert_eq!(sink.quarantined().len(), 1);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(world.count(Method::Publish), requests);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_takes_no_further_checkpoint_is_told_not_to_mark_the_epoch() {
    let (world, _) = world();
    let mut sink = world.staged().build().unwrap();
    feed(&mut sink, [record("events", "bad!"), record("events", "0")]).await;
    seal(&mut sink, 1).await;
    let commit = tokio::time::timeout(LONG, sink.commit(Epoch::new(1)))
        .await
        .unwrap();
    match commit {
        Err(CheckpointError::Retained {
            epoch,
            items: 1,
            after,
        }) => assert_eq!((epoch, after), (Epoch::new(1), Duration::from_secs(30))),
        other => panic!("{other:?}"),
    }
    // A later checkpoint settles it after all, and the sink goes on.
    let (_, committed) = checkpoint(&mut sink, 2).await;
    assert_eq!(committed.total(), 0);
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_aborted_checkpoint_vouches_for_nothing_that_is_kept_aside() {
    let (world, _) = world();
    let mut sink = world.staged().build().unwrap();
    feed(&mut sink, [record("events", "bad!")]).await;
    seal(&mut sink, 1).await;
    let mut first = sink.commit(Epoch::new(1));
    until_quarantined(&sink, 1).await;
    seal(&mut sink, 2).await;
    sink.abort(Epoch::new(2));
    let second = sink.commit(Epoch::new(2));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(first.try_now().is_none());
    checkpoint(&mut sink, 3).await;
    assert_eq!(first.await.unwrap().retained, 1);
    assert_eq!(second.await.unwrap().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_was_to_name_what_is_kept_aside_is_asked_for_again_when_it_is_aborted() {
    let (world, _) = world();
    let mut sink = world.staged().build().unwrap();
    feed(&mut sink, [record("events", "bad!")]).await;
    seal(&mut sink, 1).await;
    let first = sink.commit(Epoch::new(1));
    until_quarantined(&sink, 1).await;
    assert_eq!(wish(&mut sink).await, Room::CheckpointWanted);
    seal(&mut sink, 2).await;
    assert_eq!(wish(&mut sink).await, Room::Ready, "it is on its way");
    sink.abort(Epoch::new(2));
    assert_eq!(wish(&mut sink).await, Room::CheckpointWanted);
    checkpoint(&mut sink, 3).await;
    assert_eq!(first.await.unwrap().retained, 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_a_message_over_has_to_make_it_durable_before_its_commit_is_complete()
{
    let (world, _) = world();
    let (handler, mut desk) = desk();
    let mut sink = world.staged().on_rejected(handler).build().unwrap();
    feed(&mut sink, [record("events", "bad!")]).await;
    let mut receipt = sink.snapshot(Epoch::new(1));
    desk.flushes.recv().await.unwrap().send(Ok(())).unwrap();
    (&mut receipt).await.unwrap();
    let mut commit = sink.commit(Epoch::new(1));
    let (rejected, verdict) = desk.rejected.recv().await.unwrap();
    assert_eq!(rejected.reason, RejectedReason::Refused);
    assert_eq!(rejected.epoch, Some(Epoch::new(1)));
    verdict.send(Verdict::Drop).unwrap();
    // The first flush fails and is repeated by itself.
    let refused = CheckpointError::driver_gone();
    desk.flushes
        .recv()
        .await
        .unwrap()
        .send(Err(refused))
        .unwrap();
    let flush = desk.flushes.recv().await.unwrap();
    assert!(commit.try_now().is_none());
    assert_eq!(sink.stats().in_flight_records, 1, "and it keeps its room");
    // Meanwhile every state names it.
    let mut again = sink.snapshot(Epoch::new(2));
    flush.send(Ok(())).unwrap();
    assert_eq!(commit.await.unwrap().retained, 1);
    desk.flushes.recv().await.unwrap().send(Ok(())).unwrap();
    (&mut again).await.unwrap();
    assert_eq!(sink.stats().in_flight_records, 0);
    assert!(sink.quarantined().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_repaired_topic_gets_what_was_kept_aside_with_the_next_commit() {
    let (world, poison) = world();
    let mut sink = world
        .staged()
        .identity_attributes("incarnation", "sequence")
        .build()
        .unwrap();
    feed(
        &mut sink,
        [record("events", "bad!"), record("events", "worse!")],
    )
    .await;
    seal(&mut sink, 1).await;
    drop(sink.commit(Epoch::new(1)));
    until_quarantined(&sink, 2).await;
    assert_eq!(
        sink.publish_quarantined(|_| true),
        0,
        "no durable state keeps them yet"
    );
    checkpoint(&mut sink, 2).await;

    let worse = sink.quarantined()[1].identity;
    assert_eq!(sink.discard_quarantined(|identity| identity == worse), 1);
    world.emulator.faults().remove(poison);
    let bad = sink.quarantined()[0].identity;
    assert_eq!(sink.publish_quarantined(|_| true), 1);
    assert!(world.stored("events").is_empty());
    let (_, committed) = checkpoint(&mut sink, 3).await;
    assert_eq!(committed.settled, 1);
    let seen = world
        .emulator
        .observe()
        .topic(&crate::world::full("events"));
    assert_eq!(seen.messages.len(), 1);
    assert_eq!(
        seen.messages[0].attributes["sequence"],
        bad.sequence.to_string()
    );
    assert!(sink.quarantined().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_full_quarantine_ends_the_sink_and_the_state_still_names_the_message() {
    let (world, _) = world();
    let builder = || world.staged().quarantine(Limits::items(1));
    let mut sink = builder().build().unwrap();
    feed(
        &mut sink,
        [record("events", "bad!"), record("events", "worse!")],
    )
    .await;
    let saved = seal(&mut sink, 1).await;
    let lost = tokio::time::timeout(LONG, sink.commit(Epoch::new(1)))
        .await
        .unwrap();
    assert!(matches!(lost, Err(CheckpointError::Closed { .. })));
    let error = sink.ready().await.unwrap_err();
    assert!(
        matches!(error, SinkError::QuarantineFull { items: 1, .. }),
        "{error}"
    );
    assert_eq!(error.code(), Some(pubsub_sink::Code::InvalidArgument));
    // Somewhere to put it, and the sink goes on.
    let bin = Bin::default();
    let mut sink = builder()
        .on_rejected(bin.clone())
        .restore([saved.restored()])
        .build()
        .unwrap();
    assert_eq!(sink.restored().await.unwrap().retained, 2);
    assert_eq!(bin.content().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_of_a_key_lets_its_successors_pass_once_it_is_kept_aside() {
    let (world, _) = world();
    let mut sink = world.staged().message_ordering(true).build().unwrap();
    let records = ["0", "bad!", "1", "2"].map(|payload| keyed("events", "key", payload));
    feed(&mut sink, records).await;
    seal(&mut sink, 1).await;
    drop(sink.commit(Epoch::new(1)));
    until_quarantined(&sink, 1).await;
    let (_, committed) = checkpoint(&mut sink, 2).await;
    assert_eq!(committed.total(), 0);
    assert_eq!(world.stored("events"), numbers(0..3));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_never_encodes_holds_up_the_snapshot_and_not_the_commits_before_it() {
    let (world, _) = world();
    let (handler, mut desk) = desk();
    let mut sink = world.staged().on_rejected(handler).build().unwrap();
    feed(&mut sink, [record("events", "0")]).await;
    let mut first = sink.snapshot(Epoch::new(1));
    desk.flushes.recv().await.unwrap().send(Ok(())).unwrap();
    (&mut first).await.unwrap();
    feed(&mut sink, [record("events", "")]).await;
    let (rejected, verdict) = desk.rejected.recv().await.unwrap();
    assert_eq!(rejected.reason, RejectedReason::Limit);
    let mut second = sink.snapshot(Epoch::new(2));
    assert_eq!(sink.commit(Epoch::new(1)).await.unwrap().settled, 1);
    assert!(
        (&mut second).now_or_never().is_none(),
        "its verdict is not known"
    );
    verdict.send(Verdict::Drop).unwrap();
    desk.flushes.recv().await.unwrap().send(Ok(())).unwrap();
    assert_eq!(second.await.unwrap().messages(), 0);
    assert_eq!(sink.commit(Epoch::new(2)).await.unwrap().retained, 1);
}

#[tokio::test(start_paused = true)]
async fn refusals_in_a_row_end_no_staged_sink_and_are_kept_aside_or_taken_over() {
    let (world, _) = world();
    let bad = || (0..150).map(|number| record("events", format!("{number}!")));
    let mut sink = world.staged().build().unwrap();
    feed(&mut sink, bad()).await;
    seal(&mut sink, 1).await;
    let first = sink.commit(Epoch::new(1));
    let aside = tokio::time::timeout(LONG, until_quarantined(&sink, 150));
    aside.await.expect("all of them are kept aside");
    assert_eq!(sink.stats().consecutive_rejections, 150);
    let (saved, _) = checkpoint(&mut sink, 2).await;
    assert_eq!(first.await.unwrap().retained, 150);
    assert_eq!(saved.restored().state.quarantined(), 150);
    sink.close().await.unwrap();

    let bin = Bin::default();
    let mut sink = world.staged().on_rejected(bin.clone()).build().unwrap();
    feed(&mut sink, bad()).await;
    let (_, committed) = checkpoint(&mut sink, 1).await;
    assert_eq!((committed.settled, committed.retained), (0, 150));
    assert_eq!(bin.content().len(), 150);
    sink.close().await.unwrap();
}
