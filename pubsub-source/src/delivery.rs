//! One arrival of a message, and what a host may do with it.

use std::{fmt, time::Duration};

/// The number of bits that tell the deliveries of one batch apart.
const INDEX_BITS: u32 = 16;

/// Names one arrival of a message at this source.
///
/// Plain and `Copy`: a message can be taken apart, sent elsewhere or dropped, and its delivery can
/// still be named. It stays valid when the service delivers the same message again while the source
/// holds it. An id is never used twice by one source, and means nothing to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(u64);

impl DeliveryId {
    /// The most deliveries that one batch can tell apart.
    pub(crate) const MAX_BATCH: usize = 1 << INDEX_BITS;

    pub(crate) const fn new(batch: u64, index: u16) -> Self {
        Self(batch << INDEX_BITS | index as u64)
    }

    pub(crate) const fn batch(self) -> u64 {
        self.0 >> INDEX_BITS
    }

    pub(crate) const fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

impl fmt::Debug for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeliveryId({self})")
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.batch(), self.index())
    }
}

/// What a host decides about one delivery of the open epoch, without waiting for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Disposition {
    /// The message is done: acknowledge it now.
    Ack,
    /// Give the message back; the service delivers it again at once, or as the subscription's
    /// retry policy says. Counts as a delivery attempt where a dead-letter policy exists.
    Nack,
    /// Give the message back, to be delivered again after this long: whole seconds, at most 600
    /// (the service's limit on a lease); a fraction counts as a whole second.
    NackAfter(Duration),
}
