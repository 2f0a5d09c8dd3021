//! The encoding of messages that were not handed out whole, since version 2.

use std::time::Duration;

use prost::Message;

use crate::machine::{MessageKey, Unfinished};

/// A message of which some records were handed out.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BodyUnfinished {
    #[prost(uint64, optional, tag = "1")]
    number: Option<u64>,
    /// The id where it is no number.
    #[prost(string, optional, tag = "2")]
    text: Option<String>,
    #[prost(sfixed64, tag = "3")]
    published_nanos: i64,
    #[prost(uint64, tag = "4")]
    records: u64,
    #[prost(uint64, tag = "5")]
    remaining_millis: u64,
}

pub(super) fn encode(unfinished: &Unfinished) -> BodyUnfinished {
    let (number, text) = match &unfinished.key {
        MessageKey::Number(number) => (Some(*number), None),
        MessageKey::Text(text) => (None, Some(text.to_string())),
    };
    BodyUnfinished {
        number,
        text,
        published_nanos: unfinished.published,
        records: unfinished.records,
        remaining_millis: super::body::whole_millis(unfinished.remaining),
    }
}

pub(super) fn decode(body: BodyUnfinished) -> Result<Unfinished, &'static str> {
    let key = match (body.number, body.text) {
        (Some(number), None) => MessageKey::Number(number),
        (None, Some(text)) => MessageKey::of(text.as_bytes()),
        (None, None) | (Some(_), Some(_)) => return Err("an unfinished message has not one id"),
    };
    if body.records == 0 {
        return Err("an unfinished message was not begun");
    }
    Ok(Unfinished {
        key,
        published: body.published_nanos,
        records: body.records,
        remaining: Duration::from_millis(body.remaining_millis),
    })
}
