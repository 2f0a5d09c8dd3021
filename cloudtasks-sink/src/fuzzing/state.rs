//! Saved states.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use connector_core::{Epoch, Restored, StateError, Versioned};
use prost::encoding::{DecodeContext, decode_key, skip_field};

use crate::builder::restored;
use crate::driver::clock;
use crate::machine::Machine;
use crate::options::Options;
use crate::{Delivery, SinkState};

/// The tags of tasks, and of those kept aside, in a body of version 2.
const TASKS: [u32; 2] = [3, 4];

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
    let state: SinkState = match bytes {
        [b'{', ..] => match serde_json::from_slice(bytes) {
            Ok(state) => state,
            Err(_) => return,
        },
        [version, body @ ..] => {
            let body = Bytes::copy_from_slice(body);
            let Ok(state) = decode(u32::from(*version), "0", body.clone()) else {
                return;
            };
            if *version == 2 {
                let named = [state.tasks().len(), state.kept().len()];
                assert_eq!(tasks(body), named, "a state names every task of its body");
            }
            state
        }
        [] => return,
    };
    let written = state.encode_body();
    let again = SinkState::decode_body(SinkState::VERSION, state.instance(), written);
    assert_eq!(again.as_ref(), Ok(&state), "what was written is read");
    let exported = serde_json::to_vec(state.kept()).expect("what is kept aside can be exported");
    assert!(!exported.is_empty());
    assert!(format!("{state:?}").len() < 300 + state.instance().len() * 12);
    restore(&state);
}

/// The tasks in a body, as far as it is protobuf.
fn tasks(mut body: Bytes) -> [usize; 2] {
    let mut counts = [0; 2];
    while let Ok((tag, wire)) = decode_key(&mut body) {
        for (count, wanted) in counts.iter_mut().zip(TASKS) {
            *count += usize::from(tag == wanted);
        }
        if skip_field(wire, tag, &mut body, DecodeContext::default()).is_err() {
            break;
        }
    }
    counts
}

fn restore(state: &SinkState) {
    // Some time after the states of the corpus were written.
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_000_600);
    let now = clock::now();
    let options = Options {
        delivery: Delivery::Staged {
            name_retention: Duration::from_secs(86_400),
        },
        ..Options::default()
    };
    let settings = options.staged().expect("it stages");
    for keep_expired in [false, true] {
        let epoch = Epoch::new(7);
        let restored = vec![Restored::new(epoch, state.clone())];
        let tasks = restored::tasks(restored, now, wall, settings.window, keep_expired);
        let Ok(tasks) = tasks else {
            assert!(!keep_expired, "expired tasks may be kept aside");
            continue;
        };
        assert!(tasks.tasks.len() <= state.tasks().len());
        let machine = Machine::new(options.machine(), Some(epoch));
        let (mut machine, _) = machine.staging(now, wall, settings, Some(epoch), tasks);
        machine.check_invariants();
        machine.handle_time_of_day(wall);
        // Each task leaves or is kept aside, and there are a few things to tell.
        for _ in 0..2 * state.tasks().len() + 8 {
            let effect = machine.poll_effect(now);
            machine.check_invariants();
            if effect.is_none() {
                break;
            }
        }
        assert!(machine.saved_tasks().is_some());
    }
}
