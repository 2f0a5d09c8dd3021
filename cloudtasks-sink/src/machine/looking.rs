//! Looking at queues before tasks are put into them, and now and then after.

use std::time::Instant;

use gcp_wire::proto::tasks::Queue;
use gcp_wire::{QueueName, RpcError};

use super::Machine;
use super::effect::{Effect, Report};
use super::gate::{Found, Look};
use crate::queue_state::QueueState;

impl Machine {
    /// The queue of every record, where there is one: it is looked at before any record comes.
    pub(crate) fn expect_queue(&mut self, now: Instant, queue: &QueueName) {
        self.gate.expect(now, queue);
    }

    /// GetQueue was answered.
    pub(crate) fn handle_queue(
        &mut self,
        now: Instant,
        queue: QueueName,
        answer: Result<Queue, RpcError>,
    ) {
        if self.phase.has_ended() {
            return;
        }
        let found = answer.as_ref().ok().map(Found::of);
        let before = self.gate.handle_look(now, &queue, found);
        let report = match (found, answer) {
            (Some(found), _) => match (before.state().is_stopped(), found.state.is_stopped()) {
                (_, true) if before.state() != found.state => {
                    let state = found.state;
                    Some(Report::QueueStopped { queue, state })
                }
                (true, false) => Some(Report::QueueRuns { queue }),
                (false, false) | (_, true) => None,
            },
            // Told once, and again only after a look that succeeded.
            (None, Err(error)) => {
                let is_news = matches!(before, Look::First | Look::Found(_));
                is_news.then_some(Report::QueueUnseen { queue, error })
            }
            (None, Ok(_)) => None,
        };
        self.effects.extend(report.map(Effect::Report));
    }

    /// The next queue to look at.
    pub(super) fn next_look(&mut self) -> Option<Effect> {
        let queue = self.gate.next_look()?;
        self.stats.queue_looks += 1;
        Some(Effect::ReadQueue { queue })
    }

    /// The state of every queue that is looked at.
    pub(crate) fn queue_states(&self) -> Vec<(QueueName, QueueState)> {
        let states = self.gate.states();
        states
            .map(|(queue, state)| (queue.clone(), state))
            .collect()
    }

    /// The states that changed since the last call.
    #[cfg(feature = "metrics")]
    pub(crate) fn take_queue_states(&mut self) -> Vec<(QueueName, QueueState)> {
        self.gate.take_changed()
    }
}
