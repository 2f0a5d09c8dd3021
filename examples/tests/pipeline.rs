//! What the pipeline's process says when it cannot work: one error, which tells what became of the
//! data, and nothing is acknowledged.

#![expect(
    clippy::unwrap_used,
    reason = "a test and what it is made of fail by panicking"
)]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, FileStore};
use connector_core::{Epoch, SavedState, StateError, Versioned};
use gcp_emulator::pubsub::proto::PubsubMessage;
use gcp_emulator::{Emulator, Method};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const SUBSCRIPTION: &str = "projects/orders-test/subscriptions/orders-pipeline";
const QUEUE: &str = "projects/orders-test/locations/us-central1/queues/partners-0";
const ORDERS: &str = "projects/orders-test/topics/orders";

/// Starting a process and one round trip take milliseconds; only a process that hangs takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// A server with the topics of the job, and with its subscription.
async fn server() -> Emulator {
    let server = Emulator::builder()
        .listen(([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    server.create_topic(ORDERS).unwrap();
    server
        .create_subscription(SUBSCRIPTION, ORDERS, |_defaults| {})
        .unwrap();
    server
}

/// The instructions of a pipeline that reads from `pubsub`, as its parent writes them.
fn instructions(pubsub: &str, state: &Path) -> serde_json::Value {
    json!({
        "pubsub": { "address": pubsub, "key_file": null },
        "tasks": { "address": pubsub, "key_file": null },
        "subscription": SUBSCRIPTION,
        "regions": { "asia": "projects/orders-test/topics/orders-asia" },
        "queues": [QUEUE],
        "routes": {},
        "partner_hosts": ["127.0.0.1"],
        "state": state,
        "checkpoint_interval": { "secs": 0, "nanos": 200_000_000 },
        "crash_after": null,
        "batch": false,
        "exactly_once": false,
    })
}

/// Runs a pipeline until it ends by itself, and returns the error it names as it goes.
async fn error_of(instructions: &serde_json::Value) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_orders-child"))
        .arg("pipeline")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // Kept open: its end would tell the pipeline to end in order.
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(format!("{instructions}\n").as_bytes())
        .await
        .unwrap();
    let output = tokio::time::timeout(LIMIT, child.wait_with_output())
        .await
        .expect("the pipeline ends by itself")
        .unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), 1, "{output}");
    let farewell: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(farewell["pipeline"], "failed", "{output}");
    farewell["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_missing_subscription_is_named() {
    let server = server().await;
    server.delete_subscription(SUBSCRIPTION).unwrap();
    let state = tempfile::tempdir().unwrap();
    let address = server.local_addr().unwrap().to_string();

    let error = error_of(&instructions(&address, state.path())).await;
    assert!(error.contains(SUBSCRIPTION), "{error}");
    assert!(error.contains("does not exist"), "{error}");
    assert!(
        error.contains("nothing uncommitted was acknowledged"),
        "{error}"
    );
}

#[tokio::test]
async fn a_message_that_is_no_order_is_named_and_stays_on_the_subscription() {
    let server = server().await;
    let message = PubsubMessage {
        data: Bytes::from_static(b"no order"),
        ..<_>::default()
    };
    let ids = server.publish(ORDERS, vec![message]).unwrap();
    let state = tempfile::tempdir().unwrap();
    let address = server.local_addr().unwrap().to_string();

    let error = error_of(&instructions(&address, state.path())).await;
    assert!(
        error.contains(&format!("message {} is no order", ids[0])),
        "{error}"
    );
    assert!(error.contains("it was not acknowledged"), "{error}");
    assert_eq!(server.observe().subscription(SUBSCRIPTION).backlog, 1);
}

/// An order of a customer with a route.
fn order(number: u32) -> PubsubMessage {
    let order = json!({
        "event_id": format!("event-{number}"),
        "order_id": format!("A-{number}"),
        "customer": "c",
        "region": "asia",
        "lines": [],
    });
    PubsubMessage {
        data: order.to_string().into(),
        ..<_>::default()
    }
}

#[tokio::test]
async fn tasks_are_created_one_by_one_or_many_in_one_call_as_asked_for() {
    for batch in [false, true] {
        let server = server().await;
        server
            .create_topic("projects/orders-test/topics/orders-asia")
            .unwrap();
        server.create_queue(QUEUE).unwrap();
        server
            .publish(ORDERS, (0..150).map(order).collect())
            .unwrap();
        let state = tempfile::tempdir().unwrap();
        let address = server.local_addr().unwrap().to_string();
        let mut instructions = instructions(&address, state.path());
        instructions["batch"] = json!(batch);
        instructions["routes"] =
            json!({ "c": { "endpoint": "http://127.0.0.1:9", "tenant": "t" } });

        let mut child = Command::new(env!("CARGO_BIN_EXE_orders-child"))
            .arg("pipeline")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(format!("{instructions}\n").as_bytes())
            .await
            .unwrap();
        let created = server
            .wait_until(|seen| seen.queue(QUEUE).tasks == 150, LIMIT)
            .await;
        assert!(created, "{:?}", server.observe().queue(QUEUE).tasks);
        let seen = server.observe();
        let (single, many) = (
            seen.count(Method::CreateTask),
            seen.count(Method::BatchCreateTasks),
        );
        if batch {
            assert!(single == 0 && (2..150).contains(&many), "{single}, {many}");
        } else {
            assert_eq!((single, many), (150, 0));
        }
        // The end of its input tells the pipeline to end.
        drop(stdin);
        let ended = tokio::time::timeout(LIMIT, child.wait()).await;
        assert!(ended.unwrap().unwrap().success());
    }
}

#[tokio::test]
async fn a_wrong_key_file_is_refused_without_a_word_of_its_contents() {
    let directory = tempfile::tempdir().unwrap();
    let key_file = directory.path().join("key.json");
    std::fs::write(
        &key_file,
        r#"{"type":"service_account","private_key":"hunter2"}"#,
    )
    .unwrap();
    let mut instructions = instructions("127.0.0.1:1", &directory.path().join("state"));
    instructions["pubsub"]["key_file"] = json!(key_file);

    let error = error_of(&instructions).await;
    assert!(!error.contains("hunter2"), "{error}");
    assert!(error.contains("credentials file is not valid"), "{error}");
    assert!(
        error.contains("nothing uncommitted was acknowledged"),
        "{error}"
    );
}

/// A state that some other connector wrote.
struct Stranger;

impl Versioned for Stranger {
    const CONNECTOR: &'static str = "kafka-source";
    const VERSION: u32 = 1;

    fn instance(&self) -> &str {
        "default"
    }

    fn encode_body(&self) -> Bytes {
        Bytes::from_static(b"offsets")
    }

    fn decode_body(_: u32, _: &str, _: Bytes) -> Result<Self, StateError> {
        Ok(Self)
    }
}

/// A state directory whose newest checkpoint, intact, holds `bytes`.
async fn saved(bytes: Vec<u8>) -> tempfile::TempDir {
    let state = tempfile::tempdir().unwrap();
    let mut store = FileStore::open(state.path()).await.unwrap();
    store.save(Epoch::new(41), bytes.into()).await.unwrap();
    store.close().await;
    state
}

#[tokio::test]
async fn the_state_of_another_connector_is_refused_with_both_names() {
    let server = server().await;
    let stranger = SavedState::of(&Stranger);
    let state = saved(postcard::to_stdvec(&(&stranger, &stranger, &stranger)).unwrap()).await;
    let address = server.local_addr().unwrap().to_string();

    let error = error_of(&instructions(&address, state.path())).await;
    assert!(error.contains("checkpoint 41"), "{error}");
    assert!(
        error.contains("kafka-source") && error.contains("pubsub-source"),
        "{error}"
    );
    assert!(
        error.contains("nothing was restored or acknowledged"),
        "{error}"
    );
    let store = FileStore::open(state.path()).await.unwrap();
    assert_eq!(store.newest().await.unwrap().unwrap().epoch, Epoch::new(41));
}

#[tokio::test]
async fn a_checkpoint_of_another_program_is_refused() {
    let server = server().await;
    let state = saved(b"another program's".to_vec()).await;
    let address = server.local_addr().unwrap().to_string();

    let error = error_of(&instructions(&address, state.path())).await;
    assert!(
        error.contains("checkpoint 41 is intact and is none of this job"),
        "{error}"
    );
    assert_eq!(server.observe().subscription(SUBSCRIPTION).delivered, 0);
}

#[tokio::test]
async fn a_second_pipeline_on_the_same_state_is_refused() {
    let server = server().await;
    let state = tempfile::tempdir().unwrap();
    let first = FileStore::open(state.path()).await.unwrap();
    let address = server.local_addr().unwrap().to_string();

    let error = error_of(&instructions(&address, state.path())).await;
    assert!(error.contains("is in use by"), "{error}");
    first.close().await;
}
