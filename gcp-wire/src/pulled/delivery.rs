//! One delivery of a response, and its message.

use std::fmt;

use bytes::Bytes;
use prost_types::Timestamp;

use super::attributes::{self, Attributes};
use super::fields::{Fields, Span, Value, is_text};

/// Field numbers of `google.pubsub.v1.ReceivedMessage`.
const ACK_ID: u32 = 1;
const MESSAGE: u32 = 2;
const DELIVERY_ATTEMPT: u32 = 3;

/// Field numbers of `google.pubsub.v1.PubsubMessage`.
const DATA: u32 = 1;
pub(super) const ATTRIBUTES: u32 = 2;
const MESSAGE_ID: u32 = 3;
const PUBLISH_TIME: u32 = 4;
const ORDERING_KEY: u32 = 5;

/// Field numbers of `google.protobuf.Timestamp`.
const SECONDS: u32 = 1;
const NANOS: u32 = 2;

/// Where the parts of a delivery are.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliverySpans {
    /// Which part of the response all of them are in.
    pub(super) part: u32,
    ack_id: Span,
    attempt: i32,
    message: Option<MessageSpans>,
}

/// Where the parts of a message are. What it does not have is empty.
#[derive(Clone, Debug, Default)]
struct MessageSpans {
    data: Span,
    /// From the first entry to the last, with whatever field lies in between.
    attributes: Span,
    id: Span,
    ordering_key: Span,
    published: Option<Timestamp>,
}

impl DeliverySpans {
    /// `None` as of [`Fields`].
    pub(super) fn scan(mut fields: Fields<'_>) -> Option<Self> {
        let mut spans = Self::default();
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (ACK_ID, Value::Slice(span)) => spans.ack_id = text(&fields, span)?,
                (MESSAGE, Value::Slice(span)) if spans.message.is_none() => {
                    spans.message = Some(MessageSpans::scan(fields.within(span))?);
                }
                (DELIVERY_ATTEMPT, Value::Varint(value)) => spans.attempt = int32(value),
                (ACK_ID | MESSAGE | DELIVERY_ATTEMPT, _) => return None,
                _ => {}
            }
        }
        Some(spans)
    }

    pub(super) fn data(&self) -> Span {
        self.message
            .as_ref()
            .map_or_else(Span::default, |message| message.data)
    }
}

impl MessageSpans {
    fn scan(mut fields: Fields<'_>) -> Option<Self> {
        let mut spans = Self::default();
        loop {
            let start = fields.at();
            let Some((number, value)) = fields.next()? else {
                break;
            };
            match (number, value) {
                (DATA, Value::Slice(span)) => spans.data = span,
                (ATTRIBUTES, Value::Slice(span)) => {
                    attributes::entry(fields.within(span))?;
                    spans.attributes = spans.attributes.to(fields.since(start));
                }
                (MESSAGE_ID, Value::Slice(span)) => spans.id = text(&fields, span)?,
                (PUBLISH_TIME, Value::Slice(span)) if spans.published.is_none() => {
                    spans.published = Some(timestamp(fields.within(span))?);
                }
                (ORDERING_KEY, Value::Slice(span)) => spans.ordering_key = text(&fields, span)?,
                (DATA | ATTRIBUTES | MESSAGE_ID | PUBLISH_TIME | ORDERING_KEY, _) => return None,
                _ => {}
            }
        }
        Some(spans)
    }
}

/// A field that must be text. An earlier one is checked too, though the last one counts.
pub(super) fn text(fields: &Fields<'_>, span: Span) -> Option<Span> {
    is_text(span.of(fields.response())).then_some(span)
}

fn timestamp(mut fields: Fields<'_>) -> Option<Timestamp> {
    let mut time = Timestamp::default();
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (SECONDS, Value::Varint(value)) => time.seconds = value.cast_signed(),
            (NANOS, Value::Varint(value)) => time.nanos = int32(value),
            (SECONDS | NANOS, _) => return None,
            _ => {}
        }
    }
    Some(time)
}

/// A negative number is sent as 64 bits, and whatever is above 32 is cut.
#[expect(clippy::cast_possible_truncation, reason = "as protobuf has it")]
const fn int32(value: u64) -> i32 {
    value as i32
}

/// One delivery of a response.
#[derive(Clone, Copy)]
pub struct PulledDelivery<'a> {
    part: &'a Bytes,
    spans: &'a DeliverySpans,
}

impl<'a> PulledDelivery<'a> {
    pub(super) const fn new(part: &'a Bytes, spans: &'a DeliverySpans) -> Self {
        Self { part, spans }
    }

    /// The ack id, which is UTF-8.
    #[must_use]
    pub fn ack_id(&self) -> &'a [u8] {
        self.spans.ack_id.of(self.part)
    }

    /// How often the service has delivered the message; zero where it does not count.
    #[must_use]
    pub const fn delivery_attempt(&self) -> i32 {
        self.spans.attempt
    }

    /// The message, which a service never leaves out.
    #[must_use]
    pub fn message(&self) -> Option<PulledMessage<'a>> {
        let spans = self.spans.message.as_ref()?;
        Some(PulledMessage {
            part: self.part,
            spans,
        })
    }
}

// An ack id lets whoever has it acknowledge.
impl fmt::Debug for PulledDelivery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PulledDelivery")
            .field("delivery_attempt", &self.delivery_attempt())
            .field("message", &self.message())
            .finish_non_exhaustive()
    }
}

/// The message of a delivery.
#[derive(Clone, Copy)]
pub struct PulledMessage<'a> {
    part: &'a Bytes,
    spans: &'a MessageSpans,
}

impl<'a> PulledMessage<'a> {
    /// The message's id.
    #[must_use]
    pub fn id(&self) -> &'a str {
        self.text(self.spans.id)
    }

    /// The message's id as bytes, which are UTF-8: for who keeps it and mostly never shows it.
    #[must_use]
    pub fn id_bytes(&self) -> &'a [u8] {
        self.spans.id.of(self.part)
    }

    /// The payload.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.spans.data.of(self.part)
    }

    /// The payload as a part of what it was received in, which lives as long as it does: one frame of
    /// the connection with what was read together with it, or the delivery alone where it came in
    /// several frames.
    #[must_use]
    pub fn share_data(&self) -> Bytes {
        self.part.slice_ref(self.data())
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.spans.attributes.of(self.part))
    }

    /// The ordering key; empty when the message was published without one.
    #[must_use]
    pub fn ordering_key(&self) -> &'a str {
        self.text(self.spans.ordering_key)
    }

    /// When the service took the message.
    #[must_use]
    pub const fn publish_time(&self) -> Option<Timestamp> {
        self.spans.published
    }

    fn text(&self, span: Span) -> &'a str {
        if span.is_empty() {
            return "";
        }
        // Checked while it was scanned.
        std::str::from_utf8(span.of(self.part)).unwrap_or_default()
    }
}

// Payloads and attributes are the users' and do not belong into a log.
impl fmt::Debug for PulledMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PulledMessage")
            .field("id", &self.id())
            .field("bytes", &self.data().len())
            .finish_non_exhaustive()
    }
}
