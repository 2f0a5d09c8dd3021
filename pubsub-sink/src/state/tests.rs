use bytes::{Bytes, BytesMut};
use connector_core::{SavedState, ledger::Ledger};
use proptest::prelude::*;

use super::*;
use crate::{PublishMessage, message};

const GOLDEN_V1: &[u8] = include_bytes!("../../tests/data/state-v1.bin");
const GOLDEN_V2_FLUSHED: &[u8] = include_bytes!("../../tests/data/state-v2-flushed.bin");
const GOLDEN_V2_STAGED: &[u8] = include_bytes!("../../tests/data/state-v2-staged.bin");

fn identity(incarnation: u128, sequence: u64) -> Identity {
    Identity {
        incarnation,
        sequence,
    }
}

fn staged(incarnation: u128, sequence: u64, topic: &str, message: &PublishMessage) -> Arc<Staged> {
    let mut frame = BytesMut::new();
    message::encode(message, &mut frame);
    let key = message.key().map(Arc::from);
    let topic = topic.parse().unwrap();
    let identity = identity(incarnation, sequence);
    Arc::new(Staged::new(identity, topic, key, frame.freeze()))
}

const INCARNATION: u128 = 0x0123_4567_89AB_CDEF_0011_2233_4455_6677;
const ORDERS: &str = "projects/demo/topics/orders";
const INVOICES: &str = "projects/demo/topics/invoices";

/// A state with everything that one can hold.
fn full() -> SinkState {
    let message = |text: &str| PublishMessage::new(text.to_owned());
    let named = Named {
        read: vec![
            staged(
                INCARNATION,
                7,
                ORDERS,
                &message("seven").attribute("a", "b"),
            ),
            staged(INCARNATION, 9, ORDERS, &message("nine").ordering_key("k")),
            staged(1, 0, INVOICES, &message("of another incarnation")),
        ],
        cut: View::default(),
        quarantined: vec![Arc::new(Quarantined {
            identity: identity(INCARNATION, 8),
            topic: ORDERS.parse().unwrap(),
            message: message::encode_alone(&message("eight")),
            reason: "does not match the schema".to_owned(),
        })],
    };
    SinkState::staged("0", named)
}

#[test]
fn states_are_equal_when_they_are_saved_alike() {
    let flushed = SinkState::flushed("a");
    assert_eq!(flushed, SinkState::flushed("a"));
    assert_ne!(flushed, SinkState::flushed("b"));
    assert_ne!(flushed, SinkState::staged("a", Named::default()));
    assert_eq!((flushed.messages(), flushed.quarantined()), (0, 0));
    let full = full();
    assert_eq!((full.messages(), full.quarantined()), (3, 1));
}

fn golden(bytes: &[u8], state: &SinkState) {
    let decoded: SavedState = postcard::from_bytes(bytes).unwrap();
    assert_eq!(decoded.open::<SinkState>().unwrap(), *state);
}

#[test]
fn the_golden_file_of_version_1_decodes_for_ever() {
    golden(GOLDEN_V1, &SinkState::flushed("0"));
}

#[test]
fn the_golden_files_of_version_2_decode_and_are_what_is_written() {
    golden(GOLDEN_V2_FLUSHED, &SinkState::flushed("0"));
    golden(GOLDEN_V2_STAGED, &full());
    let written = postcard::to_allocvec(&SinkState::flushed("0")).unwrap();
    assert_eq!(written, GOLDEN_V2_FLUSHED);
    assert_eq!(postcard::to_allocvec(&full()).unwrap(), GOLDEN_V2_STAGED);
}

#[test]
fn a_restored_message_has_its_identity_key_and_bytes() {
    let state: SinkState = postcard::from_bytes(GOLDEN_V2_STAGED).unwrap();
    assert_eq!((state.messages(), state.quarantined()), (3, 1));
    for (read, written) in state.messages_named().zip(full().messages_named()) {
        assert_eq!(read.identity, written.identity);
        assert_eq!(read.key, written.key);
        assert_eq!(read.topic, written.topic);
        assert_eq!(read.frame(), written.frame());
    }
    assert_eq!(state.kept_aside(), full().kept_aside());
}

#[test]
fn a_state_names_what_the_ledger_holds_and_not_what_has_its_verdict() {
    let mut ledger = Ledger::new();
    let messages: Vec<Arc<Staged>> = (0..3)
        .map(|n| staged(1, n, ORDERS, &PublishMessage::new("x")))
        .collect();
    for message in &messages {
        ledger.add(Entry::Staged(Arc::clone(message)));
    }
    ledger.add(Entry::Passing);
    ledger.seal(connector_core::Epoch::new(1)).unwrap();
    let named = Named {
        cut: ledger.view(),
        ..Named::default()
    };
    let state = SinkState::staged("0", named);
    assert_eq!(state.messages(), 3);
    // Its verdict came after the cut.
    messages[1].let_go();
    let bytes = postcard::to_allocvec(&state).unwrap();
    let read: SinkState = postcard::from_bytes(&bytes).unwrap();
    let sequences: Vec<u64> = read
        .messages_named()
        .map(|message| message.identity.sequence)
        .collect();
    assert_eq!(sequences, [0, 2]);
    assert_eq!(read, state);
}

#[test]
fn a_message_kept_aside_is_not_named_as_one_to_publish() {
    let mut state = full();
    let twin = Arc::clone(&state.named.quarantined[0]);
    let message = staged(INCARNATION, 8, ORDERS, &PublishMessage::new("eight"));
    assert_eq!(twin.identity, message.identity);
    state.named.read.push(message);
    assert_eq!(state, full());
    assert_eq!(state.messages(), 3);
}

#[test]
fn a_body_with_unknown_fields_is_damaged_and_not_trimmed() {
    let mut body = SinkState::flushed("0").encode_body().to_vec();
    body.extend_from_slice(&[0x7A, 1, b'x']);
    for version in [1, 2] {
        assert!(matches!(
            SinkState::decode_body(version, "0", body.clone().into()),
            Err(StateError::Damaged { .. })
        ));
    }
}

#[test]
fn an_unknown_version_is_an_error_that_names_both() {
    let error = SinkState::decode_body(3, "0", Bytes::new()).unwrap_err();
    assert_eq!(
        error,
        StateError::UnknownVersion {
            connector: "pubsub-sink",
            found: 3,
            newest: 2
        }
    );
}

#[test]
fn secrets_stay_out_of_the_log() {
    let text = format!("{:?} {:?}", full(), full().kept_aside());
    assert!(!text.contains("seven") && !text.contains("eight"), "{text}");
}

proptest! {
    #[test]
    fn bytes_from_outside_never_panic_and_decode_only_to_what_writes_them(
        version in 0u32..4,
        body in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let body = Bytes::from(body);
        if let Ok(state) = SinkState::decode_body(version, "0", body.clone()) {
            prop_assert!(version == 1 || state.encode_body() == body);
        }
    }

    #[test]
    fn a_damaged_byte_never_panics(at in any::<usize>(), with in any::<u8>()) {
        let mut body = full().encode_body().to_vec();
        let at = at % body.len();
        body[at] = with;
        if let Ok(state) = SinkState::decode_body(2, "0", body.clone().into()) {
            prop_assert_eq!(state.encode_body(), Bytes::from(body));
        }
    }
}
