//! The encoding of a state, versions 1 and 2: protobuf, so that fields can be added.

use std::{sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use prost::{
    Message,
    encoding::{decode_varint, encode_varint},
};

use super::{Group, Ids, Part, SourceState};
use crate::{machine::MessageKey, start::SeekId};

#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(message, repeated, tag = "1")]
    subscriptions: Vec<BodyPart>,
    /// Since version 2.
    #[prost(bytes = "bytes", optional, tag = "2")]
    sought: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct BodyPart {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    groups: Vec<BodyGroup>,
}

#[derive(Clone, PartialEq, Message)]
struct BodyGroup {
    /// Numeric ids, ascending, each as a varint of its distance to the one before.
    #[prost(bytes = "bytes", tag = "1")]
    numbers: Bytes,
    #[prost(string, repeated, tag = "2")]
    texts: Vec<String>,
    #[prost(sfixed64, tag = "3")]
    published_by_nanos: i64,
    #[prost(uint64, optional, tag = "4")]
    remaining_millis: Option<u64>,
}

pub(super) fn encode(state: &SourceState) -> Bytes {
    let group = |group: &Group| {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        group.ids.each(|id| match id {
            MessageKey::Number(number) => numbers.push(*number),
            MessageKey::Text(text) => texts.push(text.to_string()),
        });
        numbers.sort_unstable();
        texts.sort_unstable();
        BodyGroup {
            numbers: distances(&numbers),
            texts,
            published_by_nanos: group.published_by,
            remaining_millis: group.remaining.map(whole_millis),
        }
    };
    let part = |part: &Part| BodyPart {
        name: part.name.to_string(),
        groups: part.groups.iter().map(group).collect(),
    };
    let body = Body {
        subscriptions: state.subscriptions.iter().map(part).collect(),
        sought: state
            .sought
            .map(|id| Bytes::copy_from_slice(&id.to_bytes())),
    };
    body.encode_to_vec().into()
}

pub(super) fn decode(instance: &str, body: Bytes) -> Result<SourceState, &'static str> {
    let body = Body::decode(body).map_err(|_| "it is no protobuf message of its kind")?;
    let mut subscriptions = Vec::with_capacity(body.subscriptions.len());
    for part in body.subscriptions {
        let mut groups = Vec::with_capacity(part.groups.len());
        for group in part.groups {
            let mut ids = numbers(group.numbers)?;
            ids.extend(group.texts.iter().map(|text| MessageKey::of(text)));
            groups.push(Group {
                ids: Ids::Listed(Arc::new(ids)),
                published_by: group.published_by_nanos,
                remaining: group.remaining_millis.map(Duration::from_millis),
            });
        }
        subscriptions.push(Part {
            name: part.name.into(),
            groups,
        });
    }
    let sought = body.sought.map(|id| SeekId::from_bytes(&id));
    if sought == Some(None) {
        return Err("the number of the seek has a wrong length");
    }
    Ok(SourceState {
        instance: instance.into(),
        subscriptions,
        sought: sought.flatten(),
    })
}

fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn distances(ascending: &[u64]) -> Bytes {
    let mut bytes = Vec::with_capacity(ascending.len() * 3);
    let mut before = 0;
    for number in ascending {
        encode_varint(number - before, &mut bytes);
        before = *number;
    }
    bytes.into()
}

fn numbers(mut bytes: Bytes) -> Result<Vec<MessageKey>, &'static str> {
    let mut numbers = Vec::with_capacity(bytes.len() / 3);
    let mut before = 0u64;
    while bytes.has_remaining() {
        let distance = decode_varint(&mut bytes).map_err(|_| "a list of ids is cut short")?;
        before = before
            .checked_add(distance)
            .ok_or("a list of ids is out of range")?;
        numbers.push(MessageKey::Number(before));
    }
    Ok(numbers)
}
