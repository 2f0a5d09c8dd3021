//! Saved states.

use bytes::Bytes;
use connector_core::{Epoch, Restored, StateError, Versioned};
use prost::encoding::{DecodeContext, decode_key, skip_field};

use crate::{Delivery, SinkState, builder::resumed, clock, machine::Machine, settings::Settings};

/// The tag of a message in a body of version 2.
const MESSAGE: u32 = 4;

/// Whatever bytes are given as a state, they are refused, or are a state that is written as it was
/// read, and that a sink can be restored from. Bytes that begin with `{` are a whole envelope in
/// JSON; of others the first is the version, and the rest the body.
pub fn sink_state(bytes: &[u8]) {
    states_by(bytes, SinkState::decode_body);
}

pub(super) fn states_by(
    bytes: &[u8],
    decode: impl Fn(u32, &str, Bytes) -> Result<SinkState, StateError>,
) {
    let state = match bytes {
        [b'{', ..] => match serde_json::from_slice(bytes) {
            Ok(state) => state,
            Err(_) => return,
        },
        [version, body @ ..] => {
            let body = Bytes::copy_from_slice(body);
            match decode(u32::from(*version), "0", body.clone()) {
                Ok(state) => {
                    let found = messages(body);
                    let named = state.messages() + state.quarantined();
                    // A message that is named twice counts once.
                    assert!(
                        named <= found && (named > 0) == (found > 0),
                        "{named} of {found}"
                    );
                    state
                }
                Err(_) => return,
            }
        }
        [] => return,
    };
    let written = state.encode_body();
    let again = SinkState::decode_body(SinkState::VERSION, state.instance(), written.clone());
    let again = again.expect("what was written is read");
    assert_eq!(again.encode_body(), written, "and means the same");
    assert!(format!("{state:?}").len() < 300 + state.instance().len() * 12);
    restore(state);
}

/// The messages in a body, as far as it is protobuf.
fn messages(mut body: Bytes) -> usize {
    let mut count = 0;
    while let Ok((tag, wire)) = decode_key(&mut body) {
        count += usize::from(tag == MESSAGE);
        if skip_field(wire, tag, &mut body, DecodeContext::default()).is_err() {
            break;
        }
    }
    count
}

fn restore(state: SinkState) {
    let instance = state.instance().to_owned();
    let (messages, quarantined) = (state.messages(), state.quarantined());
    for delivery in [Delivery::Flush, Delivery::Staged] {
        let restored = Restored::new(Epoch::new(7), state.clone());
        let Ok(resumed) = resumed(&instance, delivery, &[restored]) else {
            assert!(!delivery.is_staged(), "a staging sink takes every state");
            continue;
        };
        let settings = Settings {
            delivery,
            ordering: true,
            ..Settings::default()
        };
        let (mut machine, commit) = Machine::new(settings, resumed);
        machine.check_invariants();
        assert!(commit.is_some(), "what is restored is committed");
        assert!(machine.held().items <= messages);
        assert!(machine.quarantined().len() <= quarantined);
        let now = clock::now();
        // Each message leaves in one request at most, and there are a few things to tell.
        for _ in 0..messages + 8 {
            let effect = machine.poll_effect(now);
            machine.check_invariants();
            if effect.is_none() {
                break;
            }
        }
    }
}
