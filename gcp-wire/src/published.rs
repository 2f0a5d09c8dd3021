//! The response of a publish request, kept as the bytes it came in.
//!
//! A generated type makes a `String` of the id of every message, which few publishers ever look at:
//! a third of what publishing small messages cost.

use std::fmt;

use bytes::Bytes;
use prost::Message as _;
use prost::encoding::decode_varint;

use crate::method::FromAnswer;
use crate::proto::pubsub::PublishResponse;
use crate::status::DecodeFault;

/// Field 1 of `google.pubsub.v1.PublishResponse`, the ids: eight times its number, plus two for
/// "length-delimited".
const MESSAGE_IDS: u8 = 0x0A;

/// The ids that the service gave to the messages of a publish request, in their order.
///
/// Read by scanning; a `String` is made by whoever wants one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PublishedIds {
    /// Nothing but fields of ids, all of them UTF-8.
    bytes: Bytes,
    count: usize,
}

impl PublishedIds {
    /// The number of ids.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ids, in the order of the request's messages.
    pub fn iter(&self) -> impl Iterator<Item = &str> + '_ {
        let mut rest = self.bytes.as_ref();
        std::iter::from_fn(move || {
            let (id, behind) = first_id(rest)?;
            rest = behind;
            std::str::from_utf8(id).ok()
        })
    }

    /// Reads what the service sends: ids, and nothing else. `None` says that the generated type is
    /// to have its say.
    fn scan(bytes: Bytes) -> Option<Self> {
        let mut rest = bytes.as_ref();
        let mut count = 0;
        while !rest.is_empty() {
            let (id, behind) = first_id(rest)?;
            if !id.is_ascii() && std::str::from_utf8(id).is_err() {
                return None;
            }
            rest = behind;
            count += 1;
        }
        Some(Self { bytes, count })
    }
}

/// The first id, and what comes behind it.
#[inline]
fn first_id(fields: &[u8]) -> Option<(&[u8], &[u8])> {
    let [MESSAGE_IDS, fields @ ..] = fields else {
        return None;
    };
    let (length, rest) = match fields {
        [length @ ..0x80, rest @ ..] => (usize::from(*length), rest),
        [low, high @ ..0x80, rest @ ..] => {
            (usize::from(*low & 0x7F) | usize::from(*high) << 7, rest)
        }
        _ => {
            let mut rest = fields;
            let length = decode_varint(&mut rest).ok()?;
            (usize::try_from(length).ok()?, rest)
        }
    };
    rest.split_at_checked(length)
}

impl FromAnswer for PublishedIds {
    /// Accepts and refuses exactly what the generated type does, and finds the same in it.
    fn from_answer(bytes: Bytes) -> Result<Self, DecodeFault> {
        match Self::scan(bytes.clone()) {
            Some(ids) => Ok(ids),
            None => PublishResponse::from_answer(bytes)
                .map(|response| response.message_ids.into_iter().collect()),
        }
    }
}

impl FromIterator<String> for PublishedIds {
    fn from_iter<I: IntoIterator<Item = String>>(ids: I) -> Self {
        let message_ids: Vec<String> = ids.into_iter().collect();
        let count = message_ids.len();
        let response = PublishResponse { message_ids };
        let bytes = response.encode_to_vec().into();
        Self { bytes, count }
    }
}

impl fmt::Debug for PublishedIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(ids: &[String]) -> Bytes {
        let message_ids = ids.to_vec();
        PublishResponse { message_ids }.encode_to_vec().into()
    }

    #[test]
    fn ids_of_every_length_are_found_in_place() {
        for length in [0, 1, 16, 127, 128, 16_383, 16_384, 70_000] {
            let ids = vec!["7".repeat(length), "é".to_owned(), String::new()];
            let bytes = encoded(&ids);
            let found = PublishedIds::scan(bytes.clone()).unwrap();
            assert_eq!(found.bytes.as_ptr(), bytes.as_ptr(), "nothing is copied");
            assert_eq!(found.len(), 3, "{length}");
            assert_eq!(found.iter().collect::<Vec<_>>(), ids);
            assert_eq!(ids.into_iter().collect::<PublishedIds>(), found);
        }
        assert!(PublishedIds::from_answer(Bytes::new()).unwrap().is_empty());
    }

    #[test]
    fn what_the_service_does_not_send_is_left_to_the_generated_type() {
        // Between two ids a field that this version does not know.
        let bytes = Bytes::from_static(b"\x0A\x01a\x3A\x02??\x0A\x01b");
        assert!(PublishedIds::scan(bytes.clone()).is_none());
        let ids = PublishedIds::from_answer(bytes).unwrap();
        assert_eq!(ids.iter().collect::<Vec<_>>(), ["a", "b"]);
        for wrong in [&b"\x0A\x05ab"[..], b"\x0A\x01\xFF", b"\x0A", b"\x08\x01"] {
            let wrong = Bytes::copy_from_slice(wrong);
            assert!(PublishedIds::from_answer(wrong).is_err());
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_generated_type_on_all_bytes(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..60),
            ids in proptest::collection::vec("[0-9é]{0,5}", 0..4),
            plain in any::<bool>(),
        ) {
            if plain {
                bytes = encoded(&ids).to_vec();
            }
            let bytes = Bytes::from(bytes);
            let expected = PublishResponse::decode(bytes.clone()).ok();
            let found = PublishedIds::from_answer(bytes).ok();
            let found = found.map(|ids| {
                assert_eq!(ids.len(), ids.iter().count());
                ids.iter().map(str::to_owned).collect::<Vec<_>>()
            });
            prop_assert_eq!(found, expected.map(|response| response.message_ids));
        }
    }
}
