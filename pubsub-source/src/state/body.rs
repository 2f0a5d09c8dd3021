//! The encoding of a state, versions 1 and 2: protobuf, so that fields can be added.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::{Buf, Bytes};
use prost::{
    Message,
    encoding::{decode_varint, encode_varint},
};

use super::{Group, Ids, Lease, Part, SourceState, unfinished};
use crate::{
    machine::{AckIds, MessageKey},
    start::SeekId,
};

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
    #[prost(message, repeated, tag = "20")]
    unfinished: Vec<unfinished::BodyUnfinished>,
    #[prost(string, repeated, tag = "3")]
    behind: Vec<String>,
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
    /// The ack id of each number, in the same order; empty where none is saved. None at all unless
    /// the source saves ack ids.
    #[prost(bytes = "bytes", repeated, tag = "10")]
    number_ack_ids: Vec<Bytes>,
    /// The ack id of each text.
    #[prost(bytes = "bytes", repeated, tag = "11")]
    text_ack_ids: Vec<Bytes>,
    /// When the first of their leases ends, since the Unix epoch.
    #[prost(uint64, optional, tag = "12")]
    leased_until_millis: Option<u64>,
}

pub(super) fn encode(state: &SourceState) -> Bytes {
    let part = |part: &Part| BodyPart {
        name: part.name.to_string(),
        groups: part.groups.iter().map(encode_group).collect(),
        unfinished: part.unfinished.iter().map(unfinished::encode).collect(),
        behind: part.behind.iter().map(|key| key.to_string()).collect(),
    };
    let body = Body {
        subscriptions: state.subscriptions.iter().map(part).collect(),
        sought: state
            .sought
            .map(|id| Bytes::copy_from_slice(&id.to_bytes())),
    };
    body.encode_to_vec().into()
}

fn encode_group(group: &Group) -> BodyGroup {
    let (mut numbers, mut texts) = (Vec::new(), Vec::new());
    group.ids.each(|id, ack_id| match id {
        MessageKey::Number(number) => numbers.push((*number, ack_id)),
        MessageKey::Text(text) => texts.push((&**text, ack_id)),
    });
    numbers.sort_unstable();
    texts.sort_unstable();
    let saves_ack_ids = group.ids.saves_ack_ids();
    let copies = |ack_id: &[u8]| saves_ack_ids.then(|| Bytes::copy_from_slice(ack_id));
    let until = match group.lease {
        Lease::Until(until) => until.duration_since(UNIX_EPOCH).ok(),
        Lease::Unknown | Lease::Left(_) => None,
    };
    BodyGroup {
        number_ack_ids: numbers.iter().filter_map(|(_, id)| copies(id)).collect(),
        text_ack_ids: texts.iter().filter_map(|(_, id)| copies(id)).collect(),
        numbers: distances(numbers.into_iter().map(|(number, _)| number)),
        texts: texts.into_iter().map(|(text, _)| text.to_owned()).collect(),
        published_by_nanos: group.published_by,
        remaining_millis: group.remaining.map(whole_millis),
        leased_until_millis: until.map(whole_millis),
    }
}

pub(super) fn decode(instance: &str, body: Bytes) -> Result<SourceState, &'static str> {
    let body = Body::decode(body).map_err(|_| "it is no protobuf message of its kind")?;
    let mut subscriptions = Vec::with_capacity(body.subscriptions.len());
    for part in body.subscriptions {
        let groups: Result<_, _> = part.groups.into_iter().map(decode_group).collect();
        let unfinished: Result<_, _> = part
            .unfinished
            .into_iter()
            .map(unfinished::decode)
            .collect();
        subscriptions.push(Part {
            name: part.name.into(),
            groups: groups?,
            unfinished: unfinished?,
            behind: part.behind.into_iter().map(Into::into).collect(),
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

fn decode_group(group: BodyGroup) -> Result<Group, &'static str> {
    let mut ids = numbers(group.numbers)?;
    let mut ack_ids = AckIds::default();
    let saved = (group.number_ack_ids.len(), group.text_ack_ids.len());
    if saved != (0, 0) && saved != (ids.len(), group.texts.len()) {
        return Err("there is not one ack id for each id");
    }
    for ack_id in group.number_ack_ids.iter().chain(&group.text_ack_ids) {
        if !ack_ids.push(ack_id) {
            return Err("its ack ids are larger than 4 GiB");
        }
    }
    ids.extend(
        group
            .texts
            .iter()
            .map(|text| MessageKey::of(text.as_bytes())),
    );
    let until = group.leased_until_millis.map(Duration::from_millis);
    let until: Option<SystemTime> = until.and_then(|until| UNIX_EPOCH.checked_add(until));
    Ok(Group {
        ids: Ids::Listed(Arc::new(ids), Arc::new(ack_ids)),
        published_by: group.published_by_nanos,
        remaining: group.remaining_millis.map(Duration::from_millis),
        lease: until.map_or(Lease::Unknown, Lease::Until),
    })
}

pub(super) fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn distances(ascending: impl ExactSizeIterator<Item = u64>) -> Bytes {
    let mut bytes = Vec::with_capacity(ascending.len() * 3);
    let mut before = 0;
    for number in ascending {
        encode_varint(number - before, &mut bytes);
        before = number;
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
