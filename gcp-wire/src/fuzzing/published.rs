//! The answer to a publish request, read in place and by the generated type.

use bytes::Bytes;
use prost::Message as _;

use crate::{DecodeFault, PublishedIds, method::FromAnswer as _, proto::pubsub::PublishResponse};

/// Whatever the bytes of an answer are, the scan finds the ids that the generated type finds, or
/// refuses them for the same reason; and ids that are put together again are the same ids.
pub fn published_ids(bytes: &[u8]) {
    agree_by(bytes, PublishedIds::from_answer);
}

pub(super) fn agree_by(bytes: &[u8], read: impl Fn(Bytes) -> Result<PublishedIds, DecodeFault>) {
    let ours = read(Bytes::copy_from_slice(bytes));
    let theirs = PublishResponse::decode(bytes).map_err(|error| error.to_string());
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours.len(), theirs.message_ids.len());
            assert_eq!(ours.is_empty(), theirs.message_ids.is_empty());
            // Not in one step: the length above says that the scan stops nowhere in between.
            assert!(
                ours.iter()
                    .eq(theirs.message_ids.iter().map(String::as_str))
            );
            let again: PublishedIds = theirs.message_ids.into_iter().collect();
            assert!(again.iter().eq(ours.iter()));
        }
        (Err(DecodeFault::Malformed(ours)), Err(theirs)) => assert_eq!(ours, theirs),
        (ours, theirs) => panic!("{ours:?} is not {theirs:?}"),
    }
}
