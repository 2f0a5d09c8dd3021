//! Many topics, missing topics, slow topics.

use std::time::Duration;

use connector_core::{Checkpoint, Epoch};
use futures::SinkExt;
use gcp_emulator::{Body, Code, Fault, Method, Rule};
use pubsub_sink::{MissingTopics, PublishMessage, PubsubSink, SinkError, TopicCreation, TopicName};
use tracing::Level;

use crate::log::Log;
use crate::world::{Bin, LONG, Record, World, feed, full, numbers, record};

/// What a sink holds while it meets one topic after the other.
#[derive(Default)]
struct Most {
    destinations: u64,
    records: u64,
    bytes: u64,
}

impl Most {
    fn see(&mut self, stats: pubsub_sink::Stats) {
        self.destinations = self.destinations.max(stats.destinations);
        self.records = self.records.max(stats.in_flight_records);
        self.bytes = self.bytes.max(stats.in_flight_bytes);
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_topics_share_one_connection_and_are_let_go_again() {
    let names: Vec<String> = (0..10_000).map(|n| format!("topic-{n}")).collect();
    let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut sink = world.sink();
    let mut most = Most::default();
    for name in &names {
        sink.feed(record(name, "x")).await.unwrap();
        most.see(sink.stats());
    }
    sink.flush().await.unwrap();
    assert!(most.destinations <= 101, "{} in use", most.destinations);
    assert!(most.records <= 101 && most.bytes <= 1_000);
    assert!(names.iter().all(|name| world.stored(name).len() == 1));
    assert_eq!(world.emulator.observe().connections_opened, 1);
    assert!(sink.stats().destinations_released >= 9_899);
    for name in &names[..10] {
        feed(&mut sink, std::iter::repeat_n(record(name, "y"), 100)).await;
    }
    sink.flush().await.unwrap();
    assert!(
        names[..10]
            .iter()
            .all(|name| world.stored(name).len() == 101)
    );
    tokio::time::sleep(LONG + Duration::from_secs(1)).await;
    assert_eq!(sink.stats().destinations, 0, "idle ones are let go");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_faster_than_the_driver_fills_requests_to_many_topics() {
    let names: Vec<String> = (0..50).map(|n| format!("topic-{n}")).collect();
    let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let limits = connector_core::Limits::items(50_000);
    let mut sink = world.builder().limits(limits).build().unwrap();
    let turns = names.iter().cycle().take(20_000);
    feed(&mut sink, turns.map(|name| record(name, "x"))).await;
    sink.flush().await.unwrap();
    assert!(names.iter().all(|name| world.stored(name).len() == 400));
    let requests = sink.stats().requests_sent;
    assert!(
        requests < 1_000,
        "{requests} requests of a few messages each"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_skips_everything_lets_the_driver_have_its_turn() {
    let world = World::new(&["orders"]);
    let builder = PubsubSink::builder(|n: &u32| Ok((*n == 0).then(|| PublishMessage::new("x"))));
    let topic = TopicName::parse_in("demo", "orders").unwrap();
    let mut sink = builder
        .topic(topic)
        .endpoint(world.endpoint())
        .build()
        .unwrap();
    for number in 0..100_000 {
        sink.feed(number).await.unwrap();
    }
    assert_eq!(
        world.stored("orders").len(),
        1,
        "before the host ever waited"
    );
}

#[tokio::test(start_paused = true)]
async fn one_commit_to_ten_thousand_topics_has_no_more_of_them_in_use_than_allowed() {
    let names: Vec<String> = (0..10_000).map(|n| format!("topic-{n}")).collect();
    let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    world.fault_on_publish(Fault::Delay(Duration::from_millis(5)));
    let stage = connector_core::Limits::items(20_000);
    let mut sink = world.staged().stage(stage).build().unwrap();
    feed(&mut sink, names.iter().map(|name| record(name, "x"))).await;
    let state = sink.snapshot(Epoch::new(1)).await.unwrap();
    assert_eq!(state.messages(), 10_000);
    let mut commit = sink.commit(Epoch::new(1));
    let mut most = Most::default();
    let committed = loop {
        most.see(sink.stats());
        let waited = tokio::time::timeout(Duration::from_millis(1), &mut commit).await;
        if let Ok(committed) = waited {
            break committed.unwrap();
        }
    };
    assert_eq!(committed.settled, 10_000);
    assert!(
        (1..=100).contains(&most.destinations),
        "{} in use",
        most.destinations
    );
    assert!(names.iter().all(|name| world.stored(name).len() == 1));
}

#[tokio::test(start_paused = true)]
async fn publishing_to_existing_topics_makes_no_administrative_call() {
    let names = [
        "one-topic",
        "two-topic",
        "three-topic",
        "four-topic",
        "five-topic",
    ];
    let world = World::new(&names);
    for method in [Method::GetTopic, Method::CreateTopic] {
        world.fault(Rule::on(method).then(Fault::answer(Code::PermissionDenied, "no")));
    }
    let mut sink = world.sink();
    for n in numbers(0..1_000) {
        let at = n.parse::<usize>().unwrap() % names.len();
        sink.feed(record(names[at], n)).await.unwrap();
    }
    sink.flush().await.unwrap();
    let stored: usize = names.iter().map(|name| world.stored(name).len()).sum();
    assert_eq!(stored, 1_000);
    assert_eq!(
        world.count(Method::GetTopic) + world.count(Method::CreateTopic),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_takes_nothing_does_not_hold_up_the_others() {
    let world = World::new(&["slow", "fast"]);
    let slow = full("slow");
    let rule = Rule::on(Method::Publish)
        .when(move |call| call.resource() == Some(&slow))
        .then(Fault::Never);
    world.fault(rule);
    let mut sink = world.sink();
    for n in numbers(0..100) {
        feed(&mut sink, [record("slow", n.clone()), record("fast", n)]).await;
    }
    let fast = full("fast");
    let arrived = world
        .emulator
        .wait_until(
            |seen| seen.topic(&fast).published == 100,
            Duration::from_secs(5),
        )
        .await;
    assert!(arrived);
}

#[tokio::test(start_paused = true)]
async fn a_denied_topic_ends_the_sink_with_its_name_and_the_code() {
    let world = World::new(&["secret"]);
    world.fault_on_publish(Fault::answer(Code::PermissionDenied, "not yours"));
    let mut sink = world.sink();
    sink.feed(record("secret", "x")).await.unwrap();
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, SinkError::Refused { .. }), "{error}");
    assert!(
        error.to_string().contains("projects/demo/topics/secret"),
        "{error}"
    );
    assert_eq!(error.code(), Some(pubsub_sink::Code::PermissionDenied));
    assert_eq!(world.count(Method::Publish), 1, "not retried");
}

#[tokio::test(start_paused = true)]
async fn a_missing_topic_ends_the_sink_with_its_name_and_what_to_do() {
    let world = World::new(&[]);
    let mut sink = world
        .builder()
        .missing_topics(MissingTopics::End)
        .build()
        .unwrap();
    sink.feed(record("nowhere", "x")).await.unwrap();
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, SinkError::TopicMissing { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("projects/demo/topics/nowhere") && text.contains("create the topic"));
    assert_eq!(error.code(), Some(pubsub_sink::Code::NotFound));
    assert_eq!(world.count(Method::CreateTopic), 0);
}

#[tokio::test(start_paused = true)]
async fn a_missing_topic_is_created_with_its_settings_and_a_warning() {
    let (log, _guard) = Log::collect();
    let world = World::new(&[]);
    let retention = Duration::from_secs(3600);
    let creation = TopicCreation::default().message_retention(retention);
    let mut sink = world
        .builder()
        .missing_topics(MissingTopics::Create(creation))
        .build()
        .unwrap();
    feed(
        &mut sink,
        numbers(0..500).into_iter().map(|n| record("fresh", n)),
    )
    .await;
    sink.snapshot(Epoch::new(1)).await.unwrap();
    assert_eq!(world.stored("fresh").len(), 500);
    let seen = world.emulator.observe();
    assert_eq!(seen.count(Method::CreateTopic), 1);
    let created = seen.requests_of(Method::CreateTopic).next().unwrap();
    let Body::CreateTopic(topic) = &created.body else {
        panic!("{:?}", created.body);
    };
    assert_eq!(topic.message_retention_duration.unwrap().seconds, 3600);
    assert_eq!(sink.stats().topics_created, 1);
    let warnings = log.lines(Level::WARN);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("no subscription"), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_someone_else_creates_meanwhile_is_as_good() {
    let world = World::new(&[]);
    let created_elsewhere = Fault::answer(Code::AlreadyExists, "it is there");
    world.fault(Rule::on(Method::CreateTopic).then(created_elsewhere));
    let mut sink = world.sink();
    sink.feed(record("fresh", "x")).await.unwrap();
    let asked = world
        .emulator
        .wait_until(|seen| seen.count(Method::CreateTopic) == 1, LONG)
        .await;
    assert!(asked);
    world.create("fresh");
    sink.flush().await.unwrap();
    assert_eq!(world.stored("fresh"), ["x"]);
    assert_eq!(sink.stats().topics_created, 0);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_may_not_be_created_ends_the_sink_with_its_name() {
    let world = World::new(&[]);
    let denied = Fault::answer(Code::PermissionDenied, "no");
    world.fault(Rule::on(Method::CreateTopic).then(denied));
    let mut sink = world.sink();
    sink.feed(record("fresh", "x")).await.unwrap();
    let error = sink.flush().await.unwrap_err();
    assert!(
        matches!(error, SinkError::TopicNotCreated { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("projects/demo/topics/fresh"),
        "{error}"
    );
    assert_eq!(error.code(), Some(pubsub_sink::Code::PermissionDenied));
}

#[tokio::test(start_paused = true)]
async fn each_topic_has_numbers_of_its_own_on_request_and_they_outlive_its_use() {
    let world = World::new(&["one", "two", "three"]);
    let mut sink = world
        .builder()
        .max_destinations(1)
        .destination_stats(2)
        .on_rejected(Bin::default())
        .build()
        .unwrap();
    let mut empty = record("two", "");
    empty.message = PublishMessage::default();
    for records in [
        vec![record("one", "0"), record("one", "1")],
        vec![record("two", "2"), empty],
        vec![record("three", "3"), record("a/b", "4")],
        vec![record("one", "5")],
    ] {
        feed(&mut sink, records).await;
        sink.flush().await.unwrap();
    }
    let counted: Vec<(String, u64, u64)> = sink
        .destination_stats()
        .into_iter()
        .map(|(topic, stats)| {
            let (published, rejected) = (stats.records_published, stats.records_rejected);
            (topic.to_string(), published, rejected)
        })
        .collect();
    assert_eq!(counted, [(full("one"), 3, 0), (full("two"), 1, 1)]);
    assert_eq!(world.sink().destination_stats().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_a_topic_and_a_resolver_the_last_call_counts() {
    let world = World::new(&["fixed", "resolved"]);
    let fixed = || full("fixed").parse().unwrap();
    let resolve = |record: &Record| TopicName::parse_in("demo", &record.to);
    for (builder, topic) in [
        (world.builder().topic(fixed()), "fixed"),
        (world.builder().topic(fixed()).resolve(resolve), "resolved"),
    ] {
        let mut sink = builder.build().unwrap();
        sink.feed(record("resolved", topic)).await.unwrap();
        sink.close().await.unwrap();
        assert_eq!(world.stored(topic), [topic]);
    }
}
