//! What really happened, and what may not.

use std::collections::BTreeSet;

use bytes::Bytes;
use connector_core::Epoch;

use super::event::Delivered;
use crate::simulation::Violation;

/// A checkpoint that a coordinator put together.
pub(super) struct Taken {
    /// The run of the job that took it.
    pub(super) job: u32,
    pub(super) epoch: Epoch,
    /// The state of each reader.
    pub(super) states: Vec<Bytes>,
    /// What was handed out before the cuts, in the line of runs that led to it.
    pub(super) covered: BTreeSet<Delivered>,
}

/// All that an observer of everything knows.
#[derive(Default)]
pub(super) struct Truth {
    pub(super) published: u64,
    pub(super) acked: BTreeSet<Delivered>,
    /// Every checkpoint whose save was tried. The store keeps an index into these.
    pub(super) taken: Vec<Taken>,
    /// Acknowledgements that were answered OK without an effect.
    pub(super) effectless: BTreeSet<Delivered>,
    /// Deliveries that left the server before an acknowledgement took effect and arrived after.
    pub(super) crossed: BTreeSet<Delivered>,
}

impl Truth {
    /// No early acknowledgement: whatever takes effect is covered by what the store's rightful
    /// owner made durable.
    pub(super) fn check_acked(
        &mut self,
        fresh: Vec<Delivered>,
        durable: Option<usize>,
    ) -> Result<(), Violation> {
        for message in fresh {
            let covered = durable.is_some_and(|index| self.taken[index].covered.contains(&message));
            if !covered {
                return Err(format!(
                    "message {message:?} was acknowledged, and the state in the store does not cover it"
                ));
            }
            self.acked.insert(message);
        }
        Ok(())
    }

    /// One owner: what the newest one's store shows is its own, or was there when it opened it.
    pub(super) fn check_owner(
        &self,
        owner: u32,
        inherited: Option<usize>,
        durable: Option<usize>,
    ) -> Result<(), Violation> {
        let own = durable.is_some_and(|index| self.taken[index].job == owner);
        if own || durable == inherited {
            return Ok(());
        }
        let by = durable.map(|index| self.taken[index].job);
        Err(format!(
            "run {owner} owns the store, and it shows a save of run {by:?}"
        ))
    }

    /// Whether a message that is named may come out again: an acknowledgement of it did nothing, or
    /// a delivery of it was under way while its acknowledgement took effect.
    pub(super) fn excuses(&self, message: Delivered) -> bool {
        self.effectless.contains(&message) || self.crossed.contains(&message)
    }

    /// No loss: every message of every subscription is acknowledged, and in the line that lives.
    pub(super) fn check_no_loss(
        &self,
        subscriptions: usize,
        covered: &BTreeSet<Delivered>,
    ) -> Result<(), Violation> {
        for subscription in 0..subscriptions {
            for number in 0..self.published {
                let message = (subscription, number);
                if !self.acked.contains(&message) {
                    return Err(format!("message {message:?} was never acknowledged"));
                }
                if !covered.contains(&message) {
                    return Err(format!(
                        "message {message:?} is lost: acknowledged, and in no epoch"
                    ));
                }
            }
        }
        Ok(())
    }
}
