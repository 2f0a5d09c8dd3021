//! The targets over their corpora, and shown to find a mistake.

use connector_core::Versioned;
use fuzz_corpus::{Room, Target};

use super::{
    host::{Twice, history},
    state,
};
use crate::SinkState;

/// What a sink itself takes, and what a history of operations makes it hold.
const MACHINE: Room = Room::new(256 << 10, 16 << 10);

#[test]
fn no_bytes_given_as_a_state_break_it() {
    Target::new("pubsub_sink_state", super::sink_state).check();
}

#[test]
fn no_history_of_a_sink_breaks_it() {
    let target = Target::new("pubsub_sink_machine", super::sink_machine);
    target.room(MACHINE).check();
}

#[test]
fn a_damaged_state_that_is_taken_for_an_empty_one_is_found() {
    let found = Target::new("pubsub_sink_state", |bytes| {
        state::states_by(bytes, |version, instance, body| {
            SinkState::decode_body(version, instance, body)
                .or_else(|_| Ok(SinkState::flushed(instance)))
        });
    });
    assert!(found.find().is_some());
}

#[test]
fn a_budget_that_is_given_back_twice_is_found() {
    finds(|bytes| history(bytes, Some(Twice::Released)));
}

#[test]
fn a_receipt_that_resolves_twice_is_found() {
    finds(|bytes| history(bytes, Some(Twice::Resolved)));
}

#[test]
fn a_request_that_leaves_twice_at_once_is_found() {
    finds(|bytes| history(bytes, Some(Twice::Sent)));
}

fn finds(target: fn(&[u8])) {
    let target = Target::new("pubsub_sink_machine", target).room(MACHINE);
    assert!(target.find().is_some());
}
