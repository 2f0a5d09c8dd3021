//! What becomes of a message: acknowledged, failed, taken away.

use std::sync::Arc;
use std::time::Duration;

use super::{Backlog, Due, Freed, Stage};
use crate::pubsub::state::ordering::Acked;
use crate::time::Time;

impl Backlog {
    /// Whether acknowledging a message would leave an earlier one of its key behind.
    pub(in crate::pubsub::state) fn is_out_of_order(&self, seq: u64) -> bool {
        self.entries
            .get(&seq)
            .and_then(|entry| self.key_of(&entry.stored))
            .is_some_and(|key| self.keys.is_blocked(&key, seq))
    }

    /// Acknowledges a message, whatever stage it is in. What it and others gave back.
    pub(in crate::pubsub::state) fn ack(&mut self, seq: u64) -> Option<Freed> {
        let freed = self.forget_leases(seq);
        let stored = Arc::clone(&self.entries.get(&seq)?.stored);
        self.unready(seq);
        self.unacked -= 1;
        match self.key_of(&stored).map(|key| self.keys.acked(&key, seq)) {
            Some(Acked::Held) => self.set_stage(seq, Stage::Held),
            Some(Acked::Done(others)) => {
                self.finish(seq);
                for other in others {
                    self.finish(other);
                }
            }
            None => self.finish(seq),
        }
        freed
    }

    /// A delivery failed: the message comes again after `pause`, its successors of the same key
    /// behind it. What those gave back.
    pub(in crate::pubsub::state) fn fail(
        &mut self,
        seq: u64,
        counts: bool,
        now: Time,
        pause: Duration,
    ) -> Vec<Freed> {
        let Some(entry) = self.entries.get_mut(&seq) else {
            return Vec::new();
        };
        if counts {
            entry.failures += 1;
        }
        let waits = !pause.is_zero();
        entry.stage = if waits {
            Stage::Waiting(now + pause)
        } else {
            Stage::Ready
        };
        if waits {
            self.due.insert((now + pause, Due::Retry(seq)));
        }
        let stored = Arc::clone(&entry.stored);
        let Some(key) = self.key_of(&stored) else {
            if !waits {
                self.ready.insert(seq);
            }
            return Vec::new();
        };
        let again = self.keys.failed(&key, seq, waits);
        let mut freed = Vec::new();
        // A successor that had failed by itself comes again behind this one: a late
        // acknowledgement must not take it out of the run. Only the first of what is pending can
        // have a late lease, since each failure becomes the first.
        if let Some(successor) = again.was_first {
            self.forget_late(successor);
        }
        for successor in again.out {
            freed.extend(self.forget_leases(successor));
            self.set_stage(successor, Stage::Ready);
        }
        for successor in again.acked {
            self.unacked += 1;
            self.set_stage(successor, Stage::Ready);
        }
        freed
    }

    /// The pause of a retry policy is over.
    pub(in crate::pubsub::state) fn rested(&mut self, seq: u64) {
        let Some(entry) = self.entries.get(&seq) else {
            return;
        };
        if !matches!(entry.stage, Stage::Waiting(_)) {
            return;
        }
        let stored = Arc::clone(&entry.stored);
        self.set_stage(seq, Stage::Ready);
        match self.key_of(&stored) {
            Some(key) => self.keys.rested(&key, seq),
            None => {
                self.ready.insert(seq);
            }
        }
    }

    /// Remembers to make a delivered message available again in spite of its lease.
    pub(in crate::pubsub::state) fn plan_early(&mut self, seq: u64, at: Time) {
        self.due.insert((at, Due::Early(seq)));
    }

    /// Takes a message away, whatever stage it is in: it was forwarded, or is too old.
    pub(in crate::pubsub::state) fn remove(&mut self, seq: u64) -> Option<Freed> {
        let freed = self.forget_leases(seq);
        self.unready(seq);
        let entry = self.entries.remove(&seq)?;
        if !matches!(entry.stage, Stage::Held | Stage::Retained) {
            self.unacked -= 1;
        }
        if entry.stage != Stage::Retained
            && let Some(key) = self.key_of(&entry.stored)
        {
            for other in self.keys.removed(&key, seq) {
                self.finish(other);
            }
        }
        freed
    }

    pub(super) fn set_stage(&mut self, seq: u64, stage: Stage) {
        if let Some(entry) = self.entries.get_mut(&seq) {
            entry.stage = stage;
        }
    }

    /// Takes a message off the lists of what is to be delivered.
    pub(super) fn unready(&mut self, seq: u64) {
        self.ready.remove(&seq);
        if let Some(Stage::Waiting(at)) = self.entries.get(&seq).map(|entry| entry.stage) {
            self.due.remove(&(at, Due::Retry(seq)));
        }
    }

    /// An acknowledged message is done with: kept for a seek, or dropped.
    pub(super) fn finish(&mut self, seq: u64) {
        if self.retains {
            self.set_stage(seq, Stage::Retained);
        } else {
            self.entries.remove(&seq);
        }
    }
}
