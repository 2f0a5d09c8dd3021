//! The response of a streaming pull, kept as the bytes it came in.
//!
//! A generated type makes a `String` of every ack id, id and attribute, and a map for each message,
//! only for most of it to be copied once more or dropped unread. Here a response is checked once
//! from front to back and stays one buffer; its parts are slices of it.

mod attributes;
mod delivery;
mod fields;
#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use prost::Message as _;

pub use attributes::Attributes;
pub use delivery::{PulledDelivery, PulledMessage};

use crate::proto::pubsub::StreamingPullResponse;
use crate::status::DecodeFault;
use delivery::DeliverySpans;
use fields::{Fields, Value};

/// Field numbers of `google.pubsub.v1.StreamingPullResponse`.
const RECEIVED_MESSAGES: u32 = 1;
const MODIFY_ACK_DEADLINE_CONFIRMATION: u32 = 3;
const SUBSCRIPTION_PROPERTIES: u32 = 4;
const ACKNOWLEDGE_CONFIRMATION: u32 = 5;

/// Field numbers of its `SubscriptionProperties`.
const EXACTLY_ONCE_DELIVERY_ENABLED: u32 = 1;
const MESSAGE_ORDERING_ENABLED: u32 = 2;

/// Room that is made for deliveries ahead of them: a full response of the service.
const MOST_EXPECTED: usize = 1000;

/// What a streaming pull's response says about the subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriptionProperties {
    /// Whether the subscription has exactly-once delivery.
    pub exactly_once_delivery_enabled: bool,
    /// Whether the subscription keeps the order of keys.
    pub message_ordering_enabled: bool,
}

/// One response of a streaming pull.
///
/// Holds the buffer it was received in for as long as it, or a payload taken from it by
/// [`PulledMessage::share_data`], lives. Confirmations of acknowledgements are left out: they
/// answer requests on the stream itself, which this crate does not send.
#[derive(Clone, Default)]
pub struct PulledResponse {
    bytes: Bytes,
    deliveries: Vec<DeliverySpans>,
    properties: Option<SubscriptionProperties>,
    payload_bytes: usize,
}

impl PulledResponse {
    /// Reads an encoded `google.pubsub.v1.StreamingPullResponse`.
    ///
    /// Accepts and refuses exactly what the generated type does, and finds the same in it.
    ///
    /// # Errors
    ///
    /// [`DecodeFault::Malformed`]; the text names the field where that is known, and holds nothing
    /// of its value.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeFault> {
        match Self::scan(bytes.clone()) {
            Some(response) => Ok(response),
            None => Self::decode_generated(bytes),
        }
    }

    /// Reads what services send: every field at most once where it does not repeat, and no groups.
    /// `None` says that the generated type is to have its say.
    fn scan(bytes: Bytes) -> Option<Self> {
        let mut fields = Fields::of(&bytes)?;
        let mut deliveries: Vec<DeliverySpans> = Vec::new();
        let mut properties = None;
        let mut payload_bytes = 0;
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (RECEIVED_MESSAGES, Value::Slice(span)) => {
                    let delivery = DeliverySpans::scan(fields.within(span))?;
                    payload_bytes += delivery.data().len();
                    if deliveries.is_empty() {
                        // Deliveries are mostly of one size.
                        let (whole, one) = (bytes.len(), fields.at() as usize);
                        deliveries.reserve((whole / one).min(MOST_EXPECTED));
                    }
                    deliveries.push(delivery);
                }
                (SUBSCRIPTION_PROPERTIES, Value::Slice(span)) if properties.is_none() => {
                    properties = Some(scan_properties(fields.within(span))?);
                }
                (
                    RECEIVED_MESSAGES
                    | SUBSCRIPTION_PROPERTIES
                    | MODIFY_ACK_DEADLINE_CONFIRMATION
                    | ACKNOWLEDGE_CONFIRMATION,
                    _,
                ) => return None,
                _ => {}
            }
        }
        Some(Self {
            bytes,
            deliveries,
            properties,
            payload_bytes,
        })
    }

    /// Reads whatever may be there, by the generated type, whose encoding is of the plain kind.
    fn decode_generated(bytes: Bytes) -> Result<Self, DecodeFault> {
        let malformed = |what: String| DecodeFault::Malformed(what);
        let mut response =
            StreamingPullResponse::decode(bytes).map_err(|error| malformed(error.to_string()))?;
        response.acknowledge_confirmation = None;
        response.modify_ack_deadline_confirmation = None;
        Self::scan(response.encode_to_vec().into())
            .ok_or_else(|| malformed("it is longer than can be read".to_owned()))
    }

    /// The deliveries, in the order of the response.
    pub fn deliveries(&self) -> impl ExactSizeIterator<Item = PulledDelivery<'_>> + '_ {
        self.deliveries
            .iter()
            .map(|spans| PulledDelivery::new(&self.bytes, spans))
    }

    /// The number of deliveries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// Whether there is no delivery: the answer to a ping.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// The bytes of all payloads together.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// The bytes of the whole response, encoded.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.bytes.len()
    }

    /// What the response says about the subscription, when it says something.
    #[must_use]
    pub fn properties(&self) -> Option<SubscriptionProperties> {
        self.properties
    }
}

fn scan_properties(mut fields: Fields<'_>) -> Option<SubscriptionProperties> {
    let mut properties = SubscriptionProperties::default();
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (EXACTLY_ONCE_DELIVERY_ENABLED, Value::Varint(value)) => {
                properties.exactly_once_delivery_enabled = value != 0;
            }
            (MESSAGE_ORDERING_ENABLED, Value::Varint(value)) => {
                properties.message_ordering_enabled = value != 0;
            }
            (EXACTLY_ONCE_DELIVERY_ENABLED | MESSAGE_ORDERING_ENABLED, _) => return None,
            _ => {}
        }
    }
    Some(properties)
}

// Payloads and attributes are the users' and do not belong into a log.
impl fmt::Debug for PulledResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PulledResponse")
            .field("deliveries", &self.deliveries.len())
            .field("bytes", &self.bytes.len())
            .field("properties", &self.properties)
            .finish_non_exhaustive()
    }
}
