//! Messages as bytes of a publish request.
//!
//! A publish request is its topic (field 1) followed by its messages (field 2, repeated). Each
//! accepted message is encoded once, tag and length included, onto the end of its batch; any run
//! of such frames behind a topic header is a request. So limits are exact, and sending again,
//! regrouping, or sending one message alone encodes nothing anew.

use bytes::{Bytes, BytesMut};
use prost::encoding::encoded_len_varint;

use super::PublishMessage;

/// Tags: field number times eight, plus two for "length-delimited".
const REQUEST_TOPIC: u8 = 0x0A;
const REQUEST_MESSAGES: u8 = 0x12;
const MESSAGE_DATA: u8 = 0x0A;
const MESSAGE_ATTRIBUTES: u8 = 0x12;
const MESSAGE_ORDERING_KEY: u8 = 0x2A;
const ENTRY_KEY: u8 = 0x0A;
const ENTRY_VALUE: u8 = 0x12;

/// Bytes of the largest length.
const LONGEST_VARINT: usize = 10;

/// The bytes with which every request to `topic` begins.
pub(crate) fn topic_header(topic: &str) -> Bytes {
    let mut header = BytesMut::with_capacity(field_len(topic.len()));
    put_field(&mut header, REQUEST_TOPIC, topic.as_bytes());
    header.freeze()
}

/// The length of [`topic_header`].
pub(crate) fn topic_header_len(topic: &str) -> usize {
    field_len(topic.len())
}

/// The encoded length of the message as part of a request.
pub(crate) fn frame_len(message: &PublishMessage) -> usize {
    field_len(message_len(message))
}

/// Appends the message as part of a request: exactly [`frame_len`] bytes.
pub(crate) fn encode(message: &PublishMessage, frames: &mut BytesMut) {
    let length = message_len(message);
    frames.reserve(field_len(length));
    let head = Head::default().field(REQUEST_MESSAGES, length);
    if message.payload.is_empty() {
        frames.extend_from_slice(head.bytes());
    } else {
        let head = head.field(MESSAGE_DATA, message.payload.len());
        frames.extend_from_slice(head.bytes());
        frames.extend_from_slice(&message.payload);
    }
    for (key, value) in message.attributes() {
        put_head(frames, MESSAGE_ATTRIBUTES, entry_len(key, value));
        put_field(frames, ENTRY_KEY, key.as_bytes());
        put_field(frames, ENTRY_VALUE, value.as_bytes());
    }
    if !message.ordering_key.is_empty() {
        put_field(
            frames,
            MESSAGE_ORDERING_KEY,
            message.ordering_key.as_bytes(),
        );
    }
}

/// The message as encoded outside of a request.
pub(crate) fn encode_alone(message: &PublishMessage) -> Bytes {
    let mut frame = BytesMut::new();
    encode(message, &mut frame);
    payload_of(&frame)
}

/// The encoded message inside a frame, copied: a slice would pin the whole batch for as long as
/// a failure handler keeps one message of it.
pub(crate) fn payload_of(frame: &[u8]) -> Bytes {
    Bytes::copy_from_slice(frame.get(head_len(frame)..).unwrap_or_default())
}

/// The encoded message inside a frame, shared with it.
pub(crate) fn inside(frame: &Bytes) -> Bytes {
    frame.slice(head_len(frame).min(frame.len())..)
}

/// Appends an encoded message as part of a request: what [`inside`] takes apart.
pub(crate) fn encode_again(message: &[u8], frames: &mut BytesMut) {
    frames.reserve(field_len(message.len()));
    put_field(frames, REQUEST_MESSAGES, message);
}

/// A frame is a tag byte, a length of one to five bytes, and the message. The bytes of a varint but
/// its last have the top bit set.
fn head_len(frame: &[u8]) -> usize {
    let length = frame.iter().skip(1);
    2 + length.take_while(|byte| **byte >= 0x80).count()
}

fn message_len(message: &PublishMessage) -> usize {
    let payload = optional_len(message.payload.len());
    let attributes: usize = message
        .attributes()
        .iter()
        .map(|(key, value)| field_len(entry_len(key, value)))
        .sum();
    payload + attributes + optional_len(message.ordering_key.len())
}

fn entry_len(key: &str, value: &str) -> usize {
    field_len(key.len()) + field_len(value.len())
}

/// A field of `length` bytes with its tag and length prefix. All tags here are below 16: one byte.
fn field_len(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

fn optional_len(length: usize) -> usize {
    if length == 0 { 0 } else { field_len(length) }
}

fn put_head(into: &mut BytesMut, tag: u8, length: usize) {
    into.extend_from_slice(Head::default().field(tag, length).bytes());
}

/// The tags and lengths of one or two fields, put together aside: the buffer then grows by all of
/// them and not by each byte.
#[derive(Default)]
struct Head {
    bytes: [u8; 2 * (1 + LONGEST_VARINT)],
    len: usize,
}

impl Head {
    #[inline]
    fn field(mut self, tag: u8, length: usize) -> Self {
        self.push(tag);
        let mut rest = length as u64;
        while rest >= 0x80 {
            self.push((rest & 0x7F) as u8 | 0x80);
            rest >>= 7;
        }
        self.push((rest & 0x7F) as u8);
        self
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn put_field(into: &mut BytesMut, tag: u8, bytes: &[u8]) {
    put_head(into, tag, bytes.len());
    into.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use gcp_wire::proto::pubsub::PublishRequest;
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    fn message() -> impl Strategy<Value = PublishMessage> {
        (
            proptest::collection::vec(any::<u8>(), 0..300),
            proptest::collection::btree_map(".{0,40}", ".{0,200}", 0..6),
            "[a-z]{0,3}",
        )
            .prop_map(|(payload, attributes, key)| {
                attributes
                    .into_iter()
                    .fold(PublishMessage::new(payload), |message, (key, value)| {
                        message.attribute(key, value)
                    })
                    .ordering_key(key)
            })
    }

    proptest! {
        #[test]
        fn any_run_of_frames_behind_a_header_is_a_request(
            messages in proptest::collection::vec(message(), 1..5),
        ) {
            let topic = "projects/demo/topics/orders";
            let mut frames = BytesMut::new();
            let mut expected = 0;
            for message in &messages {
                let before = frames.len();
                encode(message, &mut frames);
                prop_assert_eq!(frames.len() - before, frame_len(message));
                expected += frame_len(message);
                let single = payload_of(&frames[before..]);
                let decoded = gcp_wire::proto::pubsub::PubsubMessage::decode(single).unwrap();
                prop_assert_eq!(&decoded.data, message.payload());
                let frame = Bytes::copy_from_slice(&frames[before..]);
                let mut again = BytesMut::new();
                encode_again(&inside(&frame), &mut again);
                prop_assert_eq!(again.freeze(), frame);
            }
            let mut body = BytesMut::from(topic_header(topic).as_ref());
            body.extend_from_slice(&frames);
            prop_assert_eq!(body.len(), topic_header(topic).len() + expected);
            let request = PublishRequest::decode(body.freeze()).unwrap();
            prop_assert_eq!(&request.topic, topic);
            prop_assert_eq!(request.messages.len(), messages.len());
            for (decoded, message) in request.messages.iter().zip(&messages) {
                prop_assert_eq!(&decoded.data, message.payload());
                prop_assert_eq!(&decoded.ordering_key, message.key().unwrap_or_default());
                let attributes: std::collections::BTreeMap<String, String> =
                    decoded.attributes.clone().into_iter().collect();
                prop_assert_eq!(&attributes, message.attributes());
            }
        }
    }
}
