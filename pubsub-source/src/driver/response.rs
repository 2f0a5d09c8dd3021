//! A response, taken apart without the machine's lock.

mod payloads;

use std::{ops::Range, time::Instant};

use gcp_wire::{
    PulledResponse, SubscriptionName,
    pulled::{PulledDelivery, PulledMessage},
};

use crate::{
    machine::{AckIds, MessageKey, Pulled},
    message::{Attributes, Message, UNPUBLISHED},
};
use payloads::Payloads;

/// A payload of fewer bytes is copied. A shared one keeps what it was received in: one of the 64 KiB
/// that a frame of a pull stream has at most, and that is to be no more than eight times the payload.
const SHARED: usize = 8 << 10;

/// Takes a part of a response apart, by its deliveries' numbers.
pub(crate) fn take_apart(
    subscription: &SubscriptionName,
    response: &PulledResponse,
    part: Range<usize>,
    leased_since: Instant,
) -> Pulled {
    let count = part.len();
    let deliveries = || response.deliveries().skip(part.start).take(count);
    // Mostly all of one length; what is too much is given back.
    let ack_bytes = deliveries().next().map_or(0, |one| one.ack_id().len());
    let mut ack_ids = AckIds::with_capacity(count, ack_bytes.saturating_mul(count));
    let mut keys = Vec::with_capacity(count);
    // All of them first, and then filled in where they lie: an atomic count in between waits until
    // everything that was written before has reached the cache, and so does a move of what was
    // just put together from small parts.
    let blank = || Message::blank(subscription.clone());
    let mut messages: Vec<Message> = (0..count).map(|_| blank()).collect();
    let mut payloads = Payloads::of(response.payload_bytes());
    let mut bytes = 0;
    for one in deliveries() {
        // Without its message a delivery is nothing; its lease runs out. The responses' own limit
        // is far below what the ack ids can hold.
        let Some(message) = one.message() else {
            continue;
        };
        if !ack_ids.push(one.ack_id()) {
            continue;
        }
        let at = keys.len();
        keys.push(MessageKey::of(message.id_bytes()));
        let data = message.data();
        bytes += data.len() as u64;
        let Some(taken) = messages.get_mut(at) else {
            break;
        };
        fill_in(taken, &one, &message);
        bytes += (taken.ordering_key.len() + taken.attributes.text()) as u64;
        if data.len() >= SHARED {
            taken.data = message.share_data();
        } else if !data.is_empty() {
            payloads.add(data, at, &mut messages);
        }
    }
    payloads.hand_over(&mut messages);
    messages.truncate(keys.len());
    ack_ids.shrink();
    let properties = response.properties();
    Pulled {
        messages,
        keys,
        ack_ids,
        bytes,
        leased_since,
        exactly_once: properties.map(|these| these.exactly_once_delivery_enabled),
        ordered: properties.map(|these| these.message_ordering_enabled),
    }
}

/// Fills in everything but the payload.
fn fill_in(taken: &mut Message, delivery: &PulledDelivery<'_>, message: &PulledMessage<'_>) {
    taken.id.set(message.id_bytes());
    taken.published = message.publish_time().map_or(UNPUBLISHED, |time| {
        time.seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(i64::from(time.nanos))
    });
    taken.attempt = u32::try_from(delivery.delivery_attempt()).unwrap_or(0);
    let (key, attributes) = (message.ordering_key(), message.attributes());
    if !key.is_empty() {
        taken.ordering_key = key.into();
    }
    if !attributes.is_empty() {
        taken.attributes = Attributes::of(attributes);
    }
}

#[cfg(test)]
mod tests {
    use gcp_wire::proto::pubsub::{PubsubMessage, ReceivedMessage, StreamingPullResponse};
    use prost::Message as _;

    use super::*;

    fn response(sizes: &[usize]) -> PulledResponse {
        let received = |(number, size): (usize, &usize)| ReceivedMessage {
            ack_id: format!("ack-{number}"),
            message: Some(PubsubMessage {
                message_id: number.to_string(),
                data: vec![7; *size].into(),
                attributes: [("k".to_owned(), number.to_string())].into(),
                ..PubsubMessage::default()
            }),
            delivery_attempt: 3,
        };
        let response = StreamingPullResponse {
            received_messages: sizes.iter().enumerate().map(received).collect(),
            ..StreamingPullResponse::default()
        };
        PulledResponse::decode(response.encode_to_vec().into()).unwrap()
    }

    fn taken(response: &PulledResponse, part: Range<usize>) -> Pulled {
        let subscription = "projects/demo-project/subscriptions/s11".parse().unwrap();
        take_apart(&subscription, response, part, crate::driver::now())
    }

    #[test]
    fn a_part_has_its_messages_with_their_keys_and_ack_ids() {
        let pulled = taken(&response(&[1; 10]), 3..5);
        let ids: Vec<&str> = pulled.messages.iter().map(Message::id).collect();
        assert_eq!(ids, ["3", "4"]);
        assert_eq!(pulled.keys, [MessageKey::Number(3), MessageKey::Number(4)]);
        assert_eq!(pulled.ack_ids.get(1), b"ack-4");
        assert_eq!(pulled.messages[0].attribute("k"), Some("3"));
        assert_eq!(pulled.messages[0].delivery_attempt(), Some(3));
    }

    #[test]
    fn a_small_payload_does_not_keep_its_response() {
        let response = response(&[100, 10_000]);
        let pulled = taken(&response, 0..2);
        let whole = |index: usize| {
            let delivery = response.deliveries().nth(index).unwrap();
            delivery.message().unwrap().data().as_ptr()
        };
        assert_eq!(pulled.messages[0].data(), &vec![7; 100]);
        assert_ne!(pulled.messages[0].data().as_ptr(), whole(0));
        assert_eq!(pulled.messages[1].data().as_ptr(), whole(1), "no copy");
    }

    #[test]
    fn a_small_payload_that_came_alone_does_not_keep_what_was_received_with_it() {
        let response = response(&[8_000]);
        let pulled = taken(&response, 0..1);
        let delivery = response.deliveries().next().unwrap();
        let received = delivery.message().unwrap().data().as_ptr();
        assert_ne!(pulled.messages[0].data().as_ptr(), received);
        assert_eq!(pulled.messages[0].data(), &vec![7; 8_000]);
    }
}
