//! Messages kept aside for the operator, and how they become durable there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use connector_core::{Epoch, Limits, ledger::Place};

use crate::staged::{Identity, Quarantined};

/// What is kept aside, bounded.
///
/// A message that was just put here is named as one to be published by every state that is durable
/// so far. It is safe to forget there only when a state that names it as kept aside is durable:
/// until then its commit is not complete, so that the host does not mark it as settled.
#[derive(Debug)]
pub(super) struct Quarantine {
    limits: Limits,
    kept: Vec<Arc<Quarantined>>,
    /// What `kept` amounts to.
    amount: Limits,
    /// Those whose commit waits for a state that names them as kept aside.
    owed: BTreeMap<Place, Owed>,
    /// Epochs sealed since, while anything is owed: where an aborted epoch folds into.
    sealed: BTreeSet<Epoch>,
    /// Since when commits wait for nothing but that.
    waiting_since: Option<Instant>,
}

#[derive(Debug)]
struct Owed {
    identity: Identity,
    /// The epoch of the first state that names it as kept aside.
    named: Option<Epoch>,
}

impl Quarantine {
    pub(super) fn new(limits: Limits, kept: Vec<Arc<Quarantined>>) -> Self {
        Self {
            limits,
            amount: amount_of(&kept),
            kept,
            owed: BTreeMap::new(),
            sealed: BTreeSet::new(),
            waiting_since: None,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether one more message may be kept: below the bound, never whether it fits.
    pub(super) fn has_room(&self) -> bool {
        self.limits.admits(self.amount)
    }

    pub(super) fn keep(&mut self, place: Place, message: Quarantined) {
        let owed = Owed {
            identity: message.identity,
            named: None,
        };
        self.owed.insert(place, owed);
        self.put_back(Arc::new(message));
    }

    pub(super) fn kept(&self) -> &[Arc<Quarantined>] {
        &self.kept
    }

    /// Messages whose commit waits for a state.
    pub(super) fn owed(&self) -> usize {
        self.owed.len()
    }

    /// Keeps what was taken out after all.
    pub(super) fn put_back(&mut self, kept: Arc<Quarantined>) {
        self.amount.items += 1;
        self.amount.bytes += kept.message.len();
        self.kept.push(kept);
    }

    /// Takes out what is kept, except what no durable state names as kept aside yet.
    pub(super) fn take(&mut self, which: impl Fn(Identity) -> bool) -> Vec<Arc<Quarantined>> {
        let owed: BTreeSet<Identity> = self.owed.values().map(|owed| owed.identity).collect();
        let taken: Vec<Arc<Quarantined>> = self
            .kept
            .extract_if(.., |kept| {
                which(kept.identity) && !owed.contains(&kept.identity)
            })
            .collect();
        let Limits { items, bytes, .. } = amount_of(&taken);
        self.amount.items -= items;
        self.amount.bytes -= bytes;
        taken
    }

    /// The state of `epoch` names all that is kept.
    pub(super) fn sealed(&mut self, epoch: Epoch) {
        if self.owed.is_empty() {
            return;
        }
        self.sealed.insert(epoch);
        for owed in self.owed.values_mut() {
            owed.named.get_or_insert(epoch);
        }
    }

    /// The state of `epoch` will never be durable. True when thereby no state on its way names a
    /// message as kept aside that has to be.
    pub(super) fn aborted(&mut self, epoch: Epoch) -> bool {
        if !self.sealed.remove(&epoch) {
            return false;
        }
        let next = self.sealed.range(epoch..).next().copied();
        for owed in self.owed.values_mut() {
            if owed.named == Some(epoch) {
                owed.named = next;
            }
        }
        self.owed.values().any(|owed| owed.named.is_none())
    }

    /// The state of `epoch` is durable. Answers the messages that thereby have their verdict.
    pub(super) fn committed(&mut self, epoch: Epoch) -> Vec<Place> {
        self.sealed.retain(|sealed| *sealed > epoch);
        let settled: Vec<Place> = self
            .owed
            .extract_if(.., |_, owed| owed.named.is_some_and(|named| named <= epoch))
            .map(|(place, _)| place)
            .collect();
        if self.owed.is_empty() {
            self.sealed.clear();
        }
        settled
    }

    /// Watches how long commits wait for nothing but a state. `waiting` says that they do.
    pub(super) fn watch(&mut self, now: Instant, waiting: bool) {
        if !waiting {
            self.waiting_since = None;
        } else if self.waiting_since.is_none() {
            self.waiting_since = Some(now);
        }
    }

    /// When commits have waited for a state for `patience`.
    pub(super) fn deadline(&self, patience: Duration) -> Option<Instant> {
        self.waiting_since?.checked_add(patience)
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        assert_eq!(
            self.amount,
            amount_of(&self.kept),
            "the sum is that of what is kept"
        );
    }
}

fn amount_of(kept: &[Arc<Quarantined>]) -> Limits {
    let bytes = kept.iter().map(|kept| kept.message.len()).sum();
    Limits::new(kept.len(), bytes)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use connector_core::ledger::Ledger;

    use super::*;

    fn message(sequence: u64) -> Quarantined {
        Quarantined {
            identity: Identity {
                incarnation: 1,
                sequence,
            },
            topic: "projects/demo/topics/orders".parse().unwrap(),
            message: Bytes::from_static(b"0123456789"),
            reason: "no".to_owned(),
        }
    }

    fn quarantine() -> (Quarantine, Place) {
        let mut quarantine = Quarantine::new(Limits::new(2, 100), Vec::new());
        let place = Ledger::new().add(());
        quarantine.keep(place, message(0));
        (quarantine, place)
    }

    #[test]
    fn a_message_has_its_verdict_when_a_state_that_keeps_it_aside_is_durable() {
        let (mut quarantine, place) = quarantine();
        assert!(quarantine.committed(Epoch::new(1)).is_empty());
        quarantine.sealed(Epoch::new(2));
        quarantine.sealed(Epoch::new(3));
        assert_eq!(quarantine.committed(Epoch::new(2)), [place]);
        assert!(quarantine.committed(Epoch::new(3)).is_empty(), "once");
        assert_eq!(quarantine.kept().len(), 1, "and is kept");
    }

    #[test]
    fn an_aborted_state_vouches_for_nothing_and_the_next_one_does() {
        let (mut quarantine, place) = quarantine();
        quarantine.sealed(Epoch::new(2));
        quarantine.sealed(Epoch::new(4));
        assert!(!quarantine.aborted(Epoch::new(2)), "epoch 4 names it");
        assert!(quarantine.committed(Epoch::new(2)).is_empty());
        assert_eq!(quarantine.committed(Epoch::new(4)), [place]);

        let (mut quarantine, place) = self::quarantine();
        quarantine.sealed(Epoch::new(2));
        assert!(quarantine.aborted(Epoch::new(2)), "none names it");
        quarantine.sealed(Epoch::new(3));
        assert!(quarantine.committed(Epoch::new(2)).is_empty());
        assert_eq!(quarantine.committed(Epoch::new(3)), [place]);
    }

    #[test]
    fn nothing_is_taken_out_before_its_commit_is_complete() {
        let (mut quarantine, _) = quarantine();
        assert!(quarantine.take(|_| true).is_empty());
        quarantine.sealed(Epoch::new(2));
        quarantine.committed(Epoch::new(2));
        assert_eq!(quarantine.take(|_| true).len(), 1);
        assert!(quarantine.kept().is_empty());
    }

    #[test]
    fn the_bound_asks_whether_what_is_kept_is_below_it() {
        let (mut quarantine, _) = quarantine();
        assert!(quarantine.has_room());
        let mut ledger = Ledger::new();
        ledger.add(());
        quarantine.keep(ledger.add(()), message(1));
        assert!(!quarantine.has_room());
    }

    #[test]
    fn what_leaves_makes_room_in_messages_and_in_bytes_and_what_was_restored_takes_it() {
        let limits = Limits::new(100, 15);
        let mut quarantine = Quarantine::new(limits, vec![Arc::new(message(0))]);
        quarantine.check_invariants();
        assert!(quarantine.has_room(), "10 of 15 bytes");
        quarantine.keep(Ledger::new().add(()), message(1));
        quarantine.check_invariants();
        assert!(!quarantine.has_room());
        let taken = quarantine.take(|_| true);
        quarantine.check_invariants();
        assert_eq!(taken.len(), 1, "the other is owed");
        assert!(quarantine.has_room());
        for kept in taken {
            quarantine.put_back(kept);
        }
        quarantine.check_invariants();
        assert!(!quarantine.has_room());
    }
}
