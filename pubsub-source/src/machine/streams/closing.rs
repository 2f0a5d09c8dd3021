//! Streams that are given up because nobody reads them, or because the source ends.

use std::time::{Duration, Instant};

use super::{FAREWELL, Slot, Streams};
use crate::machine::effect::Effect;

/// How long a half-closed stream of a source that closes may take to end: its host waits.
pub(in crate::machine) const LAST_FAREWELL: Duration = Duration::from_secs(1);

impl Streams {
    /// Closes every stream, since nobody reads them: what they hold is leased and not ours.
    pub(in crate::machine) fn close_unread(&mut self, now: Instant) -> bool {
        let mut any = false;
        for slot in &mut self.slots {
            if let Slot::Live(live) = slot {
                let stream = live.stream;
                *slot = Slot::Unread(now);
                any = true;
                self.effects.push_back(Effect::Drop { stream });
            }
        }
        any
    }

    /// Half-closes the stream of a slot. Its successor opens beside it where the bound allows that, else
    /// after it.
    pub(super) fn succeed(&mut self, now: Instant, slot: usize, told: u64, lease: Duration) {
        let Slot::Live(live) = &self.slots[slot] else {
            return;
        };
        let old = live.retiring(now + FAREWELL);
        let stream = old.stream;
        self.retiring.push(old);
        self.slots[slot] = Slot::Waiting(now);
        self.open(now, slot, told, lease);
        self.effects.push_back(Effect::HalfClose { stream });
    }

    /// Half-closes every stream for good, and drops what has not ended after `farewell`.
    pub(in crate::machine) fn close(&mut self, now: Instant, farewell: Duration) {
        self.closing = true;
        // A source that stopped before it closes has said goodbye already.
        let drop_at = now + farewell;
        for old in &mut self.retiring {
            old.drop_at = old.drop_at.min(drop_at);
        }
        self.half_close_all(now, drop_at);
    }

    /// Whether all streams were half-closed and some have not ended: a server may still deliver on
    /// them what it is given back.
    pub(in crate::machine) fn are_leaving(&self) -> bool {
        (self.closing || self.parked) && self.count() > 0
    }

    /// Half-closes every stream until they are wanted again.
    pub(in crate::machine) fn park(&mut self, now: Instant) {
        self.parked = true;
        self.half_close_all(now, now + FAREWELL);
    }

    /// Every stream may open again, at once.
    pub(in crate::machine) fn unpark(&mut self, now: Instant) {
        self.parked = false;
        for slot in &mut self.slots {
            if let Slot::Unread(since) = slot {
                *since = now;
            }
        }
    }

    /// What the server has sent already is read on to its end, instead of staying leased to nobody.
    fn half_close_all(&mut self, now: Instant, drop_at: Instant) {
        for slot in &mut self.slots {
            if let Slot::Live(live) = slot {
                let stream = live.stream;
                self.retiring.push(live.retiring(drop_at));
                *slot = Slot::Unread(now);
                self.effects.push_back(Effect::HalfClose { stream });
            }
        }
    }

    /// Drops every stream for good.
    pub(in crate::machine) fn drop_all(&mut self, now: Instant) {
        self.closing = true;
        self.close_unread(now);
        for old in std::mem::take(&mut self.retiring) {
            self.effects.push_back(Effect::Drop { stream: old.stream });
        }
    }
}
