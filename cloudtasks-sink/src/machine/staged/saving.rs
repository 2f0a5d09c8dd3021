//! What a state names.

use std::time::Instant;

use connector_core::ledger::Standing;
use connector_core::{Epoch, Limits};

use super::super::Machine;
use super::super::inflight::{Stage, Target};
use crate::state::{KeptTask, StagedTask};

impl Machine {
    /// The open epoch was sealed.
    pub(in super::super) fn cut_stage(&mut self, now: Instant, epoch: Epoch) {
        if let Some(staged) = &mut self.staged {
            staged.cut = super::Release::at(now, staged.wall, staged.settings.window);
            staged.stage.cut(now);
            staged.quarantine.name(epoch);
        }
    }

    /// A sealed epoch was folded into the next one.
    pub(in super::super) fn reopen_stage(&mut self, epoch: Epoch) {
        let Some(staged) = &mut self.staged else {
            return;
        };
        staged.quarantine.unname(epoch);
        let ledger = &self.ledger;
        let open = self
            .inflight
            .iter()
            .filter(|(_, record)| {
                record.stage == Stage::Staged && ledger.standing(record.place) == Standing::Open
            })
            .fold(Limits::new(0, 0), |sum, (_, record)| {
                Limits::new(sum.items + record.held.items, sum.bytes + record.held.bytes)
            });
        staged.stage.reopen(open);
    }

    /// What the state of the epoch that was just sealed names: everything that is staged, or
    /// committed and without a verdict, and everything that is kept aside. Nothing where tasks are
    /// not staged.
    pub(crate) fn saved_tasks(&self) -> Option<(Vec<StagedTask>, Vec<KeptTask>)> {
        let staged = self.staged.as_ref()?;
        let tasks = self
            .inflight
            .iter()
            .filter_map(|(_, record)| match &record.target {
                Target::Task(create) | Target::Refused(create, _) => Some(StagedTask {
                    queue: create.queue.clone(),
                    task: create.request.task(),
                    named: create.named,
                    since: record.release.unwrap_or(staged.cut).since,
                    released: record.release.is_some(),
                }),
                // The failure handler has it before the snapshot is complete.
                Target::Rejected(_) => None,
            });
        let kept = staged.quarantine.tasks().cloned();
        Some((tasks.collect(), kept.collect()))
    }
}
