//! The encoding of a prepared job, version 1: protobuf, so that fields can be added.

use bytes::Bytes;
use gcp_wire::SubscriptionName;
use prost::Message;

use super::Prepared;
use crate::{decode::DecodeFailure, plan::SplitPlan, start::SeekId};

#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(string, repeated, tag = "1")]
    subscriptions: Vec<String>,
    #[prost(uint64, tag = "2")]
    readers: u64,
    #[prost(bool, tag = "3")]
    ordered: bool,
    #[prost(bytes = "bytes", optional, tag = "4")]
    sought: Option<Bytes>,
    /// The number of a policy.
    #[prost(uint32, tag = "5")]
    decode_failure: u32,
}

pub(super) fn encode(prepared: &Prepared) -> Bytes {
    let names = prepared.plan.subscriptions().iter();
    let sought = prepared.sought.map(SeekId::to_bytes);
    let body = Body {
        subscriptions: names.map(ToString::to_string).collect(),
        readers: u64::try_from(prepared.plan.readers()).unwrap_or(u64::MAX),
        ordered: prepared.plan.is_ordered(),
        sought: sought.map(|id| Bytes::copy_from_slice(&id)),
        decode_failure: match prepared.decode_failure {
            DecodeFailure::Fail => 0,
            DecodeFailure::Drop => 1,
            DecodeFailure::Nack => 2,
        },
    };
    body.encode_to_vec().into()
}

pub(super) fn decode(instance: &str, body: Bytes) -> Result<Prepared, &'static str> {
    let body = Body::decode(body).map_err(|_| "it is no protobuf message of its kind")?;
    let names = body.subscriptions.iter();
    let names: Result<Vec<SubscriptionName>, _> = names.map(|name| name.parse()).collect();
    let names = names.map_err(|_| "a subscription's name is none")?;
    let readers = usize::try_from(body.readers).map_err(|_| "there are too many readers")?;
    let plan = if body.ordered {
        SplitPlan::ordered(names, readers)
    } else {
        SplitPlan::new(names, readers)
    };
    let sought = body.sought.map(|id| SeekId::from_bytes(&id));
    if sought == Some(None) {
        return Err("the number of the seek has a wrong length");
    }
    let decode_failure = match body.decode_failure {
        0 => DecodeFailure::Fail,
        1 => DecodeFailure::Drop,
        2 => DecodeFailure::Nack,
        _ => return Err("what happens to undecodable messages is not known to this build"),
    };
    Ok(Prepared {
        plan: plan.map_err(|_| "its plan is none")?,
        instance: instance.into(),
        sought: sought.flatten(),
        decode_failure,
    })
}
