//! Held to the generated type, on what services send and on what nobody should.

use proptest::collection::vec;
use proptest::prelude::*;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::scan::{RECEIVED_MESSAGES, SUBSCRIPTION_PROPERTIES};
use super::*;
use crate::fuzzing::pulled::{agree, agree_in_pieces, said_by, said_by_generated};
use crate::proto::Timestamp;
use crate::proto::pubsub::streaming_pull_response::{
    AcknowledgeConfirmation, SubscriptionProperties as GeneratedProperties,
};
use crate::proto::pubsub::{PubsubMessage, ReceivedMessage};

fn message() -> impl Strategy<Value = PubsubMessage> {
    let time = (any::<i64>(), any::<i32>());
    (
        vec(any::<u8>(), 0..40),
        proptest::collection::hash_map(".{0,4}", ".{0,6}", 0..4),
        "[0-9]{0,20}|.{0,5}",
        proptest::option::of(time),
        ".{0,5}",
    )
        .prop_map(
            |(data, attributes, message_id, time, ordering_key)| PubsubMessage {
                data: data.into(),
                attributes,
                message_id,
                publish_time: time.map(|(seconds, nanos)| Timestamp { seconds, nanos }),
                ordering_key,
            },
        )
}

fn response() -> impl Strategy<Value = StreamingPullResponse> {
    let received = (".{0,9}", proptest::option::of(message()), any::<i32>());
    let received = received.prop_map(|(ack_id, message, delivery_attempt)| ReceivedMessage {
        ack_id,
        message,
        delivery_attempt,
    });
    let properties = proptest::option::of((any::<bool>(), any::<bool>()));
    (vec(received, 0..4), properties).prop_map(|(received_messages, properties)| {
        StreamingPullResponse {
            received_messages,
            subscription_properties: properties.map(|(exactly_once, ordering)| {
                GeneratedProperties {
                    exactly_once_delivery_enabled: exactly_once,
                    message_ordering_enabled: ordering,
                }
            }),
            ..StreamingPullResponse::default()
        }
    })
}

/// A message of fields that nobody may have asked for, with known numbers more often than not.
fn wild() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![9 => 1u32..6, 1 => 6u32..40];
    let leaf = vec(any::<u8>(), 0..6).boxed();
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let value = prop_oneof![
            2 => any::<u64>().prop_map(|value| (WireType::Varint, varint(value))),
            1 => vec(any::<u8>(), 8).prop_map(|value| (WireType::SixtyFourBit, value)),
            1 => vec(any::<u8>(), 4).prop_map(|value| (WireType::ThirtyTwoBit, value)),
            9 => prop_oneof![inner.clone(), "[a-z]{0,3}".prop_map(String::into_bytes)]
                .prop_map(|value| (WireType::LengthDelimited, value)),
            1 => inner.prop_map(|value| (WireType::StartGroup, value)),
        ];
        vec((number.clone(), value), 0..4).prop_map(|fields| {
            let mut bytes = Vec::new();
            for (number, (wire_type, value)) in fields {
                encode_key(number, wire_type, &mut bytes);
                if wire_type == WireType::LengthDelimited {
                    encode_varint(value.len() as u64, &mut bytes);
                }
                bytes.extend(value);
                if wire_type == WireType::StartGroup {
                    encode_key(number, WireType::EndGroup, &mut bytes);
                }
            }
            bytes
        })
    })
}

fn varint(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(value, &mut bytes);
    bytes
}

/// The same bytes in pieces of these lengths, again and again.
fn cut(bytes: &Bytes, cuts: &[usize]) -> Pieces {
    let (mut rest, mut pieces) = (bytes.clone(), Pieces::default());
    for len in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        pieces.push(rest.split_to(rest.len().min(*len)));
    }
    pieces
}

/// A field of a known number, and as long as it says.
fn field(number: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(value.len() as u64, &mut bytes);
    bytes.extend(value);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_a_service_sends_is_read_without_the_generated_type(response in response()) {
        let bytes = Bytes::from(response.encode_to_vec());
        let scanned = PulledResponse::scan(bytes.clone().into()).expect("it is of the plain kind");
        prop_assert_eq!(said_by(&scanned), said_by_generated(&bytes).unwrap());
        prop_assert_eq!(scanned.encoded_len(), bytes.len());
    }

    #[test]
    fn a_response_in_pieces_is_read_as_in_one(
        response in response(),
        cuts in vec(1_usize..80, 1..12),
    ) {
        let bytes = Bytes::from(response.encode_to_vec());
        let pieces = cut(&bytes, &cuts);
        let scanned = PulledResponse::scan(pieces).expect("it is of the plain kind");
        prop_assert_eq!(said_by(&scanned), said_by_generated(&bytes).unwrap());
        prop_assert_eq!(scanned.encoded_len(), bytes.len());
    }

    #[test]
    fn damaged_responses_are_read_or_refused_as_the_generated_type_does(
        response in response(),
        damages in vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..4),
    ) {
        let mut bytes = response.encode_to_vec();
        for (at, byte, kind) in damages {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        agree(&bytes);
        agree_in_pieces(&bytes);
    }

    #[test]
    fn two_responses_in_one_are_read_as_the_generated_type_does(
        one in response(),
        other in response(),
    ) {
        agree(&[one.encode_to_vec(), other.encode_to_vec()].concat());
    }

    #[test]
    fn wild_fields_are_read_or_refused_as_the_generated_type_does(bytes in wild()) {
        agree(&bytes);
        // The same further in, where most of the work is.
        agree(&field(RECEIVED_MESSAGES, &bytes));
        agree(&field(SUBSCRIPTION_PROPERTIES, &bytes));
        let message = field(2, &bytes);
        agree(&field(RECEIVED_MESSAGES, &message));
        agree(&field(RECEIVED_MESSAGES, &field(2, &field(2, &bytes))));
        agree(&field(RECEIVED_MESSAGES, &field(2, &field(4, &bytes))));
        // A message in two parts, which are merged.
        agree(&field(RECEIVED_MESSAGES, &[message.clone(), message].concat()));
    }

    #[test]
    fn any_bytes_are_read_or_refused_as_the_generated_type_does(bytes in vec(any::<u8>(), 0..64)) {
        agree(&bytes);
    }
}

