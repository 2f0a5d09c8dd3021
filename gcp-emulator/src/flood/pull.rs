//! What a pull stream sends.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{BufMut as _, Bytes, BytesMut};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    PubsubMessage, ReceivedMessage, StreamingPullResponse,
};
use prost::Message as _;
use prost_types::Timestamp;

use super::Flood;

/// Digits of a message id, as the service's had in 2026.
const ID_DIGITS: usize = 16;

/// The id before the first. The service's ids do not begin with a zero, and clients that keep them
/// as numbers are to be measured as they would be there.
const BEFORE_FIRST: u64 = 1_000_000_000_000_000;

/// One response, encoded once. Only the ids are written anew each time.
#[derive(Debug)]
pub(super) struct Block {
    encoded: Vec<u8>,
    /// Where the digits stand, two places per message: in the ack id and in the message id.
    places: Vec<usize>,
    messages: u64,
}

impl Block {
    pub(super) fn new(flood: &Flood) -> Self {
        let messages = flood.per_response.max(1);
        let digits = "0".repeat(ID_DIGITS);
        let padding = flood.ack_id_length.max(2 * ID_DIGITS) - ID_DIGITS;
        let message = ReceivedMessage {
            ack_id: format!("{}{digits}", "a".repeat(padding)),
            message: Some(PubsubMessage {
                data: vec![b'x'; flood.payload_bytes].into(),
                message_id: digits.clone(),
                publish_time: Some(publish_time()),
                ..Default::default()
            }),
            delivery_attempt: 0,
        };
        let response = StreamingPullResponse {
            received_messages: vec![message; messages],
            ..Default::default()
        };
        let mut encoded = Vec::with_capacity(response.encoded_len() + 5);
        encoded.put_u8(0);
        encoded.put_u32(u32::try_from(response.encoded_len()).unwrap_or(u32::MAX));
        encoded.extend(response.encode_to_vec());
        let places = places(&encoded, digits.as_bytes());
        Self {
            encoded,
            places,
            messages: messages as u64,
        }
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// The response whose first message has the number `first`.
    pub(super) fn numbered(&self, first: u64) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.encoded.len());
        bytes.extend_from_slice(&self.encoded);
        for (index, place) in self.places.iter().enumerate() {
            let mut number = BEFORE_FIRST + first + index as u64 / 2;
            let digits = bytes.get_mut(*place..*place + ID_DIGITS);
            for digit in digits.into_iter().flatten().rev() {
                *digit = b"0123456789"[usize::try_from(number % 10).unwrap_or(0)];
                number /= 10;
            }
        }
        bytes.freeze()
    }
}

/// Where a run of exactly these digits begins. The payload and the padding have none.
fn places(encoded: &[u8], digits: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while at + digits.len() <= encoded.len() {
        if &encoded[at..at + digits.len()] == digits {
            places.push(at);
            at += digits.len();
        } else {
            at += 1;
        }
    }
    places
}

fn publish_time() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "a server made for load is a program, not a machine"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or(0),
        nanos: i32::try_from(since.subsec_nanos()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_decodes_and_every_message_has_its_own_ids() {
        let flood = Flood {
            payload_bytes: 1024,
            ..Flood::default()
        };
        let block = Block::new(&flood);
        let bytes = block.numbered(98_765);
        let response = StreamingPullResponse::decode(bytes.slice(5..)).unwrap();
        assert_eq!(response.received_messages.len(), 100);
        for (number, received) in (98_765..).zip(response.received_messages) {
            assert_eq!(received.ack_id.len(), 176);
            let message = received.message.unwrap();
            assert_eq!(message.data.len(), 1024);
            assert_eq!(message.message_id, (BEFORE_FIRST + number).to_string());
            assert!(received.ack_id.ends_with(&message.message_id));
        }
    }
}
