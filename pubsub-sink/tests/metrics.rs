//! The numbers through the `metrics` facade. One test: the recorder belongs to the process.

use std::collections::BTreeMap;

use futures::SinkExt;
use gcp_emulator::Emulator;
use metrics::Label;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use pubsub_sink::{Endpoint, PublishMessage, PubsubSink, Stats};

#[tokio::test(start_paused = true)]
async fn every_number_is_published_under_its_name_with_the_instance() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();

    let emulator = Emulator::builder().start();
    emulator
        .create_topic("projects/demo/topics/events")
        .unwrap();
    let mut sink = PubsubSink::builder(|n: &u32| Ok(Some(PublishMessage::json(n)?)))
        .topic("projects/demo/topics/events".parse().unwrap())
        .endpoint(Endpoint::in_memory(emulator.dialer()))
        .instance("invoices")
        .destination_stats(1)
        .build()
        .unwrap();
    for n in 0..5 {
        sink.feed(n).await.unwrap();
    }
    sink.flush().await.unwrap();
    sink.close().await.unwrap();

    let all = snapshotter.snapshot().into_vec();
    let of_the_topic: Vec<(&str, Vec<&str>, &DebugValue)> = all
        .iter()
        .map(|(key, _, _, value)| (key.key(), value))
        .filter(|(key, _)| key.name().starts_with("pubsub_sink_destination_"))
        .map(|(key, value)| (key.name(), key.labels().map(Label::value).collect(), value))
        .collect();
    let labels = ["invoices", "projects/demo/topics/events"];
    let (published, rejected) = (&DebugValue::Counter(5), &DebugValue::Counter(0));
    let expected = [
        (
            "pubsub_sink_destination_records_published",
            labels.to_vec(),
            published,
        ),
        (
            "pubsub_sink_destination_records_rejected",
            labels.to_vec(),
            rejected,
        ),
    ];
    assert_eq!(of_the_topic, expected);

    let published: BTreeMap<String, u64> = all
        .into_iter()
        .filter(|(key, ..)| !key.key().name().starts_with("pubsub_sink_destination_"))
        .filter(|(key, ..)| key.key().name().starts_with("pubsub_sink_"))
        .map(|(key, _, _, value)| {
            let labels: Vec<(&str, &str)> = key
                .key()
                .labels()
                .map(|label| (label.key(), label.value()))
                .collect();
            assert_eq!(labels, [("instance", "invoices")]);
            let value = match value {
                DebugValue::Counter(value) => value,
                DebugValue::Gauge(value) => value.0.to_bits(),
                DebugValue::Histogram(_) => panic!("no histogram is published"),
            };
            (key.key().name().to_owned(), value)
        })
        .collect();
    let mut expected: Vec<String> = Stats::NAMES
        .iter()
        .map(|name| format!("pubsub_sink_{name}"))
        .collect();
    expected.sort_unstable();
    assert_eq!(published.keys().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(published["pubsub_sink_records_published"], 5);
    for gauge in ["in_flight_records", "in_flight_bytes", "destinations"] {
        let value = f64::from_bits(published[&format!("pubsub_sink_{gauge}")]);
        assert!(
            value.abs() < f64::EPSILON,
            "{gauge} of a closed sink is {value}"
        );
    }
}
