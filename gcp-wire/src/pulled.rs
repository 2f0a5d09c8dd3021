//! The response of a streaming pull, kept as the bytes it came in.
//!
//! A generated type makes a `String` of every ack id, id and attribute, and a map for each message,
//! only for most of it to be copied once more or dropped unread. Here a response is checked once
//! from front to back and stays in the pieces in which it came; its parts are slices of them.

mod attributes;
mod delivery;
mod fields;
mod scan;
#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use prost::Message as _;

pub use attributes::Attributes;
pub use delivery::{PulledDelivery, PulledMessage};

use crate::grpc::Pieces;
use crate::proto::pubsub::StreamingPullResponse;
use crate::status::DecodeFault;
use delivery::DeliverySpans;
use scan::Scan;

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
/// Holds the buffers it was received in for as long as it lives, and each of them for as long as a
/// payload does that was taken from it by [`PulledMessage::share_data`]. Confirmations of
/// acknowledgements are left out: they answer requests on the stream itself, which this crate does
/// not send.
#[derive(Clone, Default)]
pub struct PulledResponse {
    /// The pieces in which it came, and after them, put together, the deliveries that lie across two.
    parts: Vec<Bytes>,
    len: usize,
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
        Self::read(bytes.into())
    }

    /// Reads one that came in pieces, as [`decode`](Self::decode) would read them put together.
    pub(crate) fn read(pieces: Pieces) -> Result<Self, DecodeFault> {
        let pieces = match Self::scan(pieces) {
            Ok(response) => return Ok(response),
            Err(pieces) => pieces,
        };
        let in_several = pieces.as_slice().len() > 1;
        let whole = pieces.into_bytes();
        // What is unusual where two pieces meet may be plain without them.
        if in_several && let Ok(response) = Self::scan(whole.clone().into()) {
            return Ok(response);
        }
        Self::decode_generated(whole)
    }

    /// Reads what services send: every field at most once where it does not repeat, and no groups.
    /// Gives the pieces back when the generated type is to have its say.
    fn scan(pieces: Pieces) -> Result<Self, Pieces> {
        let Some(found) = Scan::of(&pieces) else {
            return Err(pieces);
        };
        let len = pieces.len();
        let mut parts = pieces.into_pieces();
        parts.extend(found.joined);
        Ok(Self {
            parts,
            len,
            deliveries: found.deliveries,
            properties: found.properties,
            payload_bytes: found.payload_bytes,
        })
    }

    /// Reads whatever may be there, by the generated type, whose encoding is of the plain kind.
    fn decode_generated(bytes: Bytes) -> Result<Self, DecodeFault> {
        let malformed = |what: String| DecodeFault::Malformed(what);
        let mut response =
            StreamingPullResponse::decode(bytes).map_err(|error| malformed(error.to_string()))?;
        response.acknowledge_confirmation = None;
        response.modify_ack_deadline_confirmation = None;
        Self::scan(Bytes::from(response.encode_to_vec()).into())
            .map_err(|_| malformed("it is longer than can be read".to_owned()))
    }

    /// The deliveries, in the order of the response.
    pub fn deliveries(&self) -> impl ExactSizeIterator<Item = PulledDelivery<'_>> + '_ {
        static NOTHING: Bytes = Bytes::new();
        self.deliveries.iter().map(|spans| {
            // Always there: a delivery was found in the part that it names.
            let part = self.parts.get(spans.part as usize).unwrap_or(&NOTHING);
            PulledDelivery::new(part, spans)
        })
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
        self.len
    }

    /// What the response says about the subscription, when it says something.
    #[must_use]
    pub fn properties(&self) -> Option<SubscriptionProperties> {
        self.properties
    }
}

// Payloads and attributes are the users' and do not belong into a log.
impl fmt::Debug for PulledResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PulledResponse")
            .field("deliveries", &self.deliveries.len())
            .field("bytes", &self.len)
            .field("properties", &self.properties)
            .finish_non_exhaustive()
    }
}
