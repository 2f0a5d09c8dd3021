//! The encodings of a state. Tags are never reused, and a released version never changes.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use gcp_wire::TopicName;
use prost::Message;

use super::Named;
use crate::{
    message,
    settings::MAX_BYTES,
    staged::{Identity, Quarantined, Staged},
};

/// Everything before the cut was delivered before the state was given out.
const FLUSHED: u32 = 1;
/// The state holds what is to be published.
const STAGED: u32 = 2;

/// Body of format version 1, written by sinks that could only flush.
#[derive(Clone, PartialEq, Message)]
struct BodyV1 {
    /// [`FLUSHED`] is the only mode this format knows.
    #[prost(uint32, tag = "1")]
    mode: u32,
}

/// Body of format version 2.
#[derive(Clone, PartialEq, Message)]
struct BodyV2 {
    #[prost(uint32, tag = "1")]
    mode: u32,
    /// 16 bytes each, big end first. Messages name them by position: nearly all of a state's
    /// messages are of one incarnation and of few topics.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    incarnations: Vec<Bytes>,
    #[prost(string, repeated, tag = "3")]
    topics: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    messages: Vec<MessageV2>,
}

#[derive(Clone, PartialEq, Message)]
struct MessageV2 {
    #[prost(uint32, tag = "1")]
    incarnation: u32,
    #[prost(uint64, tag = "2")]
    sequence: u64,
    #[prost(uint32, tag = "3")]
    topic: u32,
    /// The encoded `PubsubMessage`: these bytes and no others are published.
    #[prost(bytes = "bytes", tag = "4")]
    message: Bytes,
    /// Present for a message in quarantine: what the service said.
    #[prost(string, optional, tag = "5")]
    rejected: Option<String>,
}

/// A value's position among the different ones seen so far.
fn position<T: Ord + Clone>(known: &mut BTreeMap<T, u32>, value: &T) -> u32 {
    let next = u32::try_from(known.len()).expect("a stage holds fewer than 2^32 messages");
    *known.entry(value.clone()).or_insert(next)
}

/// The values in the order of their positions.
fn listed<T>(known: BTreeMap<T, u32>) -> Vec<T> {
    let mut values: Vec<(u32, T)> = known.into_iter().map(|(value, at)| (at, value)).collect();
    values.sort_unstable_by_key(|(at, _)| *at);
    values.into_iter().map(|(_, value)| value).collect()
}

pub(super) fn flushed() -> Bytes {
    let body = BodyV2 {
        mode: FLUSHED,
        ..BodyV2::default()
    };
    body.encode_to_vec().into()
}

pub(super) fn staged(named: &Named) -> Bytes {
    let (mut incarnations, mut topics) = (BTreeMap::new(), BTreeMap::new());
    let mut entry = |identity: Identity, topic: &TopicName, message, rejected| MessageV2 {
        incarnation: position(&mut incarnations, &identity.incarnation),
        sequence: identity.sequence,
        topic: position(&mut topics, topic),
        message,
        rejected,
    };
    let mut messages = Vec::new();
    for kept in &named.quarantined {
        let (message, reason) = (kept.message.clone(), kept.reason.clone());
        messages.push(entry(kept.identity, &kept.topic, message, Some(reason)));
    }
    for staged in named.staged() {
        // Without its frame it has its verdict already.
        if let Some(frame) = staged.frame() {
            let message = message::inside(&frame);
            messages.push(entry(staged.identity, &staged.topic, message, None));
        }
    }
    let body = BodyV2 {
        mode: STAGED,
        incarnations: listed(incarnations)
            .into_iter()
            .map(|incarnation| Bytes::copy_from_slice(&incarnation.to_be_bytes()))
            .collect(),
        topics: listed(topics)
            .into_iter()
            .map(|topic| topic.to_string())
            .collect(),
        messages,
    };
    body.encode_to_vec().into()
}

pub(super) fn decode_v1(body: &Bytes) -> Result<(), &'static str> {
    let decoded = BodyV1::decode(body.clone()).map_err(|_| NO_MESSAGE)?;
    if decoded.mode != FLUSHED {
        return Err(UNKNOWN_MODE);
    }
    whole(&decoded, body)
}

/// What a state names; none for that of a flushing sink.
pub(super) fn decode_v2(body: &Bytes) -> Result<Option<Named>, &'static str> {
    let decoded = BodyV2::decode(body.clone()).map_err(|_| NO_MESSAGE)?;
    whole(&decoded, body)?;
    match decoded.mode {
        FLUSHED if decoded.messages.is_empty() => return Ok(None),
        FLUSHED => return Err("a flushing sink's state names messages"),
        STAGED => {}
        _ => return Err(UNKNOWN_MODE),
    }
    let incarnations = decoded
        .incarnations
        .iter()
        .map(|bytes| <[u8; 16]>::try_from(bytes.as_ref()).map(u128::from_be_bytes))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| "an incarnation does not have 16 bytes")?;
    let topics = decoded
        .topics
        .iter()
        .map(|topic| topic.parse::<TopicName>())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| "a topic's name does not parse")?;
    let mut named = Named::default();
    for entry in decoded.messages {
        let topic = topics
            .get(entry.topic as usize)
            .ok_or("a message names a topic that is not listed")?;
        let incarnation = incarnations
            .get(entry.incarnation as usize)
            .ok_or("a message names an incarnation that is not listed")?;
        let identity = Identity {
            incarnation: *incarnation,
            sequence: entry.sequence,
        };
        let staged = Staged::read(identity, topic.clone(), &entry.message)
            .map_err(|_| "a message does not decode")?;
        if message::topic_header_len(topic.as_str()) + staged.bytes > MAX_BYTES {
            return Err("a message is larger than a request");
        }
        match entry.rejected {
            Some(reason) => named.quarantined.push(Arc::new(Quarantined {
                identity,
                topic: topic.clone(),
                // Copied: a slice would hold the whole state in memory.
                message: Bytes::copy_from_slice(&entry.message),
                reason,
            })),
            None => named.read.push(Arc::new(staged)),
        }
    }
    Ok(Some(named))
}

const NO_MESSAGE: &str = "the body is not a message";
const UNKNOWN_MODE: &str = "the way of settling is not known";

/// prost skips unknown fields. Here they could be messages that would then be lost unseen.
fn whole(decoded: &impl Message, body: &Bytes) -> Result<(), &'static str> {
    if decoded.encode_to_vec() == *body {
        Ok(())
    } else {
        Err("the body holds more than this format has")
    }
}
