//! The service's limits on one message, checked before it joins a batch.
//!
//! The service refuses a request as a whole and does not say which message was at fault, so a
//! message that is known to be refused must never join its neighbours.

use connector_core::trace::{TRACEPARENT, TRACESTATE};

use super::{PublishMessage, frame_len};

/// Attributes per message (Pub/Sub quotas, "Resource limits").
const MAX_ATTRIBUTES: usize = 100;
/// Bytes of an attribute's key.
const MAX_KEY: usize = 256;
/// Bytes of an attribute's value.
const MAX_VALUE: usize = 1024;
/// Bytes of an ordering key.
const MAX_ORDERING_KEY: usize = 1024;
/// What attribute keys must not begin with: kept for the service itself.
const RESERVED: &str = "goog";
/// Keys that Google's own clients write although they begin with it.
const TRACES: [&str; 2] = [TRACEPARENT, TRACESTATE];

/// A limit of the service that a message breaks.
///
/// Lengths are in bytes, as the service counts them, not in characters. The source of a
/// [`Rejected`](connector_core::Rejected) whose reason is
/// [`Limit`](connector_core::RejectedReason::Limit).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// There is neither payload nor attribute. An ordering key alone does not make a message.
    #[error("the message has neither payload nor attributes; Pub/Sub stores no empty messages")]
    Empty,
    /// The message does not fit into a request of its own.
    #[error(
        "the message makes a request of {bytes} bytes, Pub/Sub takes {limit}; publish a reference to the content instead"
    )]
    TooLarge {
        /// The encoded size of a request with this message alone.
        bytes: usize,
        /// The largest request.
        limit: usize,
    },
    /// There are more attributes than the service takes.
    #[error("the message has {count} attributes, Pub/Sub takes {MAX_ATTRIBUTES}")]
    TooManyAttributes {
        /// The number of attributes.
        count: usize,
    },
    /// An attribute has no name.
    #[error("an attribute of the message has an empty key")]
    EmptyKey,
    /// The name of an attribute is too long.
    #[error("the attribute key {key:?} has {bytes} bytes, Pub/Sub takes {MAX_KEY}")]
    KeyTooLong {
        /// The beginning of the key.
        key: String,
        /// Its length.
        bytes: usize,
    },
    /// The name of an attribute begins with what is reserved for the service.
    #[error("the attribute key {key:?} begins with \"{RESERVED}\", which Pub/Sub reserves")]
    ReservedKey {
        /// The key.
        key: String,
    },
    /// The value of an attribute is too long.
    #[error("the value of attribute {key:?} has {bytes} bytes, Pub/Sub takes {MAX_VALUE}")]
    ValueTooLong {
        /// The key.
        key: String,
        /// The length of its value.
        bytes: usize,
    },
    /// The ordering key is too long.
    #[error("the ordering key has {bytes} bytes, Pub/Sub takes {MAX_ORDERING_KEY}")]
    OrderingKeyTooLong {
        /// Its length.
        bytes: usize,
    },
}

/// Checks a message that is to go to a topic whose header has `header` bytes, and answers its
/// frame's length.
pub(crate) fn check(
    message: &PublishMessage,
    header: usize,
    request_limit: usize,
) -> Result<usize, MessageError> {
    if message.payload.is_empty() && message.attributes().is_empty() {
        return Err(MessageError::Empty);
    }
    let attributes = message.attributes();
    let count = attributes.len();
    if count > MAX_ATTRIBUTES {
        return Err(MessageError::TooManyAttributes { count });
    }
    for (key, value) in attributes {
        check_attribute(key, value)?;
    }
    if message.ordering_key.len() > MAX_ORDERING_KEY {
        return Err(MessageError::OrderingKeyTooLong {
            bytes: message.ordering_key.len(),
        });
    }
    let frame = frame_len(message);
    let bytes = header + frame;
    if bytes > request_limit {
        return Err(MessageError::TooLarge {
            bytes,
            limit: request_limit,
        });
    }
    Ok(frame)
}

