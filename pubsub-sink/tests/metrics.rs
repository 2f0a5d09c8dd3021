//! The numbers through the `metrics` facade.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, time::Duration};

use connector_core::LogAndDrop;
use futures::SinkExt;
use gcp_emulator::{Body, Call, Code, Emulator, Fault, Method, Rule};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use pubsub_sink::{
    Endpoint, PublishMessage, PubsubDeadLetterQueue, PubsubSink, SinkBuilder, Stats,
};

const EVENTS: &str = "projects/demo/topics/events";
const REJECTED: &str = "projects/demo/topics/rejected";

/// Name, the labels' values, and value of everything that the crate published.
fn ours(snapshotter: &Snapshotter) -> Vec<(String, Vec<String>, f64)> {
    let metrics = snapshotter.snapshot().into_vec().into_iter();
    metrics
        .filter_map(|(key, _, _, value)| {
            let key = key.key();
            let name = key.name().strip_prefix("pubsub_sink_")?.to_owned();
            let labels = key.labels().map(|label| label.value().to_owned());
            let number = match value {
                DebugValue::Counter(number) => f64::from(u32::try_from(number).unwrap()),
                DebugValue::Gauge(number) => number.0,
                DebugValue::Histogram(_) => panic!("no histogram is ours"),
            };
            Some((name, labels.collect(), number))
        })
        .collect()
}

fn world() -> Emulator {
    let emulator = Emulator::builder().start();
    for topic in [EVENTS, REJECTED] {
        emulator.create_topic(topic).unwrap();
    }
    emulator
}

/// A builder of sinks whose encoder has nothing for zero.
fn builder(emulator: &Emulator) -> SinkBuilder<u32> {
    PubsubSink::builder(|n: &u32| match n {
        0 => Err("an order without a total".into()),
        _ => Ok(Some(PublishMessage::json(n)?)),
    })
    .topic(EVENTS.parse().unwrap())
    .endpoint(Endpoint::in_memory(emulator.dialer()))
    .instance("invoices")
}

#[tokio::test(start_paused = true)]
async fn every_number_is_published_under_its_name_with_the_instance() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let emulator = world();
    let mut sink = builder(&emulator).build().unwrap();
    for n in 1..=5 {
        sink.feed(n).await.unwrap();
    }
    sink.close().await.unwrap();

    let published: BTreeMap<String, f64> = ours(&snapshotter)
        .into_iter()
        .map(|(name, labels, number)| {
            assert_eq!(labels, ["invoices"], "{name}");
            (name, number)
        })
        .collect();
    let mut expected = Stats::NAMES.to_vec();
    expected.sort_unstable();
    assert_eq!(published.keys().collect::<Vec<_>>(), expected);
    let moved: Vec<(&str, f64)> = published
        .iter()
        .filter(|(name, number)| **number > 0.0 && !name.ends_with("bytes_accepted"))
        .map(|(name, number)| (name.as_str(), *number))
        .collect();
    let requests = f64::from(u32::try_from(emulator.observe().count(Method::Publish)).unwrap());
    let expected = [
        ("records_accepted", 5.0),
        ("records_published", 5.0),
        ("requests_sent", requests),
    ];
    assert_eq!(moved, expected, "no gauge of a closed sink is left");
}

#[tokio::test(start_paused = true)]
async fn failures_are_labelled_with_their_code_and_topics_with_their_name() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let emulator = world();
    for (code, times) in [(Code::Unavailable, 1), (Code::ResourceExhausted, 2)] {
        let fault = Fault::answer(code, "not now");
        emulator
            .faults()
            .add(Rule::on(Method::Publish).times(times).then(fault));
    }
    let mut sink = builder(&emulator).destination_stats(1).build().unwrap();
    sink.feed(1).await.unwrap();
    sink.close().await.unwrap();
    let failures = sink.failures();
    assert_eq!(failures[&pubsub_sink::Code::Unavailable], 1);
    assert_eq!(failures[&pubsub_sink::Code::ResourceExhausted], 2);
    assert_eq!(failures.len(), 2);

    let mut labelled: Vec<(String, String, f64)> = ours(&snapshotter)
        .into_iter()
        .filter(|(_, labels, _)| labels.len() > 1)
        .map(|(name, mut labels, number)| {
            assert_eq!(labels.remove(0), "invoices");
            (name, labels.remove(0), number)
        })
        .collect();
    labelled.sort_unstable_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    let expected = [
        ("destination_records_published", EVENTS, 1.0),
        ("destination_records_rejected", EVENTS, 0.0),
        ("failures", "RESOURCE_EXHAUSTED", 2.0),
        ("failures", "UNAVAILABLE", 1.0),
    ]
    .map(|(name, label, number)| (name.to_owned(), label.to_owned(), number));
    assert_eq!(labelled, expected);
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_a_sink_that_is_built_again_go_on_where_the_last_one_was() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let emulator = world();
    for _ in 0..2 {
        let fault = Fault::answer(Code::Unavailable, "not now");
        emulator
            .faults()
            .add(Rule::on(Method::Publish).once().then(fault));
        let sink = builder(&emulator).destination_stats(1);
        let mut sink = sink.on_rejected(LogAndDrop).build().unwrap();
        for n in [0, 1, 2] {
            sink.feed(n).await.unwrap();
        }
        sink.close().await.unwrap();
        assert_eq!(sink.stats().records_published, 2, "its own numbers are");
    }
    let published = ours(&snapshotter);
    for (name, expected) in [
        ("records_published", 4.0),
        ("records_rejected", 2.0),
        ("destination_records_published", 4.0),
        ("destination_records_rejected", 2.0),
        ("failures", 2.0),
    ] {
        let found = published.iter().find(|(of, _, _)| of == name);
        let (_, _, number) = found.unwrap();
        assert!((number - expected).abs() < f64::EPSILON, "{name}: {number}");
    }
}

fn is_dead_letter(call: &Call) -> bool {
    matches!(&call.body, Body::Publish(request) if request.topic == REJECTED)
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_queue_has_a_sinks_numbers_and_the_times_of_its_flushes() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let emulator = world();
    let slow = Fault::Delay(Duration::from_secs(2));
    let rule = Rule::on(Method::Publish).when(is_dead_letter).once();
    emulator.faults().add(rule.then(slow));
    let queue = PubsubDeadLetterQueue::builder(REJECTED.parse().unwrap())
        .endpoint(Endpoint::in_memory(emulator.dialer()))
        .instance("invoices")
        .build()
        .unwrap();
    let mut sink = builder(&emulator).on_rejected(queue).build().unwrap();
    for total in [0, 1, 0] {
        sink.feed(total).await.unwrap();
        sink.flush().await.unwrap();
    }

    let published = ours(&snapshotter);
    let number = |name: &str, instance: &str| {
        let found = published
            .iter()
            .find(|(of, labels, _)| of == name && *labels == [instance]);
        found.unwrap().2
    };
    let letters = "invoices dead letters";
    assert!((number("records_published", letters) - 2.0).abs() < f64::EPSILON);
    assert!(number("in_flight_records", letters).abs() < f64::EPSILON);
    assert!((number("records_rejected", "invoices") - 2.0).abs() < f64::EPSILON);
    let last = number("dead_letter_flush_seconds", "invoices");
    let longest = number("dead_letter_longest_flush_seconds", "invoices");
    assert!((2.0..3.0).contains(&longest), "{longest}");
    assert!(
        last < 1.0,
        "the last flush had nothing to wait long for: {last}"
    );
}
