//! What is to be acknowledged, in the order in which it was released.

use std::collections::VecDeque;

use connector_core::ledger::{Place, SegmentView};

use super::key::MessageKey;
use crate::delivery::DeliveryId;

/// The next thing to acknowledge.
#[derive(Debug)]
pub(super) enum Next {
    /// A delivery that is marked as being acknowledged already.
    Delivery(DeliveryId),
    /// An item of a committed epoch: the newest delivery of this message, if it is still held.
    Released(Place, MessageKey),
}

#[derive(Debug)]
struct Released {
    segment: SegmentView<MessageKey>,
    cursor: u32,
    left: usize,
}

/// The queue of acknowledgements.
///
/// A commit only puts its epochs' segments in here; they are taken apart while requests are cut, a
/// bounded number per turn, so that a commit of a million deliveries does not hold anybody up.
#[derive(Debug, Default)]
pub(super) struct Acks {
    urgent: VecDeque<DeliveryId>,
    released: VecDeque<Released>,
}

impl Acks {
    /// Acknowledges one delivery, before what commits released.
    pub(super) fn push(&mut self, id: DeliveryId) {
        self.urgent.push_back(id);
    }

    /// Puts a delivery back that did not fit into the request.
    pub(super) fn unpop(&mut self, id: DeliveryId) {
        self.urgent.push_front(id);
    }

    /// Acknowledges what a commit released.
    pub(super) fn release(&mut self, segments: Vec<SegmentView<MessageKey>>) {
        for segment in segments {
            self.released.push_back(Released {
                left: segment.len(),
                cursor: 0,
                segment,
            });
        }
    }

    pub(super) fn pop(&mut self) -> Option<Next> {
        if let Some(id) = self.urgent.pop_front() {
            return Some(Next::Delivery(id));
        }
        while let Some(first) = self.released.front_mut() {
            if let Some((place, key)) = first.segment.next_from(&mut first.cursor) {
                first.left -= 1;
                return Some(Next::Released(place, key.clone()));
            }
            self.released.pop_front();
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.released.iter().all(|released| released.left == 0)
    }
}