fn check_attribute(key: &str, value: &str) -> Result<(), MessageError> {
    if key.is_empty() {
        return Err(MessageError::EmptyKey);
    }
    if key.len() > MAX_KEY {
        return Err(MessageError::KeyTooLong {
            key: key.chars().take(64).collect(),
            bytes: key.len(),
        });
    }
    if key.starts_with(RESERVED) && !TRACES.contains(&key) {
        return Err(MessageError::ReservedKey {
            key: key.to_owned(),
        });
    }
    if value.len() > MAX_VALUE {
        return Err(MessageError::ValueTooLong {
            key: key.to_owned(),
            bytes: value.len(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: usize = 25;
    const LIMIT: usize = 10_000_000;

    fn verdict(message: &PublishMessage) -> Result<(), MessageError> {
        check(message, HEADER, LIMIT).map(|_| ())
    }

    fn with(key: &str, value: &str) -> PublishMessage {
        PublishMessage::new("x").attribute(key, value)
    }

    fn with_attributes(count: usize, key: usize, value: usize) -> PublishMessage {
        (0..count).fold(PublishMessage::new("x"), |message, n| {
            message.attribute(format!("{n:0>key$}"), "v".repeat(value))
        })
    }

    #[test]
    fn a_message_at_every_limit_passes() {
        assert_eq!(verdict(&with_attributes(100, 256, 1024)), Ok(()));
        assert_eq!(verdict(&with("k", &"é".repeat(512))), Ok(()));
        assert_eq!(
            verdict(&PublishMessage::new("x").ordering_key("k".repeat(1024))),
            Ok(())
        );
        let attributes_only = PublishMessage::default().attribute("k", "v");
        assert_eq!(verdict(&attributes_only), Ok(()));
    }

    #[test]
    fn one_byte_above_a_limit_is_refused_with_key_and_size() {
        assert_eq!(
            verdict(&with_attributes(101, 3, 1)),
            Err(MessageError::TooManyAttributes { count: 101 })
        );
        assert_eq!(
            verdict(&with(&"k".repeat(257), "v")),
            Err(MessageError::KeyTooLong {
                key: "k".repeat(64),
                bytes: 257
            })
        );
        assert_eq!(
            verdict(&with("k", &"v".repeat(1025))),
            Err(MessageError::ValueTooLong {
                key: "k".into(),
                bytes: 1025
            })
        );
        // 513 characters of two bytes: lengths count bytes.
        assert_eq!(
            verdict(&with("k", &"é".repeat(513))),
            Err(MessageError::ValueTooLong {
                key: "k".into(),
                bytes: 1026
            })
        );
        assert_eq!(
            verdict(&PublishMessage::new("x").ordering_key("k".repeat(1025))),
            Err(MessageError::OrderingKeyTooLong { bytes: 1025 })
        );
    }

    #[test]
    fn empty_and_reserved_keys_are_refused() {
        assert_eq!(verdict(&with("", "v")), Err(MessageError::EmptyKey));
        for key in ["goog-x", "googclient_x", "goog"] {
            assert_eq!(
                verdict(&with(key, "v")),
                Err(MessageError::ReservedKey { key: key.into() })
            );
        }
        assert_eq!(verdict(&with("go", "v")), Ok(()));
    }

    #[test]
    fn an_ordering_key_alone_is_an_empty_message() {
        assert_eq!(
            verdict(&PublishMessage::default().ordering_key("k")),
            Err(MessageError::Empty)
        );
    }

    #[test]
    fn the_size_limit_counts_the_whole_request() {
        // Message of n bytes: payload tag and length (1 + 4), message tag and length (1 + 4).
        let fits = LIMIT - HEADER - 10;
        assert_eq!(verdict(&PublishMessage::new(vec![b'a'; fits])), Ok(()));
        assert_eq!(
            verdict(&PublishMessage::new(vec![b'a'; fits + 1])),
            Err(MessageError::TooLarge {
                bytes: LIMIT + 1,
                limit: LIMIT
            })
        );
    }
}
