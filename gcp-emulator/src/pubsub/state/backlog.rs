//! The messages of a subscription, and the leases on them.
//!
//! Every message is in exactly one [`Stage`]. The indexes beside the messages (ready ones, keys,
//! deadlines) follow the stage; [`Backlog::check_invariants`] says how.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::message::Stored;
use super::ordering::{Acked, Holder, Keys};
use super::settings::LateAcks;
use crate::time::Time;

/// A message on a subscription.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) stored: Arc<Stored>,
    /// Deliveries that ended by a negative acknowledgement or a deadline.
    pub(super) failures: u32,
    pub(super) stage: Stage,
    /// The newest lease, while an acknowledgement under it could count.
    lease: Option<u64>,
    /// Older leases whose acknowledgement counts, under [`LateAcks::Always`] only.
    older: Vec<u64>,
}

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// To be delivered.
    Ready,
    /// To be delivered at this time.
    Waiting(Time),
    /// Delivered, its lease alive.
    Leased,
    /// Acknowledged, an earlier message of its key is not.
    Held,
    /// Acknowledged and kept for a seek.
    Retained,
}

/// A lease on a delivered message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) seq: u64,
    pub(super) holder: Holder,
    deadline: Time,
    /// Whether the lease is in force; one that is not may still be acknowledged late.
    live: bool,
}

/// What becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Lease(u64),
    Retry(u64),
    Early(u64),
}

/// A lease that ended: whose room it gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Freed {
    pub(super) holder: Holder,
    pub(super) bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Backlog {
    entries: BTreeMap<u64, Entry>,
    leases: BTreeMap<u64, Lease>,
    ready: BTreeSet<u64>,
    keys: Keys,
    due: BTreeSet<(Time, Due)>,
    unacked: usize,
    outstanding: usize,
    outstanding_bytes: usize,
    ordered: bool,
    retains: bool,
}

/// What a lease names now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The lease is in force.
    Live,
    /// The lease is over; an acknowledgement may still count.
    Late,
    /// The lease is over and forgotten.
    Gone,
}

impl Backlog {
    pub(super) fn new(ordered: bool, retains: bool) -> Self {
        Self {
            ordered,
            retains,
            ..Self::default()
        }
    }

    /// Whether acknowledged messages are kept for a seek.
    pub(super) fn retain_acked(&mut self, retains: bool) {
        self.retains = retains;
        if !retains {
            self.entries
                .retain(|_, entry| entry.stage != Stage::Retained);
        }
    }

    pub(super) const fn unacked(&self) -> usize {
        self.unacked
    }

    pub(super) const fn outstanding(&self) -> (usize, usize) {
        (self.outstanding, self.outstanding_bytes)
    }

