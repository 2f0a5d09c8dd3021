//! The numbers through the `metrics` facade.

use std::collections::BTreeMap;

use cloudtasks_sink::{CloudTasksSink, Endpoint, HttpTask};
use connector_core::LogAndDrop;
use futures::SinkExt;
use gcp_emulator::cloudtasks::proto::queue::State;
use gcp_emulator::{Code, Emulator, Fault, Method, Rule};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

const QUEUE: &str = "projects/demo/locations/us-central1/queues/q1";

type Labels = Vec<(String, String)>;

/// Name, labels and value of everything that the sink published.
fn ours(snapshotter: &Snapshotter) -> Vec<(String, Labels, String)> {
    let metrics = snapshotter.snapshot().into_vec().into_iter();
    metrics
        .filter_map(|(key, _, _, value)| {
            let key = key.key();
            let name = key.name().strip_prefix("cloudtasks_sink_")?.to_owned();
            let labels = key
                .labels()
                .map(|label| (label.key().to_owned(), label.value().to_owned()))
                .collect();
            let number = match value {
                DebugValue::Counter(number) => number.to_string(),
                DebugValue::Gauge(number) => number.to_string(),
                DebugValue::Histogram(_) => panic!("no histogram is ours"),
            };
            Some((name, labels, number))
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn failures_and_queues_have_labels_of_their_own() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let emulator = Emulator::builder().queue(QUEUE).start();
    emulator
        .change_queue(QUEUE, |queue| queue.state = State::Paused.into())
        .unwrap();
    let busy = Fault::answer(Code::ResourceExhausted, "busy");
    let gone = Fault::answer(Code::Unavailable, "gone");
    emulator
        .faults()
        .add(Rule::on(Method::CreateTask).times(2).then(busy));
    emulator
        .faults()
        .add(Rule::on(Method::CreateTask).once().then(gone));
    let mut sink = CloudTasksSink::builder(|id: &u32| match id {
        1 => Ok(Some(HttpTask::post("https://h/")?.segment(".."))),
        _ => Ok(Some(HttpTask::post("https://h/")?)),
    })
    .queue(QUEUE.parse().unwrap())
    .task_id(|id: &u32| id.to_string())
    .endpoint(Endpoint::in_memory(emulator.dialer()))
    .destination_stats(1)
    .on_rejected(LogAndDrop)
    .build()
    .unwrap();
    for id in [0, 1, 2, 2] {
        sink.send(id).await.unwrap();
    }
    let numbers = sink.destination_stats();
    let numbers = numbers[&QUEUE.parse().unwrap()];
    assert_eq!(
        (numbers.created, numbers.duplicates, numbers.rejected),
        (2, 1, 1)
    );
    let failures = sink.failures();
    assert_eq!(failures[&cloudtasks_sink::Code::ResourceExhausted], 2);
    assert_eq!(failures[&cloudtasks_sink::Code::Unavailable], 1);
    assert_eq!(failures.len(), 2, "a duplicate is no failure");
    sink.close().await.unwrap();

    let labelled: Vec<(String, String, String)> = ours(&snapshotter)
        .into_iter()
        .filter_map(|(name, labels, number)| {
            let (_, label) = labels.into_iter().find(|(key, _)| key != "instance")?;
            Some((name, label, number))
        })
        .collect();
    let mut labelled: Vec<(&str, &str, &str)> = labelled
        .iter()
        .map(|(name, label, number)| (name.as_str(), label.as_str(), number.as_str()))
        .collect();
    labelled.sort_unstable();
    let expected = [
        ("destination_created", QUEUE, "2"),
        ("destination_duplicates", QUEUE, "1"),
        ("destination_rejected", QUEUE, "1"),
        ("failures", "RESOURCE_EXHAUSTED", "2"),
        ("failures", "UNAVAILABLE", "1"),
        ("queue_stopped", QUEUE, "1"),
    ];
    assert_eq!(labelled, expected);
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_a_sink_that_is_built_again_go_on_where_the_last_one_was() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let emulator = Emulator::builder().queue(QUEUE).start();
    for run in 0..2 {
        let busy = Fault::answer(Code::ResourceExhausted, "busy");
        emulator
            .faults()
            .add(Rule::on(Method::CreateTask).once().then(busy));
        let mut sink = CloudTasksSink::builder(|id: &u32| match id {
            1 => Ok(Some(HttpTask::post("https://h/")?.segment(".."))),
            _ => Ok(Some(HttpTask::post("https://h/")?)),
        })
        .queue(QUEUE.parse().unwrap())
        .task_id(move |id: &u32| format!("{run}-{id}"))
        .endpoint(Endpoint::in_memory(emulator.dialer()))
        .destination_stats(1)
        .on_rejected(LogAndDrop)
        .build()
        .unwrap();
        for id in [0, 1, 2, 2] {
            sink.send(id).await.unwrap();
        }
        sink.close().await.unwrap();
        assert_eq!(sink.stats().created, 2, "its own numbers are");
    }
    let published = ours(&snapshotter);
    for (name, expected) in [
        ("created", "4"),
        ("rejected", "2"),
        ("destination_created", "4"),
        ("destination_duplicates", "2"),
        ("destination_rejected", "2"),
        ("failures", "2"),
    ] {
        let found = published.iter().find(|(of, _, _)| of == name);
        let (_, _, number) = found.unwrap();
        assert_eq!(number, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_queues_that_nobody_asked_for() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let emulator = Emulator::builder().queue(QUEUE).start();
    let mut sink = CloudTasksSink::builder(|_: &u32| Ok(Some(HttpTask::post("https://h/")?)))
        .queue(QUEUE.parse().unwrap())
        .endpoint(Endpoint::in_memory(emulator.dialer()))
        .queue_check(false)
        .build()
        .unwrap();
    sink.send(1).await.unwrap();
    assert!(sink.destination_stats().is_empty());
    sink.close().await.unwrap();
    let labels: Vec<usize> = ours(&snapshotter)
        .iter()
        .map(|(_, labels, _)| labels.len())
        .collect();
    assert!(labels.iter().all(|labels| *labels == 1), "{labels:?}");
}

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
    for (name, labels, number) in ours(&snapshotter) {
        if labels.len() > 1 {
            continue;
        }
        assert_eq!(labels, [("instance".to_owned(), "orders".to_owned())]);
        published.insert(name, number);
    }
    let stats = sink.stats();
    let expected = [
        ("accepted", stats.accepted),
        ("ambiguous_retries", stats.ambiguous_retries),
        ("attempts", stats.attempts),
        ("batches", 0),
        ("bytes", stats.bytes),
        ("consecutive_rejections", 0),
        ("created", stats.created),
        ("duplicates", stats.duplicates),
        ("held_back", 0),
        ("expired", 0),
        ("held", 0),
        ("kept", 0),
        ("refused", 0),
        ("staged", 0),
        ("in_flight", 0),
        ("operation_reads", 0),
        ("parked", 0),
        ("pending", 0),
        ("pending_bytes", 0),
        ("queue_looks", stats.queue_looks),
        ("queues_stopped", 0),
        ("rejected", stats.rejected),
        ("retries", stats.retries),
        ("skipped", stats.skipped),
        ("unexpected_duplicates", stats.unexpected_duplicates),
        ("waiting", 0),
        ("window_used_percent", 0),
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
