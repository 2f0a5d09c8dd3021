//! What holds between the parts of a backlog, whatever happened.

use super::{Backlog, Due, Stage};

impl Backlog {
    /// Panics when the parts contradict each other.
    pub(in crate::pubsub::state) fn check_invariants(&self) {
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
