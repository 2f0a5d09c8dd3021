//! Deliveries of a batch that go the same way together.

use std::ops::Range;

use connector_core::ledger::{Ledger, Place};

use super::{Batch, Marks, Stage};
use crate::machine::key::MessageKey;

impl Batch {
    /// How many deliveries from this one on are in a stage, at most `most`.
    pub(in crate::machine) fn count_in(&self, stage: Stage, index: usize, most: usize) -> usize {
        let stages = self.stages.iter().skip(index).take(most);
        stages.take_while(|one| **one == stage).count()
    }

    /// Whether all of these are in a stage, and nothing else is to be said of any.
    pub(in crate::machine) fn are_plainly(&self, stage: Stage, run: Range<usize>) -> bool {
        let stages = self.stages.get(run.clone());
        stages.is_some_and(|stages| stages.iter().all(|one| *one == stage))
            && (self.marks.is_empty()
                || run
                    .into_iter()
                    .all(|index| self.marks(index) == Marks::default()))
    }

    /// Puts deliveries that have no verdict into a stage.
    pub(in crate::machine) fn set_stages(&mut self, run: Range<usize>, stage: Stage) {
        let count = run.len();
        if let Some(stages) = self.stages.get_mut(run) {
            debug_assert!(!stages.contains(&Stage::Gone), "gone is for ever");
            stages.fill(stage);
            if stage == Stage::Gone {
                self.live -= count;
            }
        }
    }

    /// Where deliveries from this one on are in the ledger, as long as their places follow each
    /// other: the first place, and of how many, at most `most`.
    pub(in crate::machine) fn place_run(
        &self,
        index: usize,
        most: usize,
    ) -> Option<(Place, usize)> {
        self.places.run(index, most)
    }

    /// Moves the keys of buffered deliveries into the ledger.
    pub(in crate::machine) fn move_out(
        &mut self,
        run: Range<usize>,
        ledger: &mut Ledger<MessageKey>,
    ) {
        let (start, all) = (run.start, self.stages.len());
        self.set_stages(run.clone(), Stage::Out);
        self.keys_left -= run.len();
        let mut moved = 0;
        {
            let keys = self
                .keys
                .get_mut(run.clone())
                .unwrap_or_default()
                .iter_mut();
            let mut keys = keys.map(|key| std::mem::replace(key, MessageKey::vacant()));
            while moved < run.len() {
                let (place, count) = ledger.extend(&mut keys);
                debug_assert!(count > 0, "a batch has a key for each buffered delivery");
                if count == 0 {
                    break;
                }
                self.places.set(start + moved, place, count, all);
                moved += count;
            }
        }
        if self.keys_left == 0 {
            self.keys = Vec::new();
        }
    }

    /// The keys of all deliveries, before the first of them left.
    pub(in crate::machine) fn keys(&self) -> &[MessageKey] {
        &self.keys
    }

    /// The ack ids of deliveries one after the other.
    pub(in crate::machine) fn ack_ids(
        &self,
        run: Range<usize>,
    ) -> impl Iterator<Item = &[u8]> + '_ {
        run.map(|index| self.ack_ids.get(index))
    }
}
