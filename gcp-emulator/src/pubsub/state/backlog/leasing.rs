//! Giving, moving and ending leases.

use super::{Backlog, Due, Entry, Freed, Lease, Stage, Standing};
use crate::pubsub::state::ordering::Holder;
use crate::pubsub::state::settings::LateAcks;
use crate::time::Time;

impl Backlog {
    /// Delivers a ready message under a new lease. Nothing when it is not ready.
    pub(in crate::pubsub::state) fn lease(
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

    pub(in crate::pubsub::state) fn standing(&self, number: u64) -> (Standing, Option<Lease>) {
        match self.leases.get(&number) {
            Some(lease) if lease.live => (Standing::Live, Some(*lease)),
            Some(lease) => (Standing::Late, Some(*lease)),
            None => (Standing::Gone, None),
        }
    }

    /// Moves the end of a live lease.
    pub(in crate::pubsub::state) fn extend(&mut self, number: u64, deadline: Time) {
        if let Some(lease) = self.leases.get_mut(&number)
            && lease.live
        {
            self.due.remove(&(lease.deadline, Due::Lease(number)));
            lease.deadline = deadline;
            self.due.insert((deadline, Due::Lease(number)));
        }
    }

    /// Ends a live lease without a word about the message; late acknowledgements may count.
    pub(in crate::pubsub::state) fn end_lease(&mut self, number: u64) -> Option<Freed> {
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

    /// The live lease of a message.
    pub(in crate::pubsub::state) fn live_lease(&self, seq: u64) -> Option<u64> {
        let number = self.entries.get(&seq)?.lease?;
        self.leases
            .get(&number)
            .filter(|lease| lease.live)
            .map(|_| number)
    }

    /// The live leases a pull stream holds, in the order they were given.
    pub(in crate::pubsub::state) fn leases_of(&self, stream: u64) -> Vec<u64> {
        self.leases
            .iter()
            .filter(|(_, lease)| lease.live && lease.holder == Holder::Stream(stream))
            .map(|(number, _)| *number)
            .collect()
    }

    /// Forgets the ended leases of a message, so that no late acknowledgement counts.
    pub(in crate::pubsub::state) fn forget_late(&mut self, seq: u64) {
        let live = self.live_lease(seq);
        if live.is_none() {
            self.forget_leases(seq);
        }
    }

    /// Forgets every lease on a message.
    pub(super) fn forget_leases(&mut self, seq: u64) -> Option<Freed> {
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
}
