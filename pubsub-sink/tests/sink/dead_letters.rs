//! Rejected records that are published to a topic of their own.

mod flushes;

use std::{error::Error, time::Duration};

use connector_core::{
    Cause, Checkpoint, CheckpointError, Epoch, FailureHandler, Limits, Receipt, Rejected,
    RejectedReason, Verdict,
};
use futures::SinkExt;
use gcp_emulator::{Call, Code, Fault, Method, Rule};
use gcp_wire::proto::pubsub::PubsubMessage;
use prost::Message;
use pubsub_sink::{
    DeadLetterBuilder, DeadLetterError, Outstanding, PublishMessage, PubsubDeadLetterQueue,
    SinkError,
};
use tokio::runtime::Handle;
use tracing::Level;

use crate::{
    log::Log,
    world::{
        LONG, POISON, Record, World, feed, full, is_poisoned, now, numbers, published, record,
    },
};

impl World {
    fn queue(&self) -> DeadLetterBuilder {
        PubsubDeadLetterQueue::builder(full("rejected").parse().unwrap()).endpoint(self.endpoint())
    }
}

fn is_dead_letter(call: &Call) -> bool {
    published(call).topic == full("rejected")
}

/// What happens to requests that publish dead letters.
fn on_dead_letters(fault: Fault) -> Rule {
    Rule::on(Method::Publish).when(is_dead_letter).then(fault)
}

/// A record that the sink rejects by itself.
fn invalid() -> Record {
    let mut invalid = record("events", "");
    invalid.message = PublishMessage::new("x").attribute("goog-x", "v");
    invalid
}

fn rejected(payload: &'static str) -> Rejected {
    Rejected::new("cloudtasks-sink", "queue", RejectedReason::Refused).payload(payload.into())
}

