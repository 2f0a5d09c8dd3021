//! What must hold of all keys after every step.

use super::{KeyNo, Queued, Runs};
use crate::delivery::DeliveryId;

impl Runs {
    /// Checks what only this type can break.
    pub(in crate::machine) fn check_invariants(&self) {
        assert_eq!(self.names.len(), self.runs.len());
        let mut revoked_in_all = 0;
        for (key, run) in &self.runs {
            assert_eq!(self.names.get(&run.name), Some(key));
            assert!(run.out <= run.newest, "what is out was let through");
            assert!(run.turn <= self.turns);
            let is_known = |queued: &&Queued| self.revoked_key(queued.id) == Some(*key);
            let revoked = run.queued.iter().filter(|queued| queued.revoked);
            assert!(revoked.clone().all(|queued| is_known(&queued)));
            let revoked = revoked.count();
            revoked_in_all += revoked;
            let unsure = run.gap.as_ref().map_or(0, |gap| gap.unsure);
            if let Some(gap) = &run.gap {
                gap.check_invariants();
            }
            assert_eq!(
                revoked, unsure,
                "the handle is asked about what was revoked"
            );
        }
        assert_eq!(revoked_in_all, self.revoked.len(), "and about nothing else");
    }

    /// What waits to be handed out, by key.
    pub(in crate::machine) fn queued(&self) -> impl Iterator<Item = (KeyNo, DeliveryId)> + '_ {
        self.runs
            .iter()
            .flat_map(|(key, run)| run.queued.iter().map(move |queued| (key, queued)))
            .filter(|(_, queued)| !queued.revoked)
            .map(|(key, queued)| (*key, queued.id))
    }
}
