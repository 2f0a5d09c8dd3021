//! Responses of a pull stream.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use gcp_wire::{
    DecodeFault, PulledResponse,
    proto::pubsub::{PubsubMessage, ReceivedMessage, StreamingPullResponse},
};
use prost::Message as _;

use super::{host::Host, operation::Setup};

/// Whatever a response says, the source takes it in, once and when it comes again, hands its
/// messages out, and comes to rest after a checkpoint. The first byte sets the source up.
pub fn source_responses(bytes: &[u8]) {
    responses_by(bytes, PulledResponse::decode);
}

pub(super) fn responses_by(
    bytes: &[u8],
    decode: impl Fn(Bytes) -> Result<PulledResponse, DecodeFault>,
) {
    let Some((setup, body)) = bytes.split_first() else {
        return;
    };
    // The generated type says what there is to be handed out.
    let Ok(sent) = StreamingPullResponse::decode(body) else {
        return;
    };
    let decoded = decode(Bytes::copy_from_slice(body));
    let response = decoded.expect("what the generated type reads is read");
    let setup = Setup {
        ordering: setup & 1 != 0,
        saves_ack_ids: setup & 2 != 0,
        ..Setup::default()
    };
    let messages = sent.received_messages.iter().filter_map(content);
    let whole = messages.clone().count();
    let ids: BTreeSet<&str> = messages.map(|one| one.message_id.as_str()).collect();
    let properties = sent.subscription_properties;
    let unordered = properties.is_some_and(|properties| !properties.message_ordering_enabled);
    // A source that is to keep the order of a subscription without one ends before anything else.
    let ids = if setup.ordering && unordered {
        0
    } else {
        ids.len()
    };
    let mut host = Host::new(setup, None);
    host.perform_all();
    host.receive_response(0, &response, Duration::ZERO);
    host.perform_all();
    host.confirm_all();
    host.read(usize::MAX);
    // Every message of it is with the host, or another with its id is.
    assert!(host.handed() <= whole, "nothing is made of nothing");
    assert!(host.handed() >= ids, "nothing is lost");
    host.receive_response(0, &response, Duration::from_secs(1));
    host.read(usize::MAX);
    let handed = host.handed();
    host.snapshot(1);
    host.commit(1);
    host.perform_all();
    host.confirm_all();
    assert!(host.handed() >= handed);
    host.rest();
}

/// A delivery that has a message.
fn content(received: &ReceivedMessage) -> Option<&PubsubMessage> {
    received.message.as_ref()
}
