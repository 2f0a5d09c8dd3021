//! The toy engine.

use std::collections::BTreeMap;
use std::time::Duration;

use checkpoint_store::{CheckpointStore, FileStore};
use connector_core::{Epoch, SavedState};
use examples::custom_engine::{self, Engine};
use futures::future::pending;

use super::of;

#[tokio::test]
async fn an_engine_that_knows_no_connector_by_type_gives_each_order_to_both_outputs_once() {
    let figures = custom_engine::run().await.unwrap();
    let names = ["copied", "tasks", "not acknowledged"];
    assert_eq!(of(&figures, names), [600, 600, 0], "{figures}");
    let [before] = of(&figures, ["copied before the crash"]);
    assert!((100..=300).contains(&before), "in the middle: {figures}");
}

#[tokio::test]
async fn a_state_of_a_connector_that_left_the_job_is_not_forgotten_in_silence() {
    let state = tempfile::tempdir().unwrap();
    let left: SavedState = serde_json::from_value(serde_json::json!({
        "connector": "pubsub-sink", "instance": "default", "version": 2, "body": [],
    }))
    .unwrap();
    let states = postcard::to_stdvec(&BTreeMap::from([("copies", left)])).unwrap();
    let mut store = FileStore::open(state.path()).await.unwrap();
    store.save(Epoch::new(1), states.into()).await.unwrap();
    store.close().await;

    let engine = Engine::open(state.path().to_owned(), Duration::from_secs(1))
        .await
        .unwrap();
    let error = engine.run(pending()).await.unwrap_err();
    assert!(error.to_string().contains("copies"), "{error}");
}
