//! The targets over their corpora, and shown to find a mistake.

use std::str::FromStr;

use bytes::{Buf as _, Bytes};
use fuzz_corpus::{Room, Target};
use http::HeaderMap;

use super::{names, published, pull, pulled};
use crate::method::FromAnswer as _;
use crate::{DecodeFault, Endpoint, NameError, PublishedIds, PulledResponse, TopicName};

#[test]
fn no_text_given_as_a_name_breaks_it() {
    Target::new("resource_names", super::resource_names).check();
}

#[test]
fn no_text_given_as_an_endpoint_breaks_it() {
    Target::new("endpoint", super::endpoint).check();
}

#[test]
fn no_answer_to_a_pull_breaks_it() {
    Target::new("pull_responses", super::pull_responses).check();
}

#[test]
fn no_response_of_a_pull_breaks_it() {
    Target::new("pulled_response", super::pulled_response).check();
}

#[test]
fn no_answer_to_a_publish_request_breaks_it() {
    Target::new("published_ids", super::published_ids)
        .room(ID_ROOM)
        .check();
}

/// An empty id takes two bytes, and 24 of a `String` in a list that is three times as long while it
/// grows; that is the generated type's. A text for a refusal comes on top.
const ID_ROOM: Room = Room::new(4 << 10, 48);

/// A name that is looked at too little: the id may be anything.
#[derive(Debug)]
struct Lenient(String);

impl FromStr for Lenient {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.split('/').collect::<Vec<_>>()[..] {
            ["projects", project, "topics", _] => {
                TopicName::new(project, "orders").map(|_| Self(text.to_owned()))
            }
            _ => text.parse::<TopicName>().map(|_| Self(text.to_owned())),
        }
    }
}

impl AsRef<str> for Lenient {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[test]
fn a_name_whose_id_is_not_checked_is_found() {
    let found = Target::new("resource_names", |bytes| {
        names::check::<Lenient>(&String::from_utf8_lossy(bytes), &["projects", "topics"]);
    });
    assert!(found.find().is_some());
}

#[test]
fn an_endpoint_that_drops_what_stands_before_the_host_is_found() {
    let found = Target::new("endpoint", |bytes| {
        names::endpoints_by(bytes, |text| {
            let (_, host) = text.rsplit_once('@').unwrap_or(("", text));
            Endpoint::emulator(host)
        });
    });
    assert!(found.find().is_some());
}

/// Takes every frame for whole messages, and forgets what is left over.
fn forgetful(frames: Vec<Bytes>, _: &HeaderMap) -> pull::Brought {
    let mut brought = pull::Brought::default();
    for mut frame in frames {
        while frame.len() >= 5 {
            let length = frame.slice(1..5).get_u32() as usize;
            let Some(message) = frame.get(5..5 + length) else {
                break;
            };
            if let Ok(response) = PulledResponse::decode(Bytes::copy_from_slice(message)) {
                brought.take(&response);
            }
            frame.advance(5 + length);
        }
    }
    brought
}

#[test]
fn a_reader_that_forgets_a_begun_message_is_found() {
    let found = Target::new("pull_responses", |bytes| pull::pulls_by(bytes, forgetful)).find();
    assert!(found.is_some());
}

/// Reads what there is of a response whose end is missing.
fn generous(bytes: Bytes) -> Result<PulledResponse, DecodeFault> {
    let whole = PulledResponse::decode(bytes.clone());
    let mut ends = (0..bytes.len()).rev();
    whole.or_else(|fault| {
        let most = ends.find_map(|end| PulledResponse::decode(bytes.slice(..end)).ok());
        most.ok_or(fault)
    })
}

#[test]
fn a_codec_that_takes_a_cut_response_for_a_whole_one_is_found() {
    let target = |bytes: &[u8]| pulled::agree_by(bytes, generous);
    assert!(Target::new("pulled_response", target).find().is_some());
}

/// Reads the ids up to the first field that it does not know.
fn short_sighted(bytes: Bytes) -> Result<PublishedIds, DecodeFault> {
    let whole = PublishedIds::from_answer(bytes.clone())?;
    let unknown = |at: &usize| {
        let ids = PublishedIds::from_answer(bytes.slice(..*at));
        ids.is_ok_and(|ids| bytes[*at] != 0x0A && !ids.is_empty())
    };
    match (0..bytes.len()).find(unknown) {
        Some(at) => PublishedIds::from_answer(bytes.slice(..at)),
        None => Ok(whole),
    }
}

#[test]
fn a_scan_that_ends_at_an_unknown_field_is_found() {
    let target = |bytes: &[u8]| published::agree_by(bytes, short_sighted);
    assert!(Target::new("published_ids", target).find().is_some());
}

/// Makes room for what a length announces, before it looks whether that much has come.
fn trusting(bytes: Bytes) -> Result<PublishedIds, DecodeFault> {
    let mut fields = bytes.as_ref();
    if fields.first() == Some(&0x0A) {
        fields.advance(1);
        let length = prost::encoding::decode_varint(&mut fields).unwrap_or(0);
        // Up to what one machine has, so that the test itself survives it.
        let length = usize::try_from(length.min(1 << 20)).unwrap_or(0);
        drop(Vec::<u8>::with_capacity(length));
    }
    PublishedIds::from_answer(bytes)
}

#[test]
fn a_scan_that_makes_room_for_an_announced_length_is_found() {
    let target = |bytes: &[u8]| published::agree_by(bytes, trusting);
    let found = Target::new("published_ids", target).room(ID_ROOM).find();
    assert!(found.is_some());
}
