//! The encoded target of an HTTP task.

use std::collections::BTreeMap;

use bytes::Bytes;
use gcp_wire::{QueueName, proto::tasks::http_request::AuthorizationHeader};
use prost::Message;
use prost::encoding::{
    WireType, btree_map, encode_key, encode_varint, encoded_len_varint, key_len, string,
};

use super::dispatch::Dispatch;
use crate::request::Request;

/// Fields of `Task`.
const NAME: u32 = 1;
const HTTP_REQUEST: u32 = 3;

/// Fields of `HttpRequest`; the token has its own number.
const URL: u32 = 1;
const METHOD: u32 = 2;
const HEADERS: u32 = 3;
const BODY: u32 = 4;

/// `HttpRequest`, as it goes out.
pub(super) struct Target {
    pub(super) url: String,
    /// The method's number.
    pub(super) method: i32,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Bytes,
    pub(super) token: Option<AuthorizationHeader>,
}

impl Target {
    pub(super) fn into_request(self, queue: &QueueName, name: &str, dispatch: Dispatch) -> Request {
        let rest = (!dispatch.is_default()).then(|| dispatch.into_rest());
        let rest_len = rest.as_ref().map_or(0, Message::encoded_len);
        let target_len = self.len();
        let target = key_len(HTTP_REQUEST) + encoded_len_varint(target_len as u64) + target_len;
        Request::encode(queue, text_len(NAME, name) + target + rest_len, |bytes| {
            put(NAME, name.as_bytes(), bytes);
            encode_key(HTTP_REQUEST, WireType::LengthDelimited, bytes);
            encode_varint(target_len as u64, bytes);
            self.encode(bytes);
            // Its fields have higher numbers.
            if let Some(rest) = rest {
                rest.encode_raw(bytes);
            }
        })
    }

    fn len(&self) -> usize {
        let token = self.token.as_ref();
        text_len(URL, &self.url)
            + key_len(METHOD)
            + encoded_len_varint(number(self.method))
            + btree_map::encoded_len(
                string::encoded_len,
                string::encoded_len,
                HEADERS,
                &self.headers,
            )
            + bytes_len(BODY, self.body.len())
            + token.map_or(0, AuthorizationHeader::encoded_len)
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        put(URL, self.url.as_bytes(), bytes);
        encode_key(METHOD, WireType::Varint, bytes);
        encode_varint(number(self.method), bytes);
        btree_map::encode(
            string::encode,
            string::encoded_len,
            string::encode,
            string::encoded_len,
            HEADERS,
            &self.headers,
            bytes,
        );
        put(BODY, &self.body, bytes);
        if let Some(token) = &self.token {
            token.encode(bytes);
        }
    }
}

/// A method's number, which is never 0, the default that would not be written.
fn number(method: i32) -> u64 {
    u64::try_from(method).unwrap_or(0)
}

fn text_len(field: u32, text: &str) -> usize {
    bytes_len(field, text.len())
}

/// An empty field is not written.
fn bytes_len(field: u32, len: usize) -> usize {
    match len {
        0 => 0,
        _ => key_len(field) + encoded_len_varint(len as u64) + len,
    }
}

fn put(field: u32, value: &[u8], bytes: &mut Vec<u8>) {
    if !value.is_empty() {
        encode_key(field, WireType::LengthDelimited, bytes);
        encode_varint(value.len() as u64, bytes);
        bytes.extend_from_slice(value);
    }
}
