//! What only the machine itself can break.

use connector_core::ledger::Standing;

use super::Machine;
use super::inflight::Stage;

impl Machine {
    /// Checks what only this type can break.
    pub(crate) fn check_invariants(&self) {
        self.ledger.check_invariants();
        self.inflight.check_invariants();
        self.gate.check_invariants();
        if let Some(batches) = &self.batches {
            batches.check_invariants();
        }
        let mut parked = 0;
        let mut with_handler = Vec::new();
        let mut aside = Vec::new();
        for (id, record) in self.inflight.iter() {
            assert_ne!(
                self.ledger.standing(record.place),
                Standing::Gone,
                "it has no verdict"
            );
            match record.stage {
                Stage::Staged | Stage::Waiting | Stage::Sent | Stage::Held | Stage::Handled => {}
                Stage::Aside => aside.push(id),
                Stage::Parked(due) => {
                    assert!(
                        self.parking.contains(id, due),
                        "a parked record has a due time"
                    );
                    parked += 1;
                }
                Stage::WithHandler => with_handler.push(id),
            }
        }
        assert_eq!(parked, self.parking.len(), "nothing else is parked");
        let mut held_back = self.gate.records();
        held_back.sort_unstable();
        assert_eq!(aside, held_back, "the gate has the records set aside");
        let mut handled = self.handling.records();
        handled.sort_unstable();
        assert_eq!(
            with_handler, handled,
            "the handler has the rejected ones and no other"
        );
        self.check_staged_invariants();
        if self.phase.has_ended() {
            assert!(self.inflight.is_empty() && self.barriers.is_empty());
            assert_eq!(self.poll_timeout(), None, "an end waits for nothing");
        } else {
            assert_eq!(
                self.ledger.len(),
                self.inflight.len() + self.owed_for_kept(),
                "the ledger knows the same records"
            );
            let waits = !self.stages() && !self.inflight.is_empty();
            assert_eq!(self.watch.deadline().is_some(), waits);
        }
    }
}