/// The error of the queue inside what a handler's receipt answered.
fn dead_letter_error(error: &CheckpointError) -> &DeadLetterError {
    let CheckpointError::Handler { cause } = error else {
        panic!("{error}");
    };
    cause.get().downcast_ref().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_refused_record_arrives_whole_with_where_it_was_to_go_and_why() {
    let world = World::new(&["events", "rejected"]);
    let refuse = Fault::answer(Code::InvalidArgument, "does not match the schema");
    let poisoned = |call: &Call| !is_dead_letter(call) && is_poisoned(call);
    world.fault(Rule::on(Method::Publish).when(poisoned).then(refuse));
    let queue = world.queue().instance("3").build().unwrap();
    let watch = queue.watch();
    let mut sink = world
        .builder()
        .instance("3")
        .on_rejected(queue)
        .build()
        .unwrap();
    let mut guilty = record("events", "");
    guilty.message = PublishMessage::new(vec![POISON]).attribute("tenant", "acme");
    feed(
        &mut sink,
        [record("events", "0"), guilty, record("events", "1")],
    )
    .await;
    sink.snapshot(Epoch::new(1)).await.unwrap();

    let letters = world
        .emulator
        .observe()
        .topic(&full("rejected"))
        .messages
        .clone();
    assert_eq!(letters.len(), 1, "and the neighbours are no dead letters");
    let whole = PubsubMessage::decode(letters[0].data.clone()).unwrap();
    assert_eq!(whole.data.as_ref(), [POISON]);
    assert_eq!(whole.attributes["tenant"], "acme");
    let attributes = &letters[0].attributes;
    assert_eq!(attributes["dlq-connector"], "pubsub-sink");
    assert_eq!(attributes["dlq-destination"], full("events"));
    assert!(attributes["dlq-error"].contains("does not match the schema"));
    assert_eq!(attributes["dlq-subtask"], "3");
    assert!(attributes["dlq-timestamp"].ends_with('Z'));
    assert!(attributes.len() <= 6);
    assert_eq!(watch.stats().records_published, 1);
    assert_eq!(watch.stats().in_flight_records, 0);
    assert_eq!(sink.stats().records_published, 2);
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missing_topic_is_told_at_the_start_and_ends_the_sink_without_being_created() {
    let (log, _guard) = Log::collect();
    let world = World::new(&["events"]);
    let (queue, driver) = world.queue().build_with_driver().unwrap();
    let queue_ended = Handle::current().spawn(driver);
    let mut sink = world.builder().on_rejected(queue).build().unwrap();
    feed(&mut sink, [record("events", "0")]).await;
    sink.flush().await.unwrap();
    feed(&mut sink, [invalid()]).await;
    let error = sink.flush().await.unwrap_err();
    let mut chain = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        chain.push(error.to_string());
        source = error.source();
    }
    let missing = format!("topic {} does not exist", full("rejected"));
    assert!(
        chain.iter().any(|text| text.contains(&missing)),
        "{chain:?}"
    );
    assert_eq!(world.count(Method::CreateTopic), 0);
    // The sink's end is the queue's, whose look at the topic is done by then.
    queue_ended.await.unwrap();
    let told = log.lines(Level::WARN);
    let warning = |line: &String| line.contains("dead letters does not exist");
    assert!(told.iter().any(warning), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_nobody_reads_is_told_at_the_start_and_one_with_a_reader_is_not() {
    for (read, warnings) in [(false, 1), (true, 0)] {
        let (log, _guard) = Log::collect();
        let world = World::new(&["rejected"]);
        if read {
            let name = "projects/demo/subscriptions/rejected";
            world
                .emulator
                .create_subscription(name, &full("rejected"), |_| ())
                .unwrap();
        }
        let (mut queue, driver) = world.queue().build_with_driver().unwrap();
        let run = async move {
            queue.handle(rejected("a")).await.unwrap();
            queue.flush().await.unwrap();
        };
        // The driver ends when the queue is gone and the look at the topic is done.
        futures::join!(run, driver);
        assert_eq!(world.count(Method::ListTopicSubscriptions), 1);
        let told = log.lines(Level::WARN);
        let found = told
            .iter()
            .filter(|line| line.contains("has no subscription"))
            .count();
        assert_eq!(found, warnings, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_may_not_look_at_the_topic_publishes_to_it_all_the_same() {
    let (log, _guard) = Log::collect();
    let world = World::new(&["rejected"]);
    let denied = Fault::answer(Code::PermissionDenied, "no");
    world.fault(Rule::on(Method::ListTopicSubscriptions).then(denied));
    let (mut queue, driver) = world.queue().build_with_driver().unwrap();
    let run = async move {
        queue.handle(rejected("a")).await.unwrap();
        queue.flush().await.unwrap();
    };
    futures::join!(run, driver);
    assert_eq!(world.count(Method::ListTopicSubscriptions), 1);
    assert_eq!(world.stored("rejected"), ["a"]);
    assert_eq!(log.lines(Level::WARN), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn every_sinks_rejections_are_taken_also_those_without_a_payload() {
    let world = World::new(&["rejected"]);
    let mut handler: Box<dyn FailureHandler> = Box::new(world.queue().build().unwrap());
    let cause = Cause::new(std::io::Error::other("é".repeat(2_000)));
    let encoding = Rejected::new("their-sink", "unresolved", RejectedReason::Encoding);
    let verdict = handler.handle(encoding.source(cause).epoch(Epoch::new(9)));
    assert_eq!(verdict.await.unwrap(), Verdict::Drop);
    handler.flush().await.unwrap();
    let letters = world
        .emulator
        .observe()
        .topic(&full("rejected"))
        .messages
        .clone();
    assert!(letters[0].data.is_empty());
    let attributes = &letters[0].attributes;
    assert_eq!(attributes["dlq-connector"], "their-sink");
    assert_eq!(attributes["dlq-destination"], "unresolved");
    assert_eq!(attributes["dlq-error"], "é".repeat(510) + "...");
    assert_eq!(attributes["dlq-epoch"], "9");
}

#[tokio::test(start_paused = true)]
async fn beyond_the_bound_a_verdict_waits_until_letters_are_stored() {
    let world = World::new(&["rejected"]);
    world.fault(on_dead_letters(Fault::Delay(Duration::from_secs(1))));
    let bound = Outstanding::Below(Limits::new(2, 1 << 20));
    let mut queue = world.queue().max_outstanding(bound).build().unwrap();
    let mut verdicts: Vec<Receipt<Verdict>> = (0..5).map(|_| queue.handle(rejected("x"))).collect();
    let at_once = verdicts
        .iter_mut()
        .filter_map(Receipt::try_now)
        .filter(|verdict| matches!(verdict, Ok(Verdict::Drop)))
        .count();
    assert_eq!(at_once, 2);
    for verdict in verdicts.split_off(2) {
        assert_eq!(verdict.await.unwrap(), Verdict::Drop);
        assert!(!world.stored("rejected").is_empty());
    }
    queue.flush().await.unwrap();
    assert_eq!(world.stored("rejected").len(), 5);
}

#[tokio::test(start_paused = true)]
async fn written_through_each_verdict_means_stored() {
    let world = World::new(&["rejected"]);
    world.fault(on_dead_letters(Fault::Delay(Duration::from_secs(1))));
    let through = Outstanding::WriteThrough;
    let mut queue = world.queue().max_outstanding(through).build().unwrap();
    for stored in 1..=3 {
        let mut verdict = queue.handle(rejected("x"));
        assert!(verdict.try_now().is_none());
        verdict.await.unwrap();
        assert_eq!(world.stored("rejected").len(), stored);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_queue_slows_its_sink_and_loses_nothing() {
    let world = World::new(&["events", "rejected"]);
    let unavailable = Fault::answer(Code::Unavailable, "an outage");
    let faults = world.emulator.faults();
    let outage = faults.add(on_dead_letters(unavailable));
    let bound = Outstanding::Below(Limits::new(3, 1 << 20));
    let queue = world.queue().max_outstanding(bound).build().unwrap();
    let watch = queue.watch();
    let mut sink = world
        .builder()
        .limits(Limits::new(10, 1 << 20))
        .on_rejected(queue)
        .build()
        .unwrap();
    // Three are outstanding and ten hold the sink's room.
    feed(&mut sink, (0..13).map(|_| invalid())).await;
    let room = tokio::time::timeout(Duration::from_secs(60), sink.ready()).await;
    assert!(
        room.is_err(),
        "the outage reaches the host as a lack of room"
    );
    assert_eq!(sink.stats().pending_verdicts, 10);
    faults.remove(outage);
    feed(&mut sink, (0..37).map(|_| invalid())).await;
    sink.snapshot(Epoch::new(1)).await.unwrap();
    assert_eq!(world.stored("rejected").len(), 50);
    sink.close().await.unwrap();
    let failed: Vec<pubsub_sink::Code> = watch.failures().into_keys().collect();
    assert_eq!(failed, [pubsub_sink::Code::Unavailable]);
    assert!(sink.failures().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_refuses_ends_the_queue_and_no_flush_succeeds_again() {
    let world = World::new(&["rejected"]);
    let denied = Fault::answer(Code::PermissionDenied, "no");
    world.fault(on_dead_letters(denied).once());
    let mut queue = world.queue().build().unwrap();
    // Below the bound the verdict does not wait; it is the flush that tells.
    assert_eq!(queue.handle(rejected("a")).await.unwrap(), Verdict::Drop);
    for _ in 0..2 {
        let error = queue.flush().await.unwrap_err();
        let ended = dead_letter_error(&error);
        assert!(matches!(ended, DeadLetterError::Ended { .. }), "{ended}");
        let cause = ended.source().unwrap().to_string();
        assert!(cause.contains(&full("rejected")), "{cause}");
    }
    // The topic would take it now, but one before it is lost to this queue.
    let error = queue.handle(rejected("b")).await.unwrap_err();
    let ended = dead_letter_error(&error);
    assert!(matches!(ended, DeadLetterError::Ended { .. }), "{ended}");
    assert!(queue.flush().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_letter_too_large_with_its_envelope_ends_the_sink_and_is_not_dropped() {
    let world = World::new(&["events", "rejected"]);
    let queue = world.queue().build().unwrap();
    let mut sink = world.builder().on_rejected(queue).build().unwrap();
    let mut large = invalid();
    large.message = PublishMessage::new(vec![0; 10_000_000]).attribute("goog-x", "v");
    feed(&mut sink, [large]).await;
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, SinkError::Handler { .. }), "{error}");
    assert_eq!(world.stored("rejected").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_whose_driver_is_dropped_fails_closed() {
    let world = World::new(&["rejected"]);
    let (mut queue, driver) = world.queue().build_with_driver().unwrap();
    let early = queue.handle(rejected("a"));
    assert_eq!(early.await.unwrap(), Verdict::Drop);
    let flush = queue.flush();
    drop(driver);
    assert!(flush.await.is_err());
    assert!(queue.flush().await.is_err());
    assert!(queue.handle(rejected("b")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_is_outstanding_is_still_sent_when_the_queue_is_dropped() {
    let world = World::new(&["rejected"]);
    let unavailable = Fault::answer(Code::Unavailable, "an outage");
    world.fault(on_dead_letters(unavailable).times(3));
    let (mut queue, driver) = world.queue().build_with_driver().unwrap();
    for number in numbers(0..20) {
        let mut letter = rejected("");
        letter.payload = Some(number.into());
        assert_eq!(queue.handle(letter).await.unwrap(), Verdict::Drop);
    }
    drop(queue);
    tokio::time::timeout(LONG, driver).await.unwrap();
    assert_eq!(world.stored("rejected").len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_queue_gives_up_at_its_limit() {
    let world = World::new(&["rejected"]);
    world.fault(on_dead_letters(Fault::Never));
    let limit = Duration::from_secs(7);
    let (mut queue, driver) = world
        .queue()
        .shutdown_timeout(limit)
        .build_with_driver()
        .unwrap();
    assert_eq!(queue.handle(rejected("a")).await.unwrap(), Verdict::Drop);
    let start = now();
    drop(queue);
    driver.await;
    assert!(start.elapsed() <= limit + Duration::from_secs(1));
}
