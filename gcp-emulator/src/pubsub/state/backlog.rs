//! The messages of a subscription, and the leases on them.
//!
//! Every message is in exactly one [`Stage`]. The indexes beside the messages (ready ones, keys,
//! deadlines) follow the stage; [`Backlog::check_invariants`] says how.

mod invariants;
mod leasing;
mod settling;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::message::Stored;
use super::ordering::{Holder, Keys};
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
}
