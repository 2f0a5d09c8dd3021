//! What really happened, and what may not.

use std::collections::{BTreeMap, BTreeSet};

use connector_core::Epoch;

use super::{
    Violation,
    decoding::Unfinished,
    order::{AllProgress, Order},
};
use crate::state::SourceState;

/// A checkpoint on its way to be durable, or there.
#[derive(Clone)]
pub(super) struct Saved {
    pub(super) epoch: Epoch,
    pub(super) state: SourceState,
    /// What was published by the time of the cut lies below this number.
    pub(super) published: u64,
    /// How far each key had come out at the cut.
    pub(super) progress: AllProgress,
    /// The messages that were handed out in part at the cut.
    pub(super) unfinished: BTreeMap<u64, Unfinished>,
    /// What was handed out before the cut, in the line of incarnations that led to it.
    pub(super) covered: BTreeSet<u64>,
    /// What was committed and not confirmed at the cut, for a planted bug.
    pub(super) settling: BTreeSet<u64>,
}

/// All that an observer of everything knows.
#[derive(Default)]
pub(super) struct Truth {
    pub(super) published: BTreeSet<u64>,
    /// Exactly-once delivery was switched on or off.
    pub(super) switched: bool,
    /// Where the subscription keeps the order of keys.
    pub(super) order: Option<Order>,
    pub(super) acked: BTreeSet<u64>,
    /// Acknowledged and not looked at yet.
    pub(super) fresh: Vec<u64>,
    pub(super) durable: Vec<Saved>,
    /// Forwarded after too many attempts.
    pub(super) dead: BTreeSet<u64>,
    /// Acknowledged by another subscriber.
    pub(super) taken: BTreeSet<u64>,
    /// Settled by a host in an open epoch.
    pub(super) host_acked: BTreeSet<u64>,
    /// Ids that left the seen window early, and the messages that came again for it.
    pub(super) overflowed: usize,
    pub(super) forgotten: BTreeSet<u64>,
    /// Acknowledgements that were answered OK without an effect.
    pub(super) effectless: BTreeSet<u64>,
    /// Deliveries that left the server before an acknowledgement took effect and arrived after.
    pub(super) crossed: BTreeSet<u64>,
}

impl Truth {
    /// No early acknowledgement: whatever takes effect is covered by something durable, or was
    /// settled by the host in an open epoch.
    pub(super) fn check_acked(&mut self) -> Result<(), Violation> {
        for number in std::mem::take(&mut self.fresh) {
            let mut durable = self.durable.iter();
            let covered = durable.any(|saved| saved.covered.contains(&number));
            if !covered && !self.is_elsewhere(number) {
                return Err(format!(
                    "message {number} was acknowledged and nothing durable covers it"
                ));
            }
        }
        Ok(())
    }

    /// The newest checkpoint that was ever durable.
    pub(super) fn newest(&self) -> Option<&Saved> {
        self.durable.iter().max_by_key(|saved| saved.epoch)
    }

    /// Whether a message that is covered may come out again: an acknowledgement of it did nothing,
    /// or a delivery of it was under way while its acknowledgement took effect.
    pub(super) fn excuses(&self, number: u64) -> bool {
        self.effectless.contains(&number) || self.crossed.contains(&number)
    }

    /// Whether a message may have left the seen window early. Until it is covered again, every
    /// incarnation may hand it out; but there are no more such messages than ids that left.
    pub(super) fn may_have_forgotten(&mut self, number: u64) -> bool {
        self.forgotten.insert(number);
        self.forgotten.len() <= self.overflowed
    }

    /// Whether a message is done although no epoch may cover it.
    pub(super) fn is_elsewhere(&self, number: u64) -> bool {
        self.host_acked.contains(&number)
            || self.taken.contains(&number)
            || self.dead.contains(&number)
    }

    /// No loss: everything is acknowledged, and covered by the line that lives, settled by the host,
    /// or somebody else's; or it was forwarded after too many attempts.
    pub(super) fn check_no_loss(&self, covered: &BTreeSet<u64>) -> Result<(), Violation> {
        for number in self.published.difference(&self.dead) {
            if !self.acked.contains(number) {
                return Err(format!("message {number} was never acknowledged"));
            }
            if !covered.contains(number) && !self.is_elsewhere(*number) {
                return Err(format!(
                    "message {number} is lost: acknowledged, and in no epoch"
                ));
            }
        }
        Ok(())
    }
}
