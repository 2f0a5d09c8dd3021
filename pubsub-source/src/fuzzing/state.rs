//! Saved states.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use connector_core::{Epoch, StateError, Versioned};
use prost::encoding::{DecodeContext, decode_key, skip_field};

use super::subscription;
use crate::{
    driver,
    machine::{Machine, Restoration},
    settings::Settings,
    state::SourceState,
};

/// The tag of what a body says about one subscription.
const SUBSCRIPTION: u32 = 1;

/// Whatever bytes are given as a state, they are refused, or are a state that is written as it was
/// read, and that a source can be restored from. Bytes that begin with `{` are a whole envelope in
/// JSON; of others the first is the version, and the rest the body.
pub fn source_state(bytes: &[u8]) {
    states_by(bytes, SourceState::decode_body);
}

pub(super) fn states_by(
    bytes: &[u8],
    decode: impl Fn(u32, &str, Bytes) -> Result<SourceState, StateError>,
) {
    let state: SourceState = match bytes {
        [b'{', ..] => match serde_json::from_slice(bytes) {
            Ok(state) => state,
            Err(_) => return,
        },
        [version, body @ ..] => {
            let body = Bytes::copy_from_slice(body);
            let Ok(state) = decode(u32::from(*version), "orders", body.clone()) else {
                return;
            };
            let named = subscriptions(state.encode_body());
            assert_eq!(subscriptions(body), named, "no subscription is lost");
            state
        }
        [] => return,
    };
    let written = state.encode_body();
    let again = SourceState::decode_body(SourceState::VERSION, state.instance(), written.clone());
    let again = again.expect("what was written is read");
    assert_eq!(again.encode_body(), written, "and means the same");
    assert_eq!(
        (again.named(), again.unfinished()),
        (state.named(), state.unfinished())
    );
    restore(&state);
}

/// The subscriptions in a body, as far as it is protobuf.
fn subscriptions(mut body: Bytes) -> usize {
    let mut count = 0;
    while let Ok((tag, wire)) = decode_key(&mut body) {
        count += usize::from(tag == SUBSCRIPTION);
        if skip_field(wire, tag, &mut body, DecodeContext::default()).is_err() {
            break;
        }
    }
    count
}

fn restore(state: &SourceState) {
    let now = driver::now();
    // A moment after the states of the corpus were taken.
    let wall = UNIX_EPOCH + Duration::from_secs(1_700_000_010);
    for message_ordering in [false, true] {
        let restoration = Restoration {
            epoch: Some(Epoch::new(7)),
            groups: state.groups_of(&subscription(), wall),
            unfinished: state.unfinished_of(&subscription()),
            sought: state.sought(),
            behind: state.behind_in(&subscription()),
        };
        let settings = Settings {
            message_ordering,
            seen_limit: 64,
            ..Settings::default()
        };
        let instance = state.instance().into();
        let mut machine = Machine::new(now, subscription(), instance, settings, restoration);
        machine.check_invariants();
        machine.start(now);
        machine.check_invariants();
        // Ids by the thousand in each acknowledgement, and a few things to tell.
        for _ in 0..64 {
            let effect = machine.poll_effect(now);
            machine.check_invariants();
            if effect.is_none() {
                break;
            }
        }
        let cut = machine.snapshot(now, Epoch::new(8));
        let cut = cut.expect("epochs go on above the restored one");
        assert!(cut.named() <= state.named() + 64);
    }
}
