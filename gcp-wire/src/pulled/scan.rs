//! What is where in a response that came in one piece or in several.

use bytes::{Bytes, BytesMut};

use super::SubscriptionProperties;
use super::delivery::DeliverySpans;
use super::fields::{Extent, Fields, Value};
use crate::grpc::Pieces;

/// Field numbers of `google.pubsub.v1.StreamingPullResponse`.
pub(super) const RECEIVED_MESSAGES: u32 = 1;
const MODIFY_ACK_DEADLINE_CONFIRMATION: u32 = 3;
pub(super) const SUBSCRIPTION_PROPERTIES: u32 = 4;
const ACKNOWLEDGE_CONFIRMATION: u32 = 5;

/// Field numbers of its `SubscriptionProperties`.
const EXACTLY_ONCE_DELIVERY_ENABLED: u32 = 1;
const MESSAGE_ORDERING_ENABLED: u32 = 2;

/// Room that is made for deliveries ahead of them: a full response of the service.
const MOST_EXPECTED: usize = 1000;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) deliveries: Vec<DeliverySpans>,
    pub(super) properties: Option<SubscriptionProperties>,
    pub(super) payload_bytes: usize,
    /// The fields that lie across several pieces, each put together: the parts after the pieces.
    pub(super) joined: Vec<Bytes>,
    /// The length of the whole response.
    len: usize,
}

impl Scan {
    /// `None` as of [`Fields`].
    pub(super) fn of(pieces: &Pieces) -> Option<Self> {
        let mut found = Self {
            len: pieces.len(),
            ..Self::default()
        };
        let pieces = pieces.as_slice();
        let first_joined = u32::try_from(pieces.len()).ok()?;
        // A field that goes on in the next piece.
        let mut open = BytesMut::new();
        for (part, piece) in (0..).zip(pieces) {
            let mut rest = &piece[..];
            if !open.is_empty() {
                if !found.complete(&mut open, &mut rest)? {
                    continue;
                }
                let joined = std::mem::take(&mut open).freeze();
                let number = first_joined + u32::try_from(found.joined.len()).ok()?;
                if !found.walk(number, Fields::of(&joined)?)?.is_empty() {
                    return None;
                }
                found.joined.push(joined);
            }
            let begun = found.walk(part, Fields::of(piece)?.last(rest.len())?)?;
            open = found.open(begun);
        }
        open.is_empty().then_some(found)
    }

    /// The beginning of a field that is to be put together.
    fn open(&self, begun: &[u8]) -> BytesMut {
        let len = match Fields::of(begun).map(|fields| fields.extent()) {
            // No more room is made than the response has bytes, whatever the field says.
            Some(Extent::Known(len)) => len.min(self.len),
            Some(Extent::Unknown | Extent::Unusual) | None => begun.len(),
        };
        let mut open = BytesMut::with_capacity(len);
        open.extend_from_slice(begun);
        open
    }

    /// Moves what is missing of a field that was begun from `rest` into it. Answers whether it is
    /// whole.
    fn complete(&self, open: &mut BytesMut, rest: &mut &[u8]) -> Option<bool> {
        loop {
            let len = match Fields::of(open)?.extent() {
                Extent::Known(len) => len,
                Extent::Unknown => open.len() + 1,
                Extent::Unusual => return None,
            };
            let missing = len.checked_sub(open.len()).filter(|_| len <= self.len)?;
            if missing == 0 {
                return Some(true);
            }
            let (head, tail) = rest.split_at(missing.min(rest.len()));
            open.reserve(missing);
            open.extend_from_slice(head);
            *rest = tail;
            if head.len() < missing {
                return Some(false);
            }
        }
    }

    /// Takes in the fields of a part. Answers the rest that is the beginning of a field.
    fn walk<'a>(&mut self, part: u32, mut fields: Fields<'a>) -> Option<&'a [u8]> {
        loop {
            let before = fields.clone();
            let Some(next) = fields.next() else {
                return match before.extent() {
                    Extent::Known(len) if len <= before.rest().len() => None,
                    Extent::Known(_) | Extent::Unknown => Some(before.rest()),
                    Extent::Unusual => None,
                };
            };
            match next {
                None => return Some(&[]),
                Some((number, value)) => self.take(part, &fields, number, value)?,
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, part: u32, fields: &Fields<'_>, number: u32, value: Value) -> Option<()> {
        match (number, value) {
            (RECEIVED_MESSAGES, Value::Slice(span)) => {
                let mut delivery = DeliverySpans::scan(fields.within(span))?;
                delivery.part = part;
                self.payload_bytes += delivery.data().len();
                if self.deliveries.is_empty() {
                    // Deliveries are mostly of one size.
                    let one = fields.at() as usize;
                    self.deliveries.reserve((self.len / one).min(MOST_EXPECTED));
                }
                self.deliveries.push(delivery);
            }
            (SUBSCRIPTION_PROPERTIES, Value::Slice(span)) if self.properties.is_none() => {
                self.properties = Some(scan_properties(fields.within(span))?);
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
        Some(())
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
