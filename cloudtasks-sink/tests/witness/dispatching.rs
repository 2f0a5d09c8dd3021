//! Tasks of the sink, dispatched for real.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudtasks_sink::{Batch, CloudTasksSink, HttpMethod, HttpTask, QueueName, SinkError};
use connector_core::{Checkpoint, Epoch, FailureHandler, Receipt, Rejected, Verdict};
use futures::SinkExt;

use crate::servers::{QUEUE, next, target, tasks, witness};

#[tokio::test]
async fn a_task_is_dispatched_with_its_method_headers_and_body() {
    let (address, mut calls) = target().await;
    let mut sink = tasks(witness().await).build().unwrap();
    let task = HttpTask::put(format!("http://{address}/orders"))
        .unwrap()
        .segment("a/17")
        .query("dry run", "no&yes")
        .header("X-Tenant", "acme")
        .json(&BTreeMap::from([("a", 1)]))
        .unwrap();
    sink.send(task).await.unwrap();
    let call = next(&mut calls).await;
    assert_eq!(call.method, "PUT");
    assert_eq!(call.target, "/orders/a%2F17?dry%20run=no%26yes");
    assert_eq!(call.headers["x-tenant"], "acme");
    assert_eq!(call.headers["content-type"], "application/json");
    assert_eq!(call.headers["x-cloudtasks-queuename"], "q1");
    assert_eq!(call.body, r#"{"a":1}"#);
    assert_eq!(sink.stats().created, 1);
}

#[tokio::test]
async fn every_method_is_dispatched() {
    let (address, mut calls) = target().await;
    let mut sink = tasks(witness().await).build().unwrap();
    let methods = [
        HttpMethod::Post,
        HttpMethod::Put,
        HttpMethod::Patch,
        HttpMethod::Get,
        HttpMethod::Head,
        HttpMethod::Delete,
        HttpMethod::Options,
    ];
    for method in methods {
        let mut task = HttpTask::new(method, format!("http://{address}/")).unwrap();
        if method.takes_body() {
            task = task.body("b");
        }
        sink.send(task).await.unwrap();
        let call = next(&mut calls).await;
        assert_eq!(call.method, method.to_string());
        assert_eq!(call.body.is_empty(), !method.takes_body(), "{method}");
    }
}

#[tokio::test]
async fn a_literal_authorization_header_is_dispatched() {
    let (address, mut calls) = target().await;
    let mut sink = tasks(witness().await).build().unwrap();
    let task = HttpTask::post(format!("http://{address}/")).unwrap();
    sink.send(task.header("Authorization", "Bearer x"))
        .await
        .unwrap();
    assert_eq!(next(&mut calls).await.headers["authorization"], "Bearer x");
}

#[tokio::test]
async fn a_name_that_is_taken_or_was_taken_recently_makes_no_second_task() {
    let (address, mut calls) = target().await;
    let endpoint = witness().await;
    let later = std::time::SystemTime::now() + Duration::from_secs(3_600);
    let url = format!("http://{address}/");
    let mut sink = CloudTasksSink::builder(move |key: &&'static str| {
        let task = HttpTask::post(url.as_str())?;
        Ok(Some(if *key == "scheduled" {
            task.schedule_at(later)
        } else {
            task
        }))
    })
    .queue(QUEUE.parse().unwrap())
    .task_id(|key: &&'static str| *key)
    .endpoint(endpoint)
    .build()
    .unwrap();
    for _ in 0..2 {
        sink.send("scheduled").await.unwrap();
    }
    let stats = sink.stats();
    assert_eq!((stats.created, stats.duplicates), (1, 1), "it exists");
    sink.send("at once").await.unwrap();
    next(&mut calls).await;
    sink.send("at once").await.unwrap();
    let stats = sink.stats();
    assert_eq!(
        (stats.created, stats.duplicates, stats.rejected),
        (2, 2, 0),
        "it was dispatched"
    );
}

#[tokio::test]
async fn a_missing_queue_ends_the_sink_and_is_named() {
    let nope: QueueName = "projects/demo/locations/us-central1/queues/nope"
        .parse()
        .unwrap();
    let mut sink = tasks(witness().await).queue(nope.clone()).build().unwrap();
    let error = sink
        .send(HttpTask::post("http://127.0.0.1:9/").unwrap())
        .await
        .unwrap_err();
    match &error {
        SinkError::QueueMissing {
            queue, attempts: 3, ..
        } => assert_eq!(*queue, nope),
        other => panic!("{other:?}"),
    }
    assert!(error.to_string().contains(nope.as_str()), "{error}");
}

/// Counts what it drops.
#[derive(Clone, Default)]
struct Counting(std::sync::Arc<std::sync::Mutex<Vec<Rejected>>>);

impl FailureHandler for Counting {
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict> {
        self.0.lock().unwrap().push(rejected);
        Receipt::ready(Verdict::Drop)
    }

    fn flush(&mut self) -> Receipt<()> {
        Receipt::ready(())
    }
}

/// The largest body and name that the service was seen to take are taken, and what is larger is
/// known to be too large on both sides of the wire.
#[tokio::test]
async fn the_size_that_is_refused_here_is_refused_there_and_no_smaller_one() {
    let dropped = Counting::default();
    let later = std::time::SystemTime::now() + Duration::from_secs(3_600);
    let mut sink = tasks(witness().await)
        .on_rejected(dropped.clone())
        .build()
        .unwrap();
    let task = |size| {
        HttpTask::post("http://127.0.0.1:9/")
            .unwrap()
            .body(vec![b'a'; size])
            .schedule_at(later)
    };
    for size in [99_000, 101_000, 1_040_000, 1_047_453] {
        sink.send(task(size)).await.unwrap();
    }
    assert_eq!((sink.stats().created, sink.stats().rejected), (4, 0));
    let attempts = sink.stats().attempts;
    sink.send(task(1_048_571)).await.unwrap();
    assert_eq!(
        sink.stats().attempts,
        attempts,
        "refused before it was sent"
    );
    sink.send(task(1_048_500)).await.unwrap();
    assert_eq!(
        sink.stats().attempts,
        attempts + 1,
        "only the service can say"
    );
    let reasons: Vec<String> = dropped
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|rejected| rejected.source.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("1048571"), "{reasons:?}");
    assert!(reasons[1].contains("Task size too large"), "{reasons:?}");
}