#[test]
fn a_field_that_came_later_is_passed_over_without_the_generated_type() {
    let mut later = field(19, b"new");
    later.extend([0x98, 0x01, 7]);
    let mut message = field(1, b"data");
    message.extend(&later);
    message.extend(field(3, b"17"));
    let mut delivery = field(1, b"ack");
    delivery.extend(field(2, &message));
    delivery.extend(&later);
    let mut bytes = field(RECEIVED_MESSAGES, &delivery);
    bytes.extend(later);
    agree(&bytes);
    let response =
        PulledResponse::scan(Bytes::from(bytes).into()).expect("it is of the plain kind");
    let delivery = response.deliveries().next().unwrap();
    let message = delivery.message().unwrap();
    assert_eq!((message.id(), message.data()), ("17", &b"data"[..]));
}

#[test]
fn confirmations_on_the_stream_are_left_out() {
    let response = StreamingPullResponse {
        received_messages: vec![ReceivedMessage {
            ack_id: "a".into(),
            message: Some(PubsubMessage::default()),
            delivery_attempt: -1,
        }],
        acknowledge_confirmation: Some(AcknowledgeConfirmation {
            ack_ids: vec!["b".into()],
            ..AcknowledgeConfirmation::default()
        }),
        ..StreamingPullResponse::default()
    };
    let bytes = response.encode_to_vec();
    agree(&bytes);
    let response = PulledResponse::decode(bytes.into()).unwrap();
    assert_eq!(response.len(), 1);
    let delivery = response.deliveries().next().unwrap();
    assert_eq!(
        (delivery.ack_id(), delivery.delivery_attempt()),
        (&b"a"[..], -1)
    );
}

#[test]
fn a_shared_payload_is_a_part_of_the_response() {
    let response = StreamingPullResponse {
        received_messages: vec![ReceivedMessage {
            message: Some(PubsubMessage {
                data: vec![7; 1000].into(),
                ..PubsubMessage::default()
            }),
            ..ReceivedMessage::default()
        }],
        ..StreamingPullResponse::default()
    };
    let bytes = Bytes::from(response.encode_to_vec());
    let response = PulledResponse::decode(bytes.clone()).unwrap();
    let delivery = response.deliveries().next().unwrap();
    let shared = delivery.message().unwrap().share_data();
    assert!(bytes.as_ptr_range().contains(&shared.as_ptr()));
    assert_eq!(shared, vec![7; 1000]);
}

#[test]
fn of_a_response_in_pieces_only_what_lies_across_two_is_put_together() {
    let received = |byte: u8| ReceivedMessage {
        message: Some(PubsubMessage {
            data: vec![byte; 1000].into(),
            ..PubsubMessage::default()
        }),
        ..ReceivedMessage::default()
    };
    let response = StreamingPullResponse {
        received_messages: vec![received(1), received(2), received(3)],
        ..StreamingPullResponse::default()
    };
    let bytes = Bytes::from(response.encode_to_vec());
    let response = PulledResponse::read(cut(&bytes, &[1500, bytes.len()])).unwrap();
    let within: Vec<bool> = response
        .deliveries()
        .map(|delivery| {
            let payload = delivery.message().unwrap().share_data();
            bytes.as_ptr_range().contains(&payload.as_ptr())
        })
        .collect();
    assert_eq!(within, [true, false, true]);
    let joined: usize = response.parts.iter().skip(2).map(Bytes::len).sum();
    assert!((1000..1100).contains(&joined), "{joined}");
    assert_eq!((response.len(), response.payload_bytes()), (3, 3000));
}

#[test]
fn of_an_attribute_that_was_sent_twice_the_last_counts() {
    let entry = |key: &[u8], value: &[u8]| field(2, &[field(1, key), field(2, value)].concat());
    // With another field between them.
    let message = [entry(b"k", b"one"), field(1, b"x"), entry(b"k", b"two")].concat();
    let bytes = field(RECEIVED_MESSAGES, &field(2, &message));
    agree(&bytes);
    let response =
        PulledResponse::scan(Bytes::from(bytes).into()).expect("it is of the plain kind");
    let delivery = response.deliveries().next().unwrap();
    let attributes = delivery.message().unwrap().attributes();
    assert_eq!(attributes.get("k"), Some("two"));
    assert_eq!(attributes.iter().count(), 2);
    let again = Attributes::new(attributes.encoded());
    assert_eq!(again.get("k"), Some("two"));
}

#[test]
fn a_debug_print_holds_no_payload_and_no_ack_id() {
    let message = [field(1, b"secret"), field(2, &field(1, b"secret"))].concat();
    let delivery = [field(1, b"secret"), field(2, &message)].concat();
    let response = PulledResponse::decode(field(RECEIVED_MESSAGES, &delivery).into()).unwrap();
    let delivery = response.deliveries().next().unwrap();
    let message = delivery.message().unwrap();
    let text = format!("{response:?} {delivery:?} {:?}", message.attributes());
    assert!(
        !text.contains("secret") && text.contains("bytes: 6"),
        "{text}"
    );
}
