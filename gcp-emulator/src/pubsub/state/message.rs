//! A published message, shared by everything that holds it.

use std::sync::Arc;

use prost::Message;

use super::Refusal;
use crate::pubsub::proto::PubsubMessage;
use crate::time::Time;

/// A message as it was stored: id and publish time given.
#[derive(Debug)]
pub(super) struct Stored {
    /// Its place in the order of publication over all topics.
    pub(super) seq: u64,
    pub(super) id: Arc<str>,
    pub(super) key: Arc<str>,
    pub(super) at: Time,
    /// Encoded bytes.
    pub(super) size: usize,
    pub(super) message: Arc<PubsubMessage>,
}

/// The first message id: 16 digits, as the service's have 16 or 17.
const FIRST_ID: u64 = 7_318_000_000_000_000;

/// The distance between ids; a prime, so that nobody takes them for a count.
const ID_STEP: u64 = 7919;

impl Stored {
    pub(super) fn new(seq: u64, at: Time, mut message: PubsubMessage) -> Self {
        let id = FIRST_ID.wrapping_add(seq.wrapping_mul(ID_STEP)).to_string();
        // What a publisher puts into these two is overwritten (measured on Google's emulator).
        message.message_id.clone_from(&id);
        message.publish_time = Some(at.to_timestamp());
        let key: Arc<str> = Arc::from(message.ordering_key.as_str());
        Self {
            seq,
            id: id.into(),
            key,
            at,
            size: message.encoded_len(),
            message: Arc::new(message),
        }
    }
}

/// Limits of a publish request (Pub/Sub quotas and limits, "Resource limits").
const MESSAGES: usize = 1000;
const REQUEST_BYTES: usize = 10_000_000;
const ATTRIBUTES: usize = 100;
const ATTRIBUTE_KEY: usize = 256;
const ATTRIBUTE_VALUE: usize = 1024;
const ORDERING_KEY: usize = 1024;

/// Attributes that Google's own clients publish although keys with `goog` are reserved.
const TRACE_KEYS: [&str; 2] = ["googclient_traceparent", "googclient_tracestate"];

/// Checks a whole publish request; one bad message refuses all of it.
pub(super) fn check(topic: &str, messages: &[PubsubMessage]) -> Result<(), Refusal> {
    if messages.is_empty() {
        return Err(Refusal::NoMessages);
    }
    if messages.len() > MESSAGES {
        return Err(Refusal::TooManyMessages {
            count: messages.len(),
            limit: MESSAGES,
        });
    }
    let size = field(topic.len())
        + messages
            .iter()
            .map(|message| field(message.encoded_len()))
            .sum::<usize>();
    if size > REQUEST_BYTES {
        return Err(Refusal::RequestTooLarge {
            size,
            limit: REQUEST_BYTES,
        });
    }
    let key = messages
        .first()
        .map_or("", |message| message.ordering_key.as_str());
    for message in messages {
        if message.ordering_key != key {
            return Err(Refusal::MixedOrderingKeys);
        }
        check_one(message)?;
    }
    Ok(())
}

/// The encoded bytes of a length-delimited field with a tag below 16.
pub(super) fn field(len: usize) -> usize {
    1 + prost::length_delimiter_len(len) + len
}

fn check_one(message: &PubsubMessage) -> Result<(), Refusal> {
    if message.data.is_empty() && message.attributes.is_empty() {
        return Err(Refusal::EmptyMessage);
    }
    let limited = |what, size, limit| {
        if size > limit {
            Err(Refusal::MessageField { what, size, limit })
        } else {
            Ok(())
        }
    };
    limited("ordering_key", message.ordering_key.len(), ORDERING_KEY)?;
    limited("attribute_count", message.attributes.len(), ATTRIBUTES)?;
    // Sorted, so that of several offenders always the same one is named.
    let mut attributes: Vec<(&String, &String)> = message.attributes.iter().collect();
    attributes.sort_unstable();
    for (key, value) in attributes {
        let reserved = key.starts_with("goog") && !TRACE_KEYS.contains(&key.as_str());
        if key.is_empty() || reserved {
            return Err(Refusal::AttributeKey { key: key.clone() });
        }
        limited("attribute_key_size", key.len(), ATTRIBUTE_KEY)?;
        limited("attribute_value_size", value.len(), ATTRIBUTE_VALUE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(size: usize) -> PubsubMessage {
        PubsubMessage {
            data: vec![b'a'; size].into(),
            ..PubsubMessage::default()
        }
    }

    fn with_attribute(key: String, value: String) -> PubsubMessage {
        PubsubMessage {
            attributes: [(key, value)].into(),
            ..PubsubMessage::default()
        }
    }

    #[test]
    fn the_size_that_counts_is_the_encoded_request() {
        use crate::pubsub::proto::PublishRequest;
        let topic = "projects/p/topics/abc";
        for size in [
            9_999_000, 9_999_960, 9_999_961, 9_999_962, 9_999_963, 9_999_964, 10_000_000,
        ] {
            let request = PublishRequest {
                topic: topic.to_owned(),
                messages: vec![message(size)],
            };
            let fits = request.encoded_len() <= 10_000_000;
            assert_eq!(check(topic, &request.messages).is_ok(), fits, "{size}");
        }
    }

    #[test]
    fn attributes_are_limited_in_bytes_not_in_characters() {
        assert!(check_one(&with_attribute("k".repeat(256), "é".repeat(512))).is_ok());
        assert!(check_one(&with_attribute("k".repeat(257), String::new())).is_err());
        assert!(check_one(&with_attribute("k".into(), "é".repeat(513))).is_err());
        assert!(check_one(&with_attribute(String::new(), "v".into())).is_err());
        assert!(check_one(&with_attribute("googclient_x".into(), "v".into())).is_err());
        for key in TRACE_KEYS {
            assert!(check_one(&with_attribute(key.into(), "v".into())).is_ok());
        }
        let many = |count: usize| PubsubMessage {
            attributes: (0..count)
                .map(|n| (format!("k{n}"), String::new()))
                .collect(),
            ..PubsubMessage::default()
        };
        assert!(check_one(&many(100)).is_ok());
        assert!(check_one(&many(101)).is_err());
    }

    #[test]
    fn a_message_needs_data_or_an_attribute() {
        let keyed = PubsubMessage {
            ordering_key: "k".into(),
            ..PubsubMessage::default()
        };
        assert_eq!(check_one(&keyed), Err(Refusal::EmptyMessage));
        assert!(check_one(&with_attribute("k".into(), String::new())).is_ok());
    }

    #[test]
    fn one_request_has_one_ordering_key() {
        let keyed = |key: &str| PubsubMessage {
            ordering_key: key.into(),
            ..message(1)
        };
        assert!(check("t", &[keyed("a"), keyed("a")]).is_ok());
        assert_eq!(
            check("t", &[keyed("a"), keyed("b")]),
            Err(Refusal::MixedOrderingKeys)
        );
        assert_eq!(
            check("t", &[keyed("a"), keyed("")]),
            Err(Refusal::MixedOrderingKeys)
        );
        let long = keyed(&"k".repeat(1025));
        assert!(matches!(
            check_one(&long),
            Err(Refusal::MessageField {
                what: "ordering_key",
                ..
            })
        ));
    }

    #[test]
    fn ids_have_sixteen_digits_and_differ() {
        let id = |seq| Stored::new(seq, Time::UNIX_EPOCH, message(1)).id;
        assert_eq!(id(0).len(), 16);
        assert_eq!(id(10_000_000_000).len(), 16);
        assert_ne!(id(0), id(1));
    }
}