#[tokio::test]
async fn a_checkpoint_covers_a_thousand_dispatched_tasks() {
    let (address, mut calls) = target().await;
    let url = format!("http://{address}/");
    let mut sink = CloudTasksSink::builder(move |id: &u32| {
        Ok(Some(HttpTask::post(url.as_str())?.body(id.to_string())))
    })
    .queue(QUEUE.parse().unwrap())
    .minted_names()
    .endpoint(witness().await)
    .build()
    .unwrap();
    for id in 0..1_000u32 {
        sink.feed(id).await.unwrap();
    }
    sink.snapshot(Epoch::new(1)).await.unwrap();
    let committed = sink.commit(Epoch::new(1)).await.unwrap();
    assert_eq!((committed.settled, sink.stats().created), (1_000, 1_000));
    sink.close().await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 1_000 {
        let call = next(&mut calls).await;
        seen.insert(String::from_utf8(call.body.to_vec()).unwrap());
    }
}

/// The witness serves BatchCreateTasks as it was recorded: with a verdict for each task.
#[tokio::test]
async fn a_batch_gets_a_verdict_for_each_of_its_tasks() {
    let (address, mut calls) = target().await;
    let mut sink = tasks(witness().await)
        .task_id(|task: &HttpTask| task.url().to_owned())
        .batching(Batch::up_to(100))
        .build()
        .unwrap();
    let task = |id: u32| HttpTask::post(format!("http://{address}/{id}")).unwrap();
    for task in (0..20).map(task).chain([task(3), task(4)]) {
        sink.feed(task).await.unwrap();
    }
    sink.flush().await.unwrap();
    let stats = sink.stats();
    assert_eq!((stats.created, stats.duplicates), (20, 2), "{stats:?}");
    assert!(stats.batches < 10, "{stats:?}");
    let mut targets: Vec<String> = Vec::new();
    for _ in 0..20 {
        targets.push(next(&mut calls).await.target);
    }
    targets.sort();
    let mut expected: Vec<String> = (0..20).map(|id| format!("/{id}")).collect();
    expected.sort();
    assert_eq!(targets, expected);
}
