//! What the source hands out.

mod attributes;
mod id;
mod metadata;
mod trace;

pub use metadata::Metadata;

use std::{
    collections::HashMap,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use gcp_wire::SubscriptionName;

pub(crate) use attributes::Attributes;
pub(crate) use id::Id;

use crate::delivery::DeliveryId;

/// The publish time of a message that has none: before all times.
pub(crate) const UNPUBLISHED: i64 = i64::MIN;

/// A message, as the service delivered it.
///
/// It carries no handle: acknowledging is the business of the host's checkpoints. A host that
/// decides about a single message names it by its [`delivery`](Self::delivery).
#[derive(Clone)]
pub struct Message {
    pub(crate) delivery: DeliveryId,
    pub(crate) id: Id,
    pub(crate) data: Bytes,
    pub(crate) attributes: Attributes,
    pub(crate) ordering_key: Box<str>,
    /// Nanoseconds since the Unix epoch, cut and never rounded up; [`UNPUBLISHED`] for none.
    pub(crate) published: i64,
    pub(crate) attempt: u32,
    pub(crate) subscription: SubscriptionName,
}

impl Message {
    /// A message of which nothing is known yet: to be filled in where it lies.
    pub(crate) fn blank(subscription: SubscriptionName) -> Self {
        Self {
            // The machine numbers it.
            delivery: DeliveryId::new(0, 0),
            id: Id::blank(),
            data: Bytes::new(),
            attributes: Attributes::default(),
            ordering_key: Box::default(),
            published: UNPUBLISHED,
            attempt: 0,
            subscription,
        }
    }

    /// The message's id: unique within its topic, the same at every delivery.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// The payload; empty for a message that consists of attributes only.
    #[must_use]
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// The payload, without the rest.
    #[must_use]
    pub fn into_data(self) -> Bytes {
        self.data
    }

    /// The attributes; an empty map when there are none.
    #[must_use]
    pub fn attributes(&self) -> &HashMap<String, String> {
        self.attributes.map()
    }

    /// One attribute.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes.get(key)
    }

    /// The ordering key; `None` when the message was published without one.
    #[must_use]
    pub fn ordering_key(&self) -> Option<&str> {
        (!self.ordering_key.is_empty()).then_some(&*self.ordering_key)
    }

    /// When the service took the message, as exactly as it says; `None` when it does not.
    ///
    /// All messages of one publish request have the same time. It serves as the message's
    /// event time where the payload has none.
    #[must_use]
    pub fn publish_time(&self) -> Option<SystemTime> {
        let nanos = self.published()?;
        let distance = Duration::from_nanos(nanos.unsigned_abs());
        if nanos < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(distance)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(distance)
        }
    }

    /// The publish time in whole milliseconds since the Unix epoch, cut and never rounded up.
    #[must_use]
    pub fn publish_millis(&self) -> Option<i64> {
        self.published().map(|nanos| nanos.div_euclid(1_000_000))
    }

    /// How often the service has delivered the message, counting from 1; `None` on a subscription
    /// without a dead-letter policy, where it does not count.
    #[must_use]
    pub fn delivery_attempt(&self) -> Option<u32> {
        (self.attempt > 0).then_some(self.attempt)
    }

    /// Names this arrival of the message, for [`settle`](crate::PubsubSource::settle).
    #[must_use]
    pub fn delivery(&self) -> DeliveryId {
        self.delivery
    }

    /// The subscription the message came through, by its full name,
    /// `projects/<project>/subscriptions/<id>`. A bare id never equals it.
    #[must_use]
    pub fn subscription(&self) -> &SubscriptionName {
        &self.subscription
    }

    /// The publish time in nanoseconds since the Unix epoch, with a stand-in before all times where
    /// there is none.
    pub(crate) fn published_nanos(&self) -> i64 {
        self.published
    }

    fn published(&self) -> Option<i64> {
        (self.published != UNPUBLISHED).then_some(self.published)
    }

    /// What the message counts for in the buffer: the bytes that vary, and a flat amount for the
    /// rest, so that empty messages are not free.
    pub(crate) fn size(&self) -> usize {
        const FLAT: usize = 64;
        FLAT + self.data.len() + self.ordering_key.len() + self.attributes.bytes()
    }

    #[cfg(test)]
    pub(crate) fn fake(number: u64, bytes: usize) -> Self {
        Self {
            delivery: DeliveryId::new(0, 0),
            id: Id::of(number.to_string().as_bytes()),
            data: vec![0; bytes].into(),
            attributes: Attributes::default(),
            ordering_key: Box::default(),
            published: 0,
            attempt: 0,
            subscription: SubscriptionName::new("demo-project", "sub").unwrap(),
        }
    }
}

/// The payload.
impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// The payload, without the rest.
impl From<Message> for Bytes {
    fn from(message: Message) -> Self {
        message.data
    }
}

// Payloads and attributes are the users' and do not belong into a log.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("id", &self.id)
            .field("bytes", &self.data.len())
            .field("attributes", &self.attributes.len())
            .field("ordered", &!self.ordering_key.is_empty())
            .field("delivery", &self.delivery)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_cut_and_never_rounded_up() {
        let mut message = Message::fake(1, 0);
        for (nanos, millis) in [(1_999_999, 1), (0, 0), (-1, -1), (-1_000_000, -1)] {
            message.published = nanos;
            assert_eq!(message.publish_millis(), Some(millis));
        }
    }

    #[test]
    fn a_message_is_moved_without_a_call() {
        // What is larger is moved by a call of the C library, and a message is moved several times.
        assert!(size_of::<Message>() <= 128);
    }

    #[test]
    fn a_message_without_a_publish_time_has_no_event_time() {
        let message = Message {
            published: UNPUBLISHED,
            ..Message::fake(1, 0)
        };
        assert_eq!(message.publish_time(), None);
        assert_eq!(message.publish_millis(), None);
    }

    #[test]
    fn a_debug_print_holds_no_payload() {
        let mut message = Message::fake(7, 0);
        message.data = "secret".into();
        message.attributes = Attributes::fake("token", "secret");
        assert!(!format!("{message:?}").contains("secret"));
    }
}
