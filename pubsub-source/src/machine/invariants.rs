//! What must hold after every step.

use std::collections::BTreeSet;

#[cfg(test)]
use super::CallId;
use super::{Machine, batch::Stage, calls::Errand, cutting::is_acking};

impl Machine {
    /// Whether a request that is under way gives messages back.
    #[cfg(test)]
    pub(crate) fn gives_back(&self, call: CallId) -> bool {
        self.calls.gives_back(call)
    }

    /// Checks what only this crate can break.
    pub(crate) fn check_invariants(&self) {
        self.deliveries.check_invariants();
        self.seen.check_invariants();
        self.partials.check_invariants();
        self.streams.check_invariants();
        self.buffer.check_invariants();
        let mut acknowledging = BTreeSet::new();
        for (errand, id) in self.calls.deliveries() {
            let stage = self.deliveries.stage(id);
            match errand {
                Errand::Acknowledge => {
                    assert!(
                        is_acking(stage) || stage == Stage::Gone,
                        "{id:?} is {stage:?} while it is acknowledged"
                    );
                    assert!(
                        acknowledging.insert(id),
                        "{id:?} is acknowledged twice at once"
                    );
                }
                Errand::Release(_) => assert!(
                    matches!(stage, Stage::Releasing | Stage::Gone),
                    "{id:?} is {stage:?} while it is given back"
                ),
                Errand::Extend(_) => {}
            }
        }
        if let Some(runs) = &self.runs {
            runs.check_invariants();
            for (key, queued) in runs.queued().filter(|_| self.closed().is_none()) {
                let id = self.deliveries.current(queued);
                assert_eq!(self.deliveries.ordering_key(id), Some(key));
                assert!(
                    self.is_deliverable(queued),
                    "what waits in its key may be handed out"
                );
            }
            let mut lanes = BTreeSet::new();
            for lane in self.calls.lanes() {
                assert!(lanes.insert(lane), "one request of a lane at a time");
            }
        }
        for batch in self.deliveries.batches() {
            let ours = self
                .deliveries
                .ids_of(batch)
                .any(|id| self.is_extendable(id));
            assert!(
                !ours || self.leases.ends(batch).is_some(),
                "what is held and has not lapsed has a lease"
            );
        }
        if self.flow.is_parked() {
            let left = self.buffer.messages().next();
            assert!(left.is_none(), "what is parked holds nothing to hand out");
            for batch in self.deliveries.batches() {
                for id in self.deliveries.ids_of(batch) {
                    let stage = self.deliveries.stage(id);
                    assert_ne!(stage, Stage::Buffered, "{id:?} is given back when parked");
                }
            }
        }
        let in_buffer = self.buffer.messages().count();
        assert!(
            in_buffer <= self.buffer.held().items,
            "the buffer is counted"
        );
        let mut messages = BTreeSet::new();
        for message in self.buffer.messages() {
            assert!(
                messages.insert(message.delivery),
                "a message is buffered once"
            );
            assert!(
                self.is_deliverable(message.delivery),
                "what is in the buffer may be handed out"
            );
        }
    }
}
