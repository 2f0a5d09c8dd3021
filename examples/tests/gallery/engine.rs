//! The toy engine.

use std::time::Duration;

use checkpoint_store::{CheckpointStore, FileStore};
use connector_core::{Epoch, SavedStates, StateError};
use examples::custom_engine::{self, COPIES, Engine};
use futures::future::pending;
use gcp_emulator::Emulator;
use gcp_wire::Endpoint;
use pubsub_sink::{Delivery, PublishMessage, PubsubSink};
use pubsub_source::Message;

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
    let left: SavedStates = serde_json::from_value(serde_json::json!([
        {"connector": "pubsub-sink", "instance": "copies", "version": 2, "body": []},
    ]))
    .unwrap();
    let mut store = FileStore::open(state.path()).await.unwrap();
    let states = postcard::to_stdvec(&left).unwrap();
    store.save(Epoch::new(1), states.into()).await.unwrap();
    store.close().await;

    let engine = Engine::open(state.path().to_owned(), Duration::from_secs(1))
        .await
        .unwrap();
    let error = engine.run(pending()).await.unwrap_err();
    assert!(error.to_string().contains("copies"), "{error}");
}

/// Neither has a name, so both have the same.
#[tokio::test]
async fn two_outputs_of_one_name_end_the_job_before_anything_is_saved() {
    let (emulator, state) = (Emulator::builder().start(), tempfile::tempdir().unwrap());
    let output = || {
        PubsubSink::builder(|order: &Message| Ok(Some(PublishMessage::new(order.data().clone()))))
            .topic(COPIES.parse().unwrap())
            .delivery(Delivery::Staged)
            .endpoint(Endpoint::in_memory(emulator.dialer()))
            .build()
            .unwrap()
    };
    let engine = Engine::open(state.path().to_owned(), Duration::from_secs(1))
        .await
        .unwrap();
    let engine = engine.output(output()).output(output());
    let error = engine.run(pending()).await.unwrap_err();
    let error = error.downcast::<StateError>().unwrap();
    assert!(
        matches!(&*error, StateError::SameName { connector, instance }
            if connector == "pubsub-sink" && instance == "0"),
        "{error}"
    );
    let store = FileStore::open(state.path()).await.unwrap();
    assert!(store.newest().await.unwrap().is_none());
}
