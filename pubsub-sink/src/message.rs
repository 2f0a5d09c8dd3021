//! A message as the encoder hands it over.

mod frame;
mod rules;

pub use rules::MessageError;

pub(crate) use frame::{
    encode, encode_again, encode_alone, frame_len, inside, payload_of, topic_header,
    topic_header_len,
};
pub(crate) use rules::check;

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;
use serde::Serialize;

/// A message to publish: payload, attributes and ordering key.
///
/// A message needs a payload or at least one attribute. The service's limits (100 attributes, keys
/// of 1 to 256 bytes that do not begin with `goog`, values of at most 1,024 bytes, ordering keys of
/// at most 1,024 bytes, 10,000,000 bytes in all) are checked when the sink accepts the record; a
/// message that breaks one goes to the failure handler and holds up no other.
///
/// ```
/// use pubsub_sink::PublishMessage;
///
/// let message = PublishMessage::new("42 boxes")
///     .attribute("tenant", "acme")
///     .ordering_key("customer-7");
/// assert_eq!(message.payload().as_ref(), b"42 boxes");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PublishMessage {
    payload: Bytes,
    /// None for none: most messages have no attributes, and pay nothing for those they do not have.
    attributes: Option<BTreeMap<String, String>>,
    ordering_key: String,
}

static NO_ATTRIBUTES: BTreeMap<String, String> = BTreeMap::new();

impl PublishMessage {
    /// A message with the given payload, without attributes or ordering key.
    #[must_use]
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self {
            payload: payload.into(),
            ..Self::default()
        }
    }

    /// A message whose payload is `value` as JSON.
    ///
    /// # Errors
    ///
    /// What `serde_json` answers when the value has no JSON form, for example a map with keys that
    /// are no strings. Returned from the encoder with `?`, it is the record's own failure.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self::new(serde_json::to_vec(value)?))
    }

    /// Adds an attribute. A second one of the same name replaces the first.
    #[must_use]
    pub fn attribute(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let attributes = self.attributes.get_or_insert_default();
        attributes.insert(key.into(), value.into());
        self
    }

    /// Gives the message an ordering key. An empty key is no key.
    ///
    /// Messages of one key are stored in the order in which the sink accepted them. Needs
    /// `message_ordering(true)` on the builder.
    #[must_use]
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = key.into();
        self
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> &BTreeMap<String, String> {
        self.attributes.as_ref().unwrap_or(&NO_ATTRIBUTES)
    }

    /// The ordering key, if there is one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        (!self.ordering_key.is_empty()).then_some(self.ordering_key.as_str())
    }
}

// Payloads and attributes are the user's: lengths only in a log.
impl fmt::Debug for PublishMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishMessage")
            .field("payload_bytes", &self.payload.len())
            .field("attributes", &self.attributes().len())
            .field("ordering_key", &self.ordering_key)
            .finish()
    }
}
