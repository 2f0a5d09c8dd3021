//! What the operator does about messages that are kept aside.

use std::collections::BTreeSet;

use connector_core::Limits;

use super::PubsubSink;
use crate::{Identity, Quarantined, clock};

impl<R> PubsubSink<R> {
    /// The messages kept aside: refused by the service after their checkpoint was durable, by a
    /// handler that would not take them over.
    ///
    /// They are part of every state, are not sent again by themselves, and hold up nothing; the
    /// builder's [`quarantine`](crate::SinkBuilder::quarantine) bounds them. Look at them, then
    /// [publish](Self::publish_quarantined) or [discard](Self::discard_quarantined) them.
    #[must_use]
    pub fn quarantined(&self) -> Vec<Quarantined> {
        let kept = self.shared.with(|state| state.machine.quarantined());
        let kept = kept.unwrap_or_default();
        kept.iter().map(|kept| Quarantined::clone(kept)).collect()
    }

    /// Stages messages again, with the identity they have, to leave with the next checkpoint.
    /// Answers how many there were.
    ///
    /// For when what was wrong is repaired, such as a topic's schema. A message that came into
    /// quarantine since the last durable checkpoint is left there. A crash before the next durable
    /// checkpoint puts them back.
    pub fn publish_quarantined(&mut self, mut which: impl FnMut(Identity) -> bool) -> usize {
        let wanted = self.chosen(&mut which);
        let staged = self.shared.with(|state| {
            let machine = &mut state.machine;
            let staged =
                machine.stage_quarantined(clock::now(), |identity| wanted.contains(&identity));
            // Under the lock: were the sink to end in between, room would return that was not taken.
            if staged != Limits::default() {
                self.shared.member.charge(staged);
            }
            staged
        });
        staged.unwrap_or_default().items
    }

    /// Forgets messages. Answers how many there were.
    ///
    /// A message that came into quarantine since the last durable checkpoint is left there. A crash
    /// before the next durable checkpoint puts them back.
    pub fn discard_quarantined(&mut self, mut which: impl FnMut(Identity) -> bool) -> usize {
        let wanted = self.chosen(&mut which);
        let discarded = self.shared.with(|state| {
            let machine = &mut state.machine;
            machine.discard_quarantined(|identity| wanted.contains(&identity))
        });
        discarded.unwrap_or_default()
    }

    /// The host's choice, made outside the lock.
    fn chosen(&self, which: &mut dyn FnMut(Identity) -> bool) -> BTreeSet<Identity> {
        let kept = self.shared.with(|state| state.machine.quarantined());
        let kept = kept.unwrap_or_default();
        let identities = kept.iter().map(|kept| kept.identity);
        identities.filter(|identity| which(*identity)).collect()
    }
}
