//! The numbers through the `metrics` facade.

use std::collections::BTreeMap;

use cloudtasks_sink::{CloudTasksSink, Endpoint, HttpTask};
use connector_core::LogAndDrop;
use futures::SinkExt;
use gcp_emulator::{Code, Emulator, Fault, Method, Rule};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

const QUEUE: &str = "projects/demo/locations/us-central1/queues/q1";

#[tokio::test(start_paused = true)]
async fn the_numbers_are_published_under_the_same_names_and_labelled_by_instance() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let emulator = Emulator::builder().queue(QUEUE).start();
    let unavailable = Fault::answer(Code::Unavailable, "not now");
    emulator
        .faults()
        .add(Rule::on(Method::CreateTask).once().then(unavailable));
    let mut sink = CloudTasksSink::builder(|id: &u32| match id {
        0 => Ok(None),
        1 => Ok(Some(HttpTask::post("https://h/")?.segment(".."))),
        _ => Ok(Some(HttpTask::post("https://h/")?)),
    })
    .queue(QUEUE.parse().unwrap())
    .endpoint(Endpoint::in_memory(emulator.dialer()))
    .instance("orders")
    .on_rejected(LogAndDrop)
    .build()
    .unwrap();
    for id in 0..5 {
        sink.feed(id).await.unwrap();
    }
    sink.close().await.unwrap();

    let mut published = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        let Some(name) = key.name().strip_prefix("cloudtasks_sink_") else {
            continue;
        };
        let labels: Vec<_> = key
            .labels()
            .map(|label| (label.key(), label.value()))
            .collect();
        assert_eq!(labels, [("instance", "orders")], "{name}");
        let number = match value {
            DebugValue::Counter(number) => number.to_string(),
            DebugValue::Gauge(number) => number.to_string(),
            DebugValue::Histogram(_) => panic!("no histogram is ours"),
        };
        published.insert(name.to_owned(), number);
    }
    let stats = sink.stats();
    let expected = [
        ("accepted", stats.accepted),
        ("ambiguous_retries", stats.ambiguous_retries),
        ("attempts", stats.attempts),
        ("batches", 0),
        ("bytes", stats.bytes),
        ("created", stats.created),
        ("duplicates", stats.duplicates),
        ("in_flight", 0),
        ("operation_reads", 0),
        ("parked", 0),
        ("pending", 0),
        ("pending_bytes", 0),
        ("rejected", stats.rejected),
        ("retries", stats.retries),
        ("skipped", stats.skipped),
        ("unexpected_duplicates", stats.unexpected_duplicates),
        ("waiting", 0),
        ("with_handler", 0),
    ];
    let expected: BTreeMap<String, String> = expected
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .collect();
    assert_eq!(published, expected);
    assert_eq!(
        (stats.created, stats.skipped, stats.rejected, stats.retries),
        (3, 1, 1, 1)
    );
}
