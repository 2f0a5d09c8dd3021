use connector_core::SavedState;
use proptest::prelude::*;

use super::*;

const GOLDEN: &str = include_str!("../../tests/data/state-v1.json");

#[test]
fn a_state_of_version_1_decodes_for_ever() {
    let state: SinkState = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(state, SinkState::flushed("orders"));
}

#[test]
fn version_1_is_written_as_it_was_released() {
    let written = serde_json::to_value(SinkState::flushed("orders")).unwrap();
    let golden: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(written, golden);
}

#[test]
fn a_state_survives_a_compact_format_too() {
    let state = SinkState::flushed("orders");
    let bytes = postcard::to_stdvec(&state).unwrap();
    assert_eq!(postcard::from_bytes::<SinkState>(&bytes).unwrap(), state);
}

#[test]
fn a_state_that_is_not_ours_is_refused_and_named() {
    let body = Bytes::from_static(b"\x08\x01");
    let newer = SinkState::decode_body(2, "orders", body).unwrap_err();
    assert!(
        matches!(
            newer,
            StateError::UnknownVersion {
                found: 2,
                newest: 1,
                ..
            }
        ),
        "{newer}"
    );
    for (body, problem) in [
        (&b""[..], "the delivery mode is missing"),
        (b"\x08\x63", "the delivery mode is unknown"),
        (b"\xff", "it is no protobuf message"),
    ] {
        match SinkState::decode_body(1, "orders", Bytes::from_static(body)) {
            Err(StateError::Damaged { problem: found, .. }) => assert_eq!(found, problem),
            other => panic!("{other:?}"),
        }
    }
    let other = GOLDEN.replace(CONNECTOR, "pubsub-sink");
    let other: SavedState = serde_json::from_str(&other).unwrap();
    let error = other.open::<SinkState>().unwrap_err();
    assert!(error.to_string().contains("pubsub-sink"), "{error}");
    assert!(error.to_string().contains(CONNECTOR), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(
        version in any::<u32>(),
        body in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let decoded = SinkState::decode_body(version, "x", body.into());
        if version != 1 {
            prop_assert!(decoded.is_err());
        }
    }
}
