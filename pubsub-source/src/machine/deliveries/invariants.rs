//! What must hold of all deliveries after every step.

use connector_core::ledger::Standing;

use super::{Deliveries, Marks, Stage, ids};

impl Deliveries {
    /// Checks what only this type can break.
    pub(in crate::machine) fn check_invariants(&self) {
        self.ledger.check_invariants();
        let (mut leased, mut releasing, mut indexed, mut in_ledger) = (0, 0, 0, 0);
        for (number, batch) in self.batches.iter() {
            let mut live = 0;
            for id in ids(number, batch.len()) {
                let stage = batch.stage(id.index());
                if stage == Stage::Gone {
                    continue;
                }
                live += 1;
                if stage == Stage::Releasing {
                    releasing += 1;
                    continue;
                }
                if stage == Stage::Superseded {
                    continue;
                }
                if !batch.marks(id.index()).has(Marks::LAPSED) {
                    leased += 1;
                }
                indexed += 1;
                let key = self.key(id).expect("what is held has a key");
                assert_eq!(
                    self.find(key),
                    Some(id),
                    "the index names the newest delivery"
                );
                match stage {
                    Stage::Out | Stage::Acking => {
                        in_ledger += 1;
                        let standing = self.ledger.standing(batch.place(id.index()));
                        assert_ne!(standing, Standing::Gone, "{id:?} is in the ledger");
                        if stage == Stage::Acking {
                            assert!(
                                matches!(standing, Standing::Settling(_)),
                                "only what is committed is acknowledged"
                            );
                        }
                    }
                    Stage::Buffered
                    | Stage::HostAcking
                    | Stage::ReAcking
                    | Stage::Superseded
                    | Stage::Releasing
                    | Stage::Gone => {}
                }
            }
            assert_eq!(live, batch.live(), "live deliveries are counted");
            assert!(live > 0, "an empty batch is dropped");
        }
        assert_eq!(leased, self.leased, "leases are counted");
        assert_eq!(releasing, self.releasing, "releases are counted");
        assert_eq!(indexed, self.index.len(), "what is held is indexed, once");
        assert!(
            in_ledger <= self.ledger.len(),
            "every delivery that is out has a place"
        );
        assert_eq!(self.forwards.len(), self.origins.len());
        for (origin, id) in &self.forwards {
            assert_eq!(self.origins.get(id), Some(origin));
            assert_eq!(self.stage(*origin), Stage::Gone);
            assert_ne!(
                self.stage(*id),
                Stage::Gone,
                "a forward leads to something held"
            );
        }
    }
}
