//! One response of a streaming pull, read by our own codec and by the generated type.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message as _;

use crate::{
    DecodeFault, PulledResponse,
    grpc::Pieces,
    proto::pubsub::{
        PubsubMessage, ReceivedMessage, StreamingPullResponse,
        streaming_pull_response::SubscriptionProperties,
    },
    pulled::{PulledDelivery, PulledMessage},
};

/// Whatever the bytes of a response are, the codec finds in them what the generated type finds, or
/// refuses them for the same reason.
pub fn pulled_response(bytes: &[u8]) {
    agree(bytes);
    agree_in_pieces(bytes);
}

/// However a response is cut into pieces, it is read as in one.
pub(crate) fn agree_in_pieces(bytes: &[u8]) {
    for piece in [3, 16, 61] {
        agree_by(bytes, |whole| read_in_pieces(whole, piece));
    }
}

/// Reads a response that came in pieces of at most so many bytes.
fn read_in_pieces(mut rest: Bytes, piece: usize) -> Result<PulledResponse, DecodeFault> {
    let mut pieces = Pieces::default();
    while !rest.is_empty() {
        pieces.push(rest.split_to(rest.len().min(piece)));
    }
    PulledResponse::read(pieces)
}

/// What a response says, whoever read it.
#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    deliveries: Vec<(Vec<u8>, Option<PubsubMessage>, i32)>,
    properties: Option<(bool, bool)>,
    payload_bytes: usize,
}

pub(crate) fn said_by_generated(bytes: &[u8]) -> Result<Said, String> {
    let response = StreamingPullResponse::decode(bytes).map_err(|error| error.to_string())?;
    let said = |one: ReceivedMessage| (one.ack_id.into_bytes(), one.message, one.delivery_attempt);
    let deliveries: Vec<_> = response.received_messages.into_iter().map(said).collect();
    let payload =
        |one: &(_, Option<PubsubMessage>, _)| one.1.as_ref().map_or(0, |it| it.data.len());
    Ok(Said {
        payload_bytes: deliveries.iter().map(payload).sum(),
        deliveries,
        properties: response.subscription_properties.map(|these| {
            let SubscriptionProperties {
                exactly_once_delivery_enabled,
                message_ordering_enabled,
            } = these;
            (exactly_once_delivery_enabled, message_ordering_enabled)
        }),
    })
}

pub(crate) fn said_by(response: &PulledResponse) -> Said {
    let message = |message: PulledMessage<'_>| {
        let attributes: HashMap<String, String> = message
            .attributes()
            .iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        for (key, _) in message.attributes().iter() {
            let value = attributes.get(key).map(String::as_str);
            assert_eq!(message.attributes().get(key), value);
        }
        assert_eq!(message.share_data(), message.data());
        PubsubMessage {
            data: Bytes::copy_from_slice(message.data()),
            attributes,
            message_id: message.id().to_owned(),
            publish_time: message.publish_time(),
            ordering_key: message.ordering_key().to_owned(),
        }
    };
    let said = |one: PulledDelivery<'_>| {
        let message = one.message().map(message);
        (one.ack_id().to_vec(), message, one.delivery_attempt())
    };
    Said {
        deliveries: response.deliveries().map(said).collect(),
        properties: response.properties().map(|these| {
            (
                these.exactly_once_delivery_enabled,
                these.message_ordering_enabled,
            )
        }),
        payload_bytes: response.payload_bytes(),
    }
}

/// Whatever the bytes are, both read the same, or both refuse them and for the same reason.
pub(crate) fn agree(bytes: &[u8]) {
    agree_by(bytes, PulledResponse::decode);
}

pub(super) fn agree_by(
    bytes: &[u8],
    decode: impl Fn(Bytes) -> Result<PulledResponse, DecodeFault>,
) {
    let ours = decode(Bytes::copy_from_slice(bytes));
    match (ours, said_by_generated(bytes)) {
        (Ok(ours), Ok(theirs)) => assert_eq!(said_by(&ours), theirs),
        (Err(DecodeFault::Malformed(ours)), Err(theirs)) => assert_eq!(ours, theirs),
        (ours, theirs) => panic!("{ours:?} is not {theirs:?}"),
    }
}
