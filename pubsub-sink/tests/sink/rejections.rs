//! Records that are refused for a reason of their own.

use std::time::Duration;

use connector_core::{Checkpoint, Epoch, LogAndDrop, RejectedReason, Verdict, host::Admission};
use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};
use gcp_wire::proto::pubsub::PubsubMessage;
use prost::Message;
use pubsub_sink::{MessageError, PublishMessage, PubsubSink, SinkError, TopicName};

use crate::world::{Bin, POISON, Record, World, desk, feed, is_poisoned, numbers, record};

fn ten_records(fifth: PublishMessage) -> Vec<Record> {
    let mut records: Vec<Record> = numbers(0..10)
        .into_iter()
        .map(|n| record("events", n))
        .collect();
    records[5].message = fifth;
    records
}

async fn nine_arrive_and_the_fifth_is_rejected(fifth: PublishMessage, reason: RejectedReason) {
    let world = World::new(&["events"]);
    let refuse = Fault::answer(Code::InvalidArgument, "does not match the schema");
    world.fault(Rule::on(Method::Publish).when(is_poisoned).then(refuse));
    let bin = Bin::default();
    let mut sink = world
        .builder()
        .on_rejected(bin.clone())
        .linger(Duration::from_secs(1))
        .build()
        .unwrap();
    feed(&mut sink, ten_records(fifth.clone())).await;
    sink.flush().await.unwrap();
    let mut stored = world.stored("events");
    stored.sort_unstable();
    assert_eq!(stored, ["0", "1", "2", "3", "4", "6", "7", "8", "9"]);
    let rejected = bin.content();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0].reason, reason);
    assert_eq!(rejected[0].connector, "pubsub-sink");
    assert_eq!(rejected[0].destination, "projects/demo/topics/events");
    let whole = PubsubMessage::decode(rejected[0].payload.clone().unwrap()).unwrap();
    assert_eq!(
        whole.data,
        *fifth.payload(),
        "the whole message can be recovered"
    );
    assert_eq!(whole.attributes.len(), fifth.attributes().len());
    assert!(world.requests().len() < 12, "no endless retry");
    let refused = usize::from(reason == RejectedReason::Refused);
    let failures: Vec<(pubsub_sink::Code, u64)> = sink.failures().into_iter().collect();
    let expected = [(pubsub_sink::Code::InvalidArgument, 1)];
    assert_eq!(failures, expected[..refused]);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_content_is_rejected_alone() {
    let empty = PublishMessage::default();
    nine_arrive_and_the_fifth_is_rejected(empty, RejectedReason::Limit).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_with_an_attribute_too_long_is_rejected_alone() {
    let long = PublishMessage::new("5").attribute("k", "v".repeat(1025));
    nine_arrive_and_the_fifth_is_rejected(long, RejectedReason::Limit).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_service_refuses_is_found_among_its_neighbours() {
    let poisoned = PublishMessage::new(vec![POISON]);
    nine_arrive_and_the_fifth_is_rejected(poisoned, RejectedReason::Refused).await;
}

#[tokio::test(start_paused = true)]
async fn attributes_at_every_limit_pass_and_one_above_names_key_and_size() {
    let world = World::new(&["events"]);
    let bin = Bin::default();
    let mut sink = world.builder().on_rejected(bin.clone()).build().unwrap();
    let many = |count: usize, key: usize, value: &str| {
        let mut record = record("events", "x");
        record.message = (0..count).fold(record.message, |message, n| {
            message.attribute(format!("{n:0>key$}"), value)
        });
        record
    };
    let two_bytes = "é".repeat(512);
    let fits = [many(100, 256, &"v".repeat(1024)), many(1, 1, &two_bytes)];
    feed(&mut sink, fits).await;
    let with_key = |key: &str| {
        let mut record = record("events", "x");
        record.message = record.message.attribute(key, "v");
        record
    };
    let broken = [
        many(101, 3, "v"),
        many(1, 257, "v"),
        many(1, 1, &"v".repeat(1025)),
        with_key(""),
        with_key("goog-x"),
        with_key("googclient_x"),
    ];
    feed(&mut sink, broken).await;
    sink.flush().await.unwrap();
    assert_eq!(world.stored("events").len(), 2);
    let texts: Vec<String> = bin
        .content()
        .iter()
        .map(|r| r.source.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(texts.len(), 6);
    for (text, parts) in texts.iter().zip([
        &["101", "100"][..],
        &["257", "256"],
        &["\"0\"", "1025", "1024"],
        &["empty key"],
        &["\"goog-x\"", "reserves"],
        &["\"googclient_x\"", "reserves"],
    ]) {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn attributes_alone_are_a_message_and_an_ordering_key_alone_is_not() {
    let world = World::new(&["events"]);
    let bin = Bin::default();
    let mut sink = world
        .builder()
        .message_ordering(true)
        .on_rejected(bin.clone())
        .build()
        .unwrap();
    let mut attributes_only = record("events", "");
    attributes_only.message = attributes_only.message.attribute("k", "v");
    let mut key_only = record("events", "");
    key_only.message = key_only.message.ordering_key("k");
    feed(&mut sink, [attributes_only, key_only]).await;
    sink.flush().await.unwrap();
    let seen = world
        .emulator
        .observe()
        .topic("projects/demo/topics/events");
    assert_eq!(seen.published, 1);
    assert_eq!(seen.messages[0].attributes["k"], "v");
    let source = bin.content()[0].source.clone().unwrap();
    assert_eq!(
        source.get().downcast_ref::<MessageError>(),
        Some(&MessageError::Empty)
    );
}

#[tokio::test(start_paused = true)]
async fn a_topic_name_that_does_not_parse_is_its_records_failure_alone() {
    let world = World::new(&["orders", "o+r%d~e.r_s-1", "projects/other/topics/orders"]);
    let bin = Bin::default();
    let mut sink = world.builder().on_rejected(bin.clone()).build().unwrap();
    let long = "x".repeat(256);
    let names = [
        "orders",
        "projects/demo/topics/orders",
        "projects/other/topics/orders",
        "a/b",
        "1abc",
        "ab",
        "goog-x",
        "",
        "o+r%d~e.r_s-1",
        &long,
    ];
    feed(&mut sink, names.map(|name| record(name, name))).await;
    sink.flush().await.unwrap();
    let mut same = world.stored("orders");
    same.sort_unstable();
    assert_eq!(same, ["orders", "projects/demo/topics/orders"]);
    assert_eq!(world.stored("projects/other/topics/orders").len(), 1);
    assert_eq!(
        world.stored("o+r%d~e.r_s-1").len(),
        1,
        "legal punctuation goes unescaped"
    );
    let rejected = bin.content();
    assert_eq!(rejected.len(), 6);
    for (rejected, name) in rejected
        .iter()
        .zip(["a/b", "1abc", "ab", "goog-x", "", &long])
    {
        assert_eq!(rejected.reason, RejectedReason::Destination);
        assert_eq!(rejected.destination, "unresolved");
        let text = rejected.source.as_ref().unwrap().to_string();
        let beginning: String = name.chars().take(10).collect();
        assert!(text.contains(&beginning), "{text} names {name:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_destination_ends_the_sink_even_under_a_handler_that_drops() {
    let world = World::new(&["events"]);
    let mut sink = PubsubSink::builder(|_: &u32| Ok(None))
        .resolve(|_: &u32| None::<TopicName>)
        .endpoint(world.endpoint())
        .on_rejected(LogAndDrop)
        .build()
        .unwrap();
    // The encoder would skip the record, but it names no topic.
    let error = sink.feed(1).await.unwrap_err();
    assert!(matches!(error, SinkError::NoDestination), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_does_not_encode_is_rejected_and_a_skipped_one_is_counted() {
    let world = World::new(&["events"]);
    let bin = Bin::default();
    let mut sink = PubsubSink::builder(|number: &u32| match number {
        0 => Ok(None),
        1 => Err("one is not a number here".into()),
        other => Ok(Some(PublishMessage::json(other)?)),
    })
    .topic("projects/demo/topics/events".parse().unwrap())
    .endpoint(world.endpoint())
    .on_rejected(bin.clone())
    .build()
    .unwrap();
    for number in 0..3 {
        sink.feed(number).await.unwrap();
    }
    sink.flush().await.unwrap();
    assert_eq!(world.stored("events"), ["2"]);
    let stats = sink.stats();
    assert_eq!((stats.records_skipped, stats.records_rejected), (1, 1));
    assert_eq!((stats.records_accepted, stats.records_published), (2, 1));
    let rejected = &bin.content()[0];
    assert_eq!(rejected.reason, RejectedReason::Encoding);
    assert_eq!(rejected.payload, None);
    assert!(
        rejected
            .source
            .as_ref()
            .unwrap()
            .to_string()
            .contains("not a number")
    );
}

#[tokio::test(start_paused = true)]
async fn the_default_handler_ends_the_sink_with_the_reason_of_the_rejection() {
    let world = World::new(&["events"]);
    let mut sink = world.sink();
    let mut empty = record("events", "");
    empty.message = PublishMessage::default();
    sink.feed(empty).await.unwrap();
    let error = sink.flush().await.unwrap_err();
    assert!(
        matches!(
            error,
            SinkError::Rejected {
                reason: RejectedReason::Limit,
                ..
            }
        ),
        "{error}"
    );
    let source = std::error::Error::source(&error).unwrap();
    assert!(
        source
            .to_string()
            .contains("neither payload nor attributes"),
        "{source}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rejected_record_keeps_its_room_until_the_verdict() {
    let world = World::new(&["events"]);
    let (handler, mut desk) = desk();
    let limits = connector_core::Limits::new(1, 1 << 20);
    let mut sink = world
        .builder()
        .on_rejected(handler)
        .limits(limits)
        .build()
        .unwrap();
    sink.feed(record("a/b", "x")).await.unwrap();
    let (_, verdict) = desk.rejected.recv().await.unwrap();
    let room = std::future::poll_fn(|cx| sink.poll_room(cx));
    assert!(
        tokio::time::timeout(Duration::from_secs(60), room)
            .await
            .is_err()
    );
    assert_eq!(sink.stats().pending_verdicts, 1);
    verdict.send(Verdict::Drop).unwrap();
    sink.ready().await.unwrap();
    assert_eq!(sink.stats().in_flight_records, 0);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_complete_only_after_a_flush_called_after_the_last_handle() {
    let world = World::new(&["events"]);
    let (handler, mut desk) = desk();
    let mut sink = world.builder().on_rejected(handler).build().unwrap();
    sink.feed(record("a/b", "x")).await.unwrap();
    let mut receipt = sink.snapshot(Epoch::new(1));
    let (rejected, verdict) = desk.rejected.recv().await.unwrap();
    assert_eq!(rejected.epoch, Some(Epoch::new(1)));
    assert!(
        desk.flushes.try_recv().is_err(),
        "no flush before the verdict"
    );
    verdict.send(Verdict::Drop).unwrap();
    let flush = desk.flushes.recv().await.unwrap();
    assert!(receipt.try_now().is_none());
    flush.send(Ok(())).unwrap();
    receipt.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_refusals_in_a_row_end_the_sink_and_all_hundred_are_handed_over() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::answer(Code::InvalidArgument, "no"));
    let bin = Bin::default();
    let mut sink = world.builder().on_rejected(bin.clone()).build().unwrap();
    feed(
        &mut sink,
        numbers(0..150).into_iter().map(|n| record("events", n)),
    )
    .await;
    let error = sink.flush().await.unwrap_err();
    assert!(
        matches!(error, SinkError::TooManyRejections { count: 100, .. }),
        "{error}"
    );
    assert_eq!(bin.content().len(), 100);
}
