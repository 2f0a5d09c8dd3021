//! A message without its payload.

use std::{collections::HashMap, fmt, time::SystemTime};

use bytes::Bytes;
use gcp_wire::SubscriptionName;

use super::Message;
use crate::delivery::DeliveryId;

/// What a message came with, apart from its payload; the first half of [`Message::into_parts`].
#[derive(Clone)]
pub struct Metadata(Message);

impl Message {
    /// The payload, and everything else. Copies nothing.
    #[must_use]
    pub fn into_parts(mut self) -> (Metadata, Bytes) {
        let data = std::mem::take(&mut self.data);
        (Metadata(self), data)
    }
}

impl Metadata {
    pub(super) fn message(&self) -> &Message {
        &self.0
    }

    /// The message's id. As [`Message::id`].
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// The attributes; an empty map when there are none.
    #[must_use]
    pub fn attributes(&self) -> &HashMap<String, String> {
        self.0.attributes()
    }

    /// One attribute.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&str> {
        self.0.attribute(key)
    }

    /// The ordering key; `None` when the message was published without one.
    #[must_use]
    pub fn ordering_key(&self) -> Option<&str> {
        self.0.ordering_key()
    }

    /// When the service took the message: its event time. As [`Message::publish_time`].
    #[must_use]
    pub fn publish_time(&self) -> Option<SystemTime> {
        self.0.publish_time()
    }

    /// The publish time in whole milliseconds since the Unix epoch. As [`Message::publish_millis`].
    #[must_use]
    pub fn publish_millis(&self) -> Option<i64> {
        self.0.publish_millis()
    }

    /// How often the service has delivered the message. As [`Message::delivery_attempt`].
    #[must_use]
    pub fn delivery_attempt(&self) -> Option<u32> {
        self.0.delivery_attempt()
    }

    /// Names this arrival of the message, for [`settle`](crate::Decoded::settle).
    #[must_use]
    pub fn delivery(&self) -> DeliveryId {
        self.0.delivery()
    }

    /// The subscription the message came through, by its full name. As [`Message::subscription`].
    #[must_use]
    pub fn subscription(&self) -> &SubscriptionName {
        self.0.subscription()
    }
}

// Attributes are the users' and do not belong into a log.
impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("id", &self.0.id)
            .field("attributes", &self.0.attributes.len())
            .field("ordered", &!self.0.ordering_key.is_empty())
            .field("delivery", &self.0.delivery)
            .finish_non_exhaustive()
    }
}
