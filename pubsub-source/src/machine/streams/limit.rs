//! How many unacknowledged messages the streams are told to send.

use std::time::{Duration, Instant};

use super::{FAREWELL, Retiring, Slot, Streams};
use crate::machine::effect::Effect;

impl Streams {
    /// What the stream of a slot is told: together they are told all of it.
    pub(super) fn share(&self, slot: usize, told: u64) -> u64 {
        let (slot, slots) = (slot as u64, self.slots.len() as u64);
        let share = told / slots + u64::from(slot < told % slots);
        share.max(1)
    }

    /// What all open streams are told together.
    pub(super) fn told(&self) -> u64 {
        let live = self.live().map(|live| live.told);
        live.chain(self.retiring.iter().map(|old| old.told)).sum()
    }

    /// Tells a larger limit. It can be told only when a stream opens: a successor opens beside each
    /// stream where the bound allows that, else after it.
    pub(in crate::machine) fn retell(&mut self, now: Instant, told: u64, lease: Duration) {
        for slot in 0..self.slots.len() {
            let share = self.share(slot, told);
            let Slot::Live(live) = &self.slots[slot] else {
                continue;
            };
            if live.told >= share {
                continue;
            }
            let old = Retiring {
                stream: live.stream,
                told: live.told,
                lease: live.lease.min(live.lease_before),
                drop_at: now + FAREWELL,
            };
            let stream = old.stream;
            self.retiring.push(old);
            self.slots[slot] = Slot::Waiting(now);
            self.open(now, slot, told, lease);
            self.effects.push_back(Effect::HalfClose { stream });
        }
    }
}
