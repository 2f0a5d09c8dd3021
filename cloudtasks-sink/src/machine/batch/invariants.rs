//! What holds between any two calls.

use super::call::Step;
use super::{Batches, PER_QUEUE};

impl Batches {
    pub(in crate::machine) fn check_invariants(&self) {
        let steps = |step: Step| self.calls.values().filter(|call| call.step == step).count();
        assert_eq!(
            steps(Step::Creating) + steps(Step::Reading),
            self.sent,
            "calls with a stream are counted"
        );
        assert!(self.sent <= self.streams);
        assert_eq!(
            steps(Step::Create) + steps(Step::Read),
            self.due.len() + self.again.len(),
            "every other call comes up by itself"
        );
        for (queue, lane) in &self.lanes {
            let of = self.calls.values().filter(|call| call.queue == *queue);
            assert_eq!(of.count(), lane.calls, "calls of {queue} are counted");
            assert_eq!(lane.is_ready, self.ready.contains(queue));
            let is_due = !lane.waiting.is_empty() && lane.calls < PER_QUEUE;
            assert!(!is_due || lane.is_ready, "{queue} is in line");
        }
    }
}
