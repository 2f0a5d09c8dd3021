//! Acknowledge and ModifyAckDeadline requests, encoded while they are cut.

use bytes::Bytes;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

/// The most ids in one request: what Google's libraries settled on after 3,000 and 2,500 broke.
pub(crate) const MAX_IDS: usize = 1000;

/// The most bytes of one encoded request. The service refuses more than 524,288; the rest is room
/// for what a proxy or a future field adds.
pub(crate) const MAX_BYTES: usize = 500 * 1024;

/// Field numbers of `google.pubsub.v1.AcknowledgeRequest` and `ModifyAckDeadlineRequest`.
const SUBSCRIPTION: u32 = 1;
const ACKNOWLEDGE_IDS: u32 = 2;
const MODIFY_SECONDS: u32 = 3;
const MODIFY_IDS: u32 = 4;

/// A request that grows id by id until it is full.
///
/// Written by hand because the ids live in one allocation each per response: going through the
/// generated types would make a `String` of each only to have it copied once more.
#[derive(Debug)]
pub(super) struct RequestBody {
    bytes: Vec<u8>,
    ids_field: u32,
    ids: usize,
}

impl RequestBody {
    /// An Acknowledge request.
    pub(super) fn acknowledge(subscription: &str) -> Self {
        Self::new(subscription, ACKNOWLEDGE_IDS)
    }

    /// A ModifyAckDeadline request; zero seconds give the deliveries back.
    pub(super) fn modify(subscription: &str, seconds: u32) -> Self {
        let mut body = Self::new(subscription, MODIFY_IDS);
        if seconds > 0 {
            encode_key(MODIFY_SECONDS, WireType::Varint, &mut body.bytes);
            encode_varint(u64::from(seconds), &mut body.bytes);
        }
        body
    }

    fn new(subscription: &str, ids_field: u32) -> Self {
        let mut bytes = Vec::with_capacity(1024);
        put(&mut bytes, SUBSCRIPTION, subscription.as_bytes());
        Self {
            bytes,
            ids_field,
            ids: 0,
        }
    }

    /// How many more ids may go in, by their number.
    pub(super) fn room(&self) -> usize {
        MAX_IDS - self.ids
    }

    /// Adds an id. Answers false, and adds nothing, when it does not fit any more; the first id
    /// always fits, however long it is: the service has the last word on it.
    #[inline]
    pub(super) fn push(&mut self, ack_id: &[u8]) -> bool {
        // The key of a field below 16 is one byte.
        let grows = 1 + encoded_len_varint(ack_id.len() as u64) + ack_id.len();
        let full = self.ids >= MAX_IDS || self.bytes.len() + grows > MAX_BYTES;
        if self.ids > 0 && full {
            return false;
        }
        if self.ids == 0 {
            self.bytes
                .reserve((grows * MAX_IDS).min(MAX_BYTES.saturating_sub(self.bytes.len())));
        }
        put(&mut self.bytes, self.ids_field, ack_id);
        self.ids += 1;
        true
    }

    pub(super) fn finish(self) -> Bytes {
        self.bytes.into()
    }
}

#[inline]
fn put(bytes: &mut Vec<u8>, field: u32, value: &[u8]) {
    match value.len() {
        // As nearly all ids are, and there is one for each message.
        len @ 128..16_384 => {
            encode_key(field, WireType::LengthDelimited, bytes);
            let ([low, ..], [_, high, ..]) = (len.to_le_bytes(), (len << 1).to_le_bytes());
            bytes.extend_from_slice(&[low | 0x80, high]);
        }
        len => {
            encode_key(field, WireType::LengthDelimited, bytes);
            encode_varint(len as u64, bytes);
        }
    }
    bytes.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use gcp_wire::proto::pubsub::{AcknowledgeRequest, ModifyAckDeadlineRequest};
    use prost::Message;

    use super::*;

    #[test]
    fn the_service_reads_what_was_written() {
        let mut body = RequestBody::acknowledge("projects/demo/subscriptions/s1");
        assert!(body.push(b"a1") && body.push(b"a2"));
        let request = AcknowledgeRequest::decode(body.finish()).unwrap();
        assert_eq!(request.subscription, "projects/demo/subscriptions/s1");
        assert_eq!(request.ack_ids, ["a1", "a2"]);

        for seconds in [0, 30] {
            let mut body = RequestBody::modify("projects/demo/subscriptions/s1", seconds);
            assert!(body.push(b"a1"));
            let request = ModifyAckDeadlineRequest::decode(body.finish()).unwrap();
            assert_eq!(request.ack_ids, ["a1"]);
            assert_eq!(
                request.ack_deadline_seconds,
                i32::try_from(seconds).unwrap()
            );
        }
    }

    #[test]
    fn a_request_is_cut_by_count_and_by_encoded_bytes() {
        for length in [8, 176, 500, 2000, 100_000] {
            let subscription = "s".repeat(255);
            let mut body = RequestBody::acknowledge(&subscription);
            let id = vec![b'a'; length];
            let mut count = 0;
            while body.push(&id) {
                count += 1;
            }
            let bytes = body.finish().len();
            assert!(
                count <= MAX_IDS && bytes <= MAX_BYTES,
                "{count} ids in {bytes} bytes"
            );
            assert!(
                count == MAX_IDS || bytes + length + 4 > MAX_BYTES,
                "{count} ids of {length} leave room"
            );
        }
    }

    #[test]
    fn one_id_always_fits() {
        let mut body = RequestBody::acknowledge("s");
        assert!(body.push(&vec![b'a'; MAX_BYTES * 2]));
        assert!(!body.push(b"b"));
    }
}
