//! What holds of a stage between any two calls.

use super::super::Machine;
use super::super::inflight::Stage;

impl Machine {
    pub(in super::super) fn check_staged_invariants(&self) {
        let Some(staged) = &self.staged else {
            return;
        };
        staged.holds.check_invariants();
        staged.quarantine.check_invariants();
        let of = |wanted: Stage| {
            let records = self.inflight.iter();
            let mut ids: Vec<_> = records
                .filter(|(_, record)| record.stage == wanted)
                .map(|(id, _)| id)
                .collect();
            ids.sort_unstable();
            ids
        };
        let mut held = staged.holds.records();
        held.sort_unstable();
        assert_eq!(of(Stage::Held), held, "what is held waits for its queue");
        for (id, record) in self.inflight.iter() {
            let released = record.release.is_some();
            match record.stage {
                Stage::Staged => assert!(!released, "{id:?} is not committed"),
                Stage::WithHandler => assert!(released != staged.unhandled.contains(&id)),
                Stage::Waiting
                | Stage::Aside
                | Stage::Sent
                | Stage::Parked(_)
                | Stage::Held
                | Stage::Handled => {
                    assert!(released, "nothing leaves before its commit: {id:?}");
                }
            }
        }
    }

    /// Verdicts that are owed for what is kept aside.
    pub(in super::super) fn owed_for_kept(&self) -> usize {
        let staged = self.staged.as_ref();
        staged.map_or(0, |staged| staged.quarantine.verdicts())
    }
}
