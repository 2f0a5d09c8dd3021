//! The encoding of a record, version 1: protobuf, so that fields can be added.

use std::time::Duration;

use bytes::Bytes;
use gcp_wire::SubscriptionName;
use prost::{Message, Oneof};

use super::{Seek, SeekId, StartRecord};
use crate::start::SeekTarget;

#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(string, repeated, tag = "1")]
    subscriptions: Vec<String>,
    #[prost(bool, tag = "2")]
    done: bool,
    #[prost(message, optional, tag = "3")]
    seek: Option<BodySeek>,
}

#[derive(Clone, PartialEq, Message)]
struct BodySeek {
    #[prost(bytes = "bytes", tag = "1")]
    id: Bytes,
    #[prost(oneof = "BodyTarget", tags = "2, 3")]
    target: Option<BodyTarget>,
}

#[derive(Clone, PartialEq, Oneof)]
enum BodyTarget {
    #[prost(message, tag = "2")]
    Time(BodyTime),
    #[prost(string, tag = "3")]
    Snapshot(String),
}

/// Since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Message)]
struct BodyTime {
    #[prost(uint64, tag = "1")]
    seconds: u64,
    #[prost(uint32, tag = "2")]
    nanos: u32,
}

pub(super) fn encode(record: &StartRecord) -> Bytes {
    let seek = |seek: &Seek| BodySeek {
        id: Bytes::copy_from_slice(&seek.id.to_bytes()),
        target: Some(match &seek.target {
            SeekTarget::Time(time) => BodyTarget::Time(BodyTime {
                seconds: time.as_secs(),
                nanos: time.subsec_nanos(),
            }),
            SeekTarget::Snapshot(name) => BodyTarget::Snapshot(name.as_str().to_owned()),
        }),
    };
    let names = record.subscriptions.iter();
    let body = Body {
        subscriptions: names.map(ToString::to_string).collect(),
        done: record.done,
        seek: record.seek.as_ref().map(seek),
    };
    body.encode_to_vec().into()
}

pub(super) fn decode(instance: &str, body: Bytes) -> Result<StartRecord, &'static str> {
    let body = Body::decode(body).map_err(|_| "it is no protobuf message of its kind")?;
    let seek = body.seek.map(seek).transpose()?;
    if !body.done && seek.is_none() {
        return Err("it intends to seek, and does not say where to");
    }
    let names = body.subscriptions.iter();
    let names: Result<Vec<SubscriptionName>, _> = names.map(|name| name.parse()).collect();
    Ok(StartRecord {
        instance: instance.into(),
        subscriptions: names.map_err(|_| "a subscription's name is none")?,
        seek,
        done: body.done,
    })
}

fn seek(seek: BodySeek) -> Result<Seek, &'static str> {
    let id = SeekId::from_bytes(&seek.id).ok_or("the number of the seek has a wrong length")?;
    let target = match seek.target.ok_or("a seek has no target")? {
        BodyTarget::Time(time) if time.nanos < 1_000_000_000 => {
            SeekTarget::Time(Duration::new(time.seconds, time.nanos))
        }
        BodyTarget::Time(_) => return Err("a moment is out of range"),
        BodyTarget::Snapshot(name) => {
            SeekTarget::Snapshot(name.parse().map_err(|_| "a snapshot's name is none")?)
        }
    };
    Ok(Seek { id, target })
}