    pub(super) fn oldest(&self) -> Option<&Stored> {
        self.entries
            .values()
            .next()
            .map(|entry| entry.stored.as_ref())
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(super) fn take_due(&mut self, now: Time) -> Option<Due> {
        let (at, due) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        Some(due)
    }

    pub(super) fn entry(&self, seq: u64) -> Option<&Entry> {
        self.entries.get(&seq)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    pub(super) fn seq_of(&self, message_id: &str) -> Option<u64> {
        self.entries()
            .find(|entry| &*entry.stored.id == message_id)
            .map(|entry| entry.stored.seq)
    }

    fn key_of(&self, stored: &Stored) -> Option<Arc<str>> {
        (self.ordered && !stored.key.is_empty()).then(|| Arc::clone(&stored.key))
    }

    /// Adds a message that is to be delivered.
    pub(super) fn add(&mut self, stored: Arc<Stored>) {
        self.place(stored, Stage::Ready);
    }

    /// Adds an acknowledged message, kept for a seek.
    pub(super) fn add_retained(&mut self, stored: Arc<Stored>) {
        if self.retains {
            self.place(stored, Stage::Retained);
        }
    }

    fn place(&mut self, stored: Arc<Stored>, stage: Stage) {
        let seq = stored.seq;
        let key = self.key_of(&stored);
        let entry = Entry {
            stored,
            failures: 0,
            stage,
            lease: None,
            older: Vec::new(),
        };
        if stage == Stage::Ready {
            self.unacked += 1;
            match key {
                Some(key) => self.keys.add(&key, seq),
                None => {
                    self.ready.insert(seq);
                }
            }
        }
        self.entries.insert(seq, entry);
    }

    /// The earliest message that may be delivered to `to`.
    pub(super) fn next_for(&self, to: Holder) -> Option<u64> {
        let keyed = self.keys.next_for(to);
        match (self.ready.first().copied(), keyed) {
            (Some(plain), Some(keyed)) => Some(plain.min(keyed)),
            (one, other) => one.or(other),
        }
    }

    /// How many messages could be delivered, whoever may take them.
    pub(super) fn available(&self) -> usize {
        self.ready.len() + self.keys.available()
    }

    /// Delivers a ready message under a new lease. Nothing when it is not ready.
    pub(super) fn lease(
        &mut self,
        seq: u64,
        number: u64,
        holder: Holder,
        deadline: Time,
        late: LateAcks,
    ) -> Option<&Entry> {
        let key = self
            .entries
            .get(&seq)
            .and_then(|entry| self.key_of(&entry.stored));
        let entry = self
            .entries
            .get_mut(&seq)
            .filter(|entry| entry.stage == Stage::Ready)?;
        if let Some(superseded) = entry.lease.replace(number) {
            match late {
                LateAcks::Always => entry.older.push(superseded),
                LateAcks::UntilRedelivered | LateAcks::Never => {
                    self.leases.remove(&superseded);
                }
            }
        }
        entry.stage = Stage::Leased;
        match key {
            Some(key) => self.keys.delivered(&key, seq, holder),
            None => {
                self.ready.remove(&seq);
            }
        }
        self.outstanding += 1;
        self.outstanding_bytes += entry.stored.size;
        self.leases.insert(
            number,
            Lease {
                seq,
                holder,
                deadline,
                live: true,
            },
        );
        self.due.insert((deadline, Due::Lease(number)));
        Some(entry)
    }

    pub(super) fn standing(&self, number: u64) -> (Standing, Option<Lease>) {
        match self.leases.get(&number) {
            Some(lease) if lease.live => (Standing::Live, Some(*lease)),
            Some(lease) => (Standing::Late, Some(*lease)),
            None => (Standing::Gone, None),
        }
    }

    /// Moves the end of a live lease.
    pub(super) fn extend(&mut self, number: u64, deadline: Time) {
        if let Some(lease) = self.leases.get_mut(&number)
            && lease.live
        {
            self.due.remove(&(lease.deadline, Due::Lease(number)));
            lease.deadline = deadline;
            self.due.insert((deadline, Due::Lease(number)));
        }
    }

    /// Ends a live lease without a word about the message; late acknowledgements may count.
    pub(super) fn end_lease(&mut self, number: u64) -> Option<Freed> {
        let lease = self.leases.get_mut(&number).filter(|lease| lease.live)?;
        lease.live = false;
        let lease = *lease;
        self.due.remove(&(lease.deadline, Due::Lease(number)));
        let bytes = self
            .entries
            .get(&lease.seq)
            .map_or(0, |entry| entry.stored.size);
        self.outstanding -= 1;
        self.outstanding_bytes -= bytes;
        Some(Freed {
            holder: lease.holder,
            bytes,
        })
    }

    /// Whether acknowledging a message would leave an earlier one of its key behind.
    pub(super) fn is_out_of_order(&self, seq: u64) -> bool {
        self.entries
            .get(&seq)
            .and_then(|entry| self.key_of(&entry.stored))
            .is_some_and(|key| self.keys.is_blocked(&key, seq))
    }

    /// Acknowledges a message, whatever stage it is in. What it and others gave back.
    pub(super) fn ack(&mut self, seq: u64) -> Option<Freed> {
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
    pub(super) fn fail(
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

    /// Forgets the ended leases of a message, so that no late acknowledgement counts.
    pub(super) fn forget_late(&mut self, seq: u64) {
        let live = self.live_lease(seq);
        if live.is_none() {
            self.forget_leases(seq);
        }
    }

    /// The pause of a retry policy is over.
    pub(super) fn rested(&mut self, seq: u64) {
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
    pub(super) fn plan_early(&mut self, seq: u64, at: Time) {
        self.due.insert((at, Due::Early(seq)));
    }

    /// The live lease of a message.
    pub(super) fn live_lease(&self, seq: u64) -> Option<u64> {
        let number = self.entries.get(&seq)?.lease?;
        self.leases
            .get(&number)
            .filter(|lease| lease.live)
            .map(|_| number)
    }

    /// The live leases a pull stream holds, in the order they were given.
    pub(super) fn leases_of(&self, stream: u64) -> Vec<u64> {
        self.leases
            .iter()
            .filter(|(_, lease)| lease.live && lease.holder == Holder::Stream(stream))
            .map(|(number, _)| *number)
            .collect()
    }

    /// Takes a message away, whatever stage it is in: it was forwarded, or is too old.
    pub(super) fn remove(&mut self, seq: u64) -> Option<Freed> {
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

    /// Takes everything away. What was leased stays with its clients as ack ids without meaning.
    pub(super) fn clear(&mut self) -> Vec<Freed> {
        let freed = self
            .leases
            .values()
            .filter(|lease| lease.live)
            .map(|lease| Freed {
                holder: lease.holder,
                bytes: self
                    .entries
                    .get(&lease.seq)
                    .map_or(0, |entry| entry.stored.size),
            })
            .collect();
        *self = Self::new(self.ordered, self.retains);
        freed
    }

    fn set_stage(&mut self, seq: u64, stage: Stage) {
        if let Some(entry) = self.entries.get_mut(&seq) {
            entry.stage = stage;
        }
    }

    /// Takes a message off the lists of what is to be delivered.
    fn unready(&mut self, seq: u64) {
        self.ready.remove(&seq);
        if let Some(Stage::Waiting(at)) = self.entries.get(&seq).map(|entry| entry.stage) {
            self.due.remove(&(at, Due::Retry(seq)));
        }
    }

    /// An acknowledged message is done with: kept for a seek, or dropped.
    fn finish(&mut self, seq: u64) {
        if self.retains {
            self.set_stage(seq, Stage::Retained);
        } else {
            self.entries.remove(&seq);
        }
    }

    /// Forgets every lease on a message.
    fn forget_leases(&mut self, seq: u64) -> Option<Freed> {
        let entry = self.entries.get_mut(&seq)?;
        let newest = entry.lease.take();
        let older = std::mem::take(&mut entry.older);
        for number in older {
            self.leases.remove(&number);
        }
        let number = newest?;
        let freed = self.end_lease(number);
        self.leases.remove(&number);
        freed
    }

    /// Panics when the parts contradict each other.
    pub(super) fn check_invariants(&self) {
        self.keys.check_invariants();
        let mut unacked = 0;
        let mut leased = (0, 0);
        for (seq, entry) in &self.entries {
            let keyed = self.key_of(&entry.stored).is_some();
            let live = entry.lease.and_then(|number| self.leases.get(&number));
            let live = live.filter(|lease| lease.live);
            assert_eq!(
                live.is_some(),
                entry.stage == Stage::Leased,
                "lease of {seq}"
            );
            let ready = entry.stage == Stage::Ready && !keyed;
            assert_eq!(self.ready.contains(seq), ready, "readiness of {seq}");
            match entry.stage {
                Stage::Ready => unacked += 1,
                Stage::Waiting(at) => {
                    unacked += 1;
                    assert!(self.due.contains(&(at, Due::Retry(*seq))), "pause of {seq}");
                }
                Stage::Leased => {
                    unacked += 1;
                    leased.0 += 1;
                    leased.1 += entry.stored.size;
                }
                Stage::Held => assert!(keyed, "{seq} is held without a key"),
                Stage::Retained => assert!(self.retains, "{seq} is kept for nothing"),
            }
        }
        assert_eq!(self.unacked, unacked, "count of unacknowledged messages");
        assert_eq!(
            (self.outstanding, self.outstanding_bytes),
            leased,
            "outstanding"
        );
        for (number, lease) in &self.leases {
            assert!(
                self.entries.contains_key(&lease.seq),
                "lease {number} of nothing"
            );
            let due = self.due.contains(&(lease.deadline, Due::Lease(*number)));
            assert_eq!(due, lease.live, "deadline of lease {number}");
        }
    }
}
