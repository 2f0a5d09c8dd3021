//! How many unacknowledged messages the streams are told to send.

use std::time::{Duration, Instant};

use super::{Slot, Streams};

impl Streams {
    /// What the stream of a slot is told: together they are told all of it.
    pub(super) fn share(&self, slot: usize, told: u64) -> u64 {
        let (slot, slots) = (slot as u64, self.slots.len() as u64);
        let share = told / slots + u64::from(slot < told % slots);
        share.max(1)
    }

    /// The bytes that the stream of a slot is told; 0 for no limit.
    pub(super) fn share_of_bytes(&self, slot: usize) -> u64 {
        let Some(bytes) = self.bytes else { return 0 };
        let (slot, slots) = (slot as u64, self.slots.len() as u64);
        let share = bytes / slots + u64::from(slot < bytes % slots);
        share.max(1)
    }

    /// Whether what the stream of a slot would be told is left within the bounds. There always is
    /// when nothing is open at all, and only then where the order of keys is kept.
    pub(super) fn has_room(&self, slot: usize, told: u64) -> bool {
        let open = self.told();
        // Saturates for bounds that are none.
        let within = open.saturating_add(self.share(slot, told)) <= self.bound;
        let bytes = self.told_bytes().saturating_add(self.share_of_bytes(slot));
        open == 0 || (!self.alone && within && self.bytes.is_none_or(|bound| bytes <= bound))
    }

    /// The bytes that all open streams are told together.
    pub(super) fn told_bytes(&self) -> u64 {
        let live = self.live().map(|live| live.told_bytes);
        live.chain(self.retiring.iter().map(|old| old.told_bytes))
            .fold(0, u64::saturating_add)
    }

    /// What all open streams are told together.
    pub(super) fn told(&self) -> u64 {
        let live = self.live().map(|live| live.told);
        live.chain(self.retiring.iter().map(|old| old.told))
            .fold(0, u64::saturating_add)
    }

    /// Tells a larger limit. It can be told only when a stream opens: a successor opens beside each
    /// stream where the bound allows that, else after it.
    pub(in crate::machine) fn retell(&mut self, now: Instant, told: u64, lease: Duration) {
        for slot in 0..self.slots.len() {
            let share = self.share(slot, told);
            let Slot::Live(live) = &self.slots[slot] else {
                continue;
            };
            if live.told < share {
                self.succeed(now, slot, told, lease);
            }
        }
    }

    #[cfg(any(test, fuzzing))]
    pub(in crate::machine) fn check_invariants(&self) {
        assert!(
            self.told() <= self.bound.max(self.slots.len() as u64),
            "the streams are told {} of {}",
            self.told(),
            self.bound
        );
        let bytes = self.bytes.unwrap_or(u64::MAX).max(self.slots.len() as u64);
        assert!(self.told_bytes() <= bytes, "the bytes have a bound too");
    }
}
