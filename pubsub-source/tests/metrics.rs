//! The figures through the `metrics` facade. One test: the recorder belongs to the process.

use std::{collections::BTreeMap, time::Duration};

use connector_core::{Checkpoint, Epoch};
use futures::StreamExt;
use gcp_emulator::{Emulator, pubsub::proto::PubsubMessage};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use pubsub_source::{Endpoint, PubsubSource};

const TOPIC: &str = "projects/demo-project/topics/t11";
const SUBSCRIPTION: &str = "projects/demo-project/subscriptions/s11";

#[tokio::test(start_paused = true)]
async fn every_figure_of_the_readme_is_published_under_its_name_with_the_subscription() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();

    let emulator = Emulator::builder().start();
    emulator.create_topic(TOPIC).unwrap();
    emulator
        .create_subscription(SUBSCRIPTION, TOPIC, |_| {})
        .unwrap();
    let message = PubsubMessage {
        data: "1".into(),
        ..PubsubMessage::default()
    };
    emulator.publish(TOPIC, vec![message; 7]).unwrap();
    let mut source = PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
        .endpoint(Endpoint::in_memory(emulator.dialer()))
        .build()
        .unwrap();
    for _ in 0..7 {
        source.next().await.unwrap().unwrap();
    }
    drop(source.snapshot(Epoch::new(1)).await.unwrap());
    assert_eq!(source.commit(Epoch::new(1)).await.unwrap().settled, 7);
    // They are published once a second, when the driver has something to do: a ping at the latest.
    tokio::time::sleep(Duration::from_secs(40)).await;

    let mut published = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let Some(name) = key.key().name().strip_prefix("pubsub_source_") else {
            continue;
        };
        let labels: Vec<(&str, &str)> = key
            .key()
            .labels()
            .map(|label| (label.key(), label.value()))
            .collect();
        assert_eq!(labels, [("subscription", SUBSCRIPTION)], "{name}");
        let (kind, value) = match value {
            DebugValue::Counter(value) => ("counter", value.to_string()),
            DebugValue::Gauge(value) => ("gauge", value.0.to_string()),
            DebugValue::Histogram(_) => panic!("no histogram is published"),
        };
        published.insert(name.to_owned(), (kind, value));
    }
    let readme = include_str!("../README.md");
    let rows = readme.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let name = cells.next()?.trim().strip_suffix('`')?;
        let kind = cells.next()?.trim();
        ["counter", "gauge"].contains(&kind).then_some((name, kind))
    });
    let rows: BTreeMap<&str, &str> = rows.collect();
    let kinds = published.iter();
    let kinds: BTreeMap<&str, &str> = kinds.map(|(name, (kind, _))| (&**name, *kind)).collect();
    assert_eq!(kinds, rows);
    let of = |name: &str| published[name].1.as_str();
    assert_eq!(
        [of("received"), of("handed_out"), of("acknowledged")],
        ["7"; 3]
    );
    assert_eq!([of("leased"), of("open_streams")], ["0", "1"]);
    source.close().await.unwrap();
}
