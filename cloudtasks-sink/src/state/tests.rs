use std::time::{Duration, SystemTime};

use connector_core::SavedState;
use gcp_wire::QueueName;
use proptest::prelude::*;

use super::*;
use crate::HttpTask;
use crate::naming::Named;

const V1: &str = include_str!("../../tests/data/state-v1.json");
const V2_FLUSH: &str = include_str!("../../tests/data/state-v2-flush.json");
const V2_STAGED: &str = include_str!("../../tests/data/state-v2-staged.json");

fn queue(id: &str) -> QueueName {
    format!("projects/p/locations/l/queues/{id}")
        .parse()
        .unwrap()
}

fn task(queue_id: &str, id: &str, named: Named, released: bool) -> StagedTask {
    let name = queue(queue_id).task(id).unwrap();
    let task = HttpTask::post("https://h/").unwrap().body("x");
    let request = crate::Task::from(task).into_request(&queue(queue_id), name);
    StagedTask {
        queue: queue(queue_id),
        task: request.task(),
        named,
        since: SystemTime::UNIX_EPOCH + Duration::from_millis(1_796_000_000_123),
        released,
    }
}

/// Of everything one.
fn staged() -> SinkState {
    let tasks = vec![
        task("a", "0123456789abcdef0123456789abcdef", Named::Minted, true),
        task("b", "k", Named::ByKey, false),
        task(
            "a",
            "fedcba9876543210fedcba9876543210",
            Named::Minted,
            false,
        ),
    ];
    let kept = vec![
        KeptTask {
            task: task("a", "bad", Named::Minted, true),
            why: KeptReason::Refused,
            cause: Some("no".to_owned()),
        },
        KeptTask {
            task: task("c", "late", Named::ByKey, true),
            why: KeptReason::Expired,
            cause: None,
        },
    ];
    SinkState::staged("orders", tasks, kept)
}

#[test]
fn a_state_of_any_version_decodes_for_ever() {
    for golden in [V1, V2_FLUSH] {
        let state: SinkState = serde_json::from_str(golden).unwrap();
        assert_eq!(state, SinkState::flushed("orders"));
    }
    let state: SinkState = serde_json::from_str(V2_STAGED).unwrap();
    assert_eq!(state, staged());
}

#[test]
fn version_2_is_written_as_it_was_released() {
    for (state, golden) in [
        (SinkState::flushed("orders"), V2_FLUSH),
        (staged(), V2_STAGED),
    ] {
        let written = serde_json::to_value(state).unwrap();
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        assert_eq!(written, golden);
    }
}

#[test]
fn a_state_survives_a_compact_format_too() {
    for state in [SinkState::flushed("orders"), staged()] {
        let bytes = postcard::to_stdvec(&state).unwrap();
        assert_eq!(postcard::from_bytes::<SinkState>(&bytes).unwrap(), state);
    }
}

#[test]
fn an_exported_task_carries_its_name_and_its_bytes_and_a_printed_one_does_not() {
    let state = staged();
    let exported = serde_json::to_value(&state.kept()[0]).unwrap();
    let kept = &state.kept()[0];
    assert_eq!(exported["name"], kept.name());
    assert_eq!(exported["why"], "Refused");
    assert_eq!(exported["cause"], "no");
    let bytes: Vec<u8> = serde_json::from_value(exported["task"].clone()).unwrap();
    assert_eq!(bytes, *kept.task());
    assert!(!format!("{state:?} {:?}", state.tasks()).contains("https"));
}

#[test]
fn a_state_that_is_not_ours_is_refused_and_named() {
    let body = Bytes::from_static(b"\x08\x01");
    let newer = SinkState::decode_body(3, "orders", body).unwrap_err();
    assert!(
        matches!(
            newer,
            StateError::UnknownVersion {
                found: 3,
                newest: 2,
                ..
            }
        ),
        "{newer}"
    );
    for (version, body, problem) in [
        (1, &b""[..], "the delivery mode is missing"),
        (1, b"\x08\x63", "the delivery mode is unknown"),
        (1, b"\x08\x02", "the delivery mode is unknown"),
        (1, b"\xff", "it is no protobuf message"),
        (2, b"", "the delivery mode is missing"),
        (2, b"\x08\x63", "the delivery mode is unknown"),
        (2, b"\xff", "it is no protobuf message"),
        (2, b"\x08\x02\x12\x01q", "a queue's name is malformed"),
        (2, b"\x08\x02\x1a\x00", "a task's queue is missing"),
    ] {
        match SinkState::decode_body(version, "orders", Bytes::from_static(body)) {
            Err(StateError::Damaged { problem: found, .. }) => assert_eq!(found, problem),
            other => panic!("{other:?}"),
        }
    }
    let mut foreign = task("a", "x", Named::Minted, false);
    foreign.queue = queue("b");
    let foreign = SinkState::staged("orders", vec![foreign], Vec::new());
    match SinkState::decode_body(2, "orders", foreign.encode_body()) {
        Err(StateError::Damaged { problem, .. }) => {
            assert_eq!(problem, "a task's name is not of its queue");
        }
        other => panic!("{other:?}"),
    }
    let other = V1.replace(CONNECTOR, "pubsub-sink");
    let other: SavedState = serde_json::from_str(&other).unwrap();
    let error = other.open::<SinkState>().unwrap_err();
    assert!(error.to_string().contains("pubsub-sink"), "{error}");
    assert!(error.to_string().contains(CONNECTOR), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(
        version in 0u32..4,
        body in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let decoded = SinkState::decode_body(version, "x", body.into());
        if !(1..=2).contains(&version) {
            prop_assert!(decoded.is_err());
        }
    }

    #[test]
    fn a_damaged_state_is_refused_or_is_another_whole_one(at: usize, with: u8) {
        let mut body = staged().encode_body().to_vec();
        let at = at % body.len();
        body[at] ^= with;
        if let Ok(state) = SinkState::decode_body(2, "x", body.into()) {
            let again = SinkState::decode_body(2, "x", state.encode_body()).unwrap();
            prop_assert_eq!(again, state);
        }
    }
}
