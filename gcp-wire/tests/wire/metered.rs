//! Counting RPCs through the `metrics` facade.
#![cfg(feature = "metrics")]

use gcp_wire::proto::pubsub::StreamingPullRequest;
use gcp_wire::{Connection, ConnectionOptions, Credentials};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use crate::server::{handler, in_memory, publish, published, refuse, unary};

#[test]
fn every_rpc_is_counted_by_method_and_code_with_its_latency() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    metrics::with_local_recorder(&recorder, || {
        runtime.unwrap().block_on(async {
            let (endpoint, _) = in_memory(handler(|_| async { published() }));
            let connection = unary(endpoint);
            publish(&connection).await.unwrap();
            publish(&connection).await.unwrap();
            let (endpoint, _) = in_memory(handler(|_| async { refuse(5, "") }));
            publish(&unary(endpoint.clone())).await.unwrap_err();
            let credentials = Credentials::anonymous();
            let options = ConnectionOptions::default();
            let pull = Connection::pull(endpoint, credentials, 1, options).unwrap();
            let first = StreamingPullRequest::default();
            pull.open_pull(first)
                .await
                .unwrap()
                .next()
                .await
                .unwrap_err();
            let refusing = gcp_wire::Endpoint::in_memory(|| Err(std::io::Error::other("no")));
            publish(&unary(refusing)).await.unwrap_err();
        });
    });
    let mut found: Vec<_> = snapshots
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, _, value)| {
            let key = key.key();
            let labels: Vec<_> = key.labels().map(|label| label.value().to_owned()).collect();
            let value = match value {
                DebugValue::Counter(count) => usize::try_from(count).unwrap(),
                DebugValue::Histogram(samples) => samples.len(),
                DebugValue::Gauge(_) => panic!("no gauges here"),
            };
            (key.name().to_owned(), labels.join(" "), value)
        })
        .collect();
    found.sort();
    let row = |name: &str, labels: &str, value| (name.to_owned(), labels.to_owned(), value);
    let mut expected = vec![
        row("gcp_wire_connections_total", "failed", 1),
        row("gcp_wire_connections_total", "made", 3),
    ];
    for (labels, value) in [
        ("Publish NOT_FOUND", 1),
        ("Publish OK", 2),
        ("Publish UNAVAILABLE", 1),
        ("StreamingPull NOT_FOUND", 1),
    ] {
        expected.push(row("gcp_wire_rpc_seconds", labels, value));
        expected.push(row("gcp_wire_rpcs_total", labels, value));
    }
    expected.sort();
    assert_eq!(found, expected);
}
