//! The targets over their corpora, and shown to find a mistake.

use connector_core::Versioned;
use fuzz_corpus::{Room, Target};
use gcp_wire::{PulledResponse, proto::pubsub::StreamingPullResponse};
use prost::Message as _;

use super::{
    host::{Twice, history},
    responses, state, subscription,
};
use crate::SourceState;

/// What a source itself takes, and what a history of operations makes it hold.
const MACHINE: Room = Room::new(256 << 10, 16 << 10);

#[test]
fn no_bytes_given_as_a_state_break_it() {
    let target = Target::new("source_state", super::source_state);
    target.room(MACHINE).check();
}

#[test]
fn no_response_breaks_a_source() {
    let target = Target::new("source_responses", super::source_responses);
    target.room(MACHINE).check();
}

#[test]
fn no_history_of_a_source_breaks_it() {
    let target = Target::new("source_machine", super::source_machine);
    target.room(MACHINE).check();
}

#[test]
fn a_damaged_state_that_is_taken_for_an_empty_one_is_found() {
    let found = Target::new("source_state", |bytes| {
        state::states_by(bytes, |version, instance, body| {
            SourceState::decode_body(version, instance, body)
                .or_else(|_| Ok(SourceState::empty(instance.into(), &subscription())))
        });
    });
    assert!(found.room(MACHINE).find().is_some());
}

#[test]
fn a_response_that_loses_its_messages_is_found() {
    let found = Target::new("source_responses", |bytes| {
        responses::responses_by(bytes, |body| {
            let mut response = StreamingPullResponse::decode(body).expect("it was decoded");
            response
                .received_messages
                .retain(|one| !one.ack_id.is_empty());
            PulledResponse::decode(response.encode_to_vec().into())
        });
    });
    assert!(found.room(MACHINE).find().is_some());
}

#[test]
fn a_receipt_that_resolves_twice_is_found() {
    finds(|bytes| history(bytes, Some(Twice::Resolved)));
}

#[test]
fn a_message_that_is_handed_out_twice_is_found() {
    finds(|bytes| history(bytes, Some(Twice::HandedOut)));
}

#[test]
fn a_request_that_leaves_twice_is_found() {
    finds(|bytes| history(bytes, Some(Twice::Sent)));
}

fn finds(target: fn(&[u8])) {
    let target = Target::new("source_machine", target).room(MACHINE);
    assert!(target.find().is_some());
}
