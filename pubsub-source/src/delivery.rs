//! One arrival of a message, and what a host may do with it.

use std::{fmt, time::Duration};

/// The number of bits that tell the deliveries of one batch apart: four full responses.
const INDEX_BITS: u32 = 12;

/// The number of bits that tell the batches of one split apart: at 10,000 responses a second they
/// last for three years.
const BATCH_BITS: u32 = 40;

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

    /// The most splits that one source can tell apart.
    pub(crate) const MAX_SPLITS: usize = 1 << (u64::BITS - BATCH_BITS - INDEX_BITS);

    /// A delivery as its split's machine knows it.
    pub(crate) const fn new(batch: u64, index: u16) -> Self {
        debug_assert!(batch >> BATCH_BITS == 0, "a split runs out of batches");
        Self(batch << INDEX_BITS | index as u64)
    }

    /// The same delivery as a host knows it, who reads several splits.
    pub(crate) const fn of_split(self, split: usize) -> Self {
        debug_assert!(split < Self::MAX_SPLITS, "build() refuses more");
        Self(self.0 | (split as u64) << (BATCH_BITS + INDEX_BITS))
    }

    /// The split's number, and the delivery as its machine knows it.
    pub(crate) const fn apart(self) -> (usize, Self) {
        let split = (self.0 >> (BATCH_BITS + INDEX_BITS)) as usize;
        let own = self.0 & ((1 << (BATCH_BITS + INDEX_BITS)) - 1);
        (split, Self(own))
    }

    /// The delivery after this one in its batch, which has one.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The delivery so many after this one in its batch, which has as many.
    pub(crate) const fn after(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }

    pub(crate) const fn batch(self) -> u64 {
        self.apart().1.0 >> INDEX_BITS
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
        write!(f, "{}.{}.{}", self.apart().0, self.batch(), self.index())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn split_batch_and_index_are_kept_apart(
            split in 0..DeliveryId::MAX_SPLITS,
            batch in 0u64..1 << BATCH_BITS,
            index in 0u16..1 << INDEX_BITS,
        ) {
            let own = DeliveryId::new(batch, index);
            let id = own.of_split(split);
            prop_assert_eq!(id.apart(), (split, own));
            prop_assert_eq!(id.batch(), batch);
            prop_assert_eq!(id.index(), usize::from(index));
            prop_assert_eq!(id.to_string(), format!("{split}.{batch}.{index}"));
        }
    }
}
