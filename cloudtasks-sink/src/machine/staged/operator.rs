//! What an operator does with tasks that are kept aside, and what the host is asked for.

use std::time::Instant;

use connector_core::Limits;
use connector_core::ledger::Outcome;

use super::super::Machine;
use super::super::inflight::{Create, Record, Target};
use super::Release;
use crate::request::Request;
use crate::resolution::{Resolution, ResolveError};
use crate::state::KeptTask;

impl Machine {
    /// The tasks that are kept aside.
    pub(crate) fn kept(&self) -> Vec<KeptTask> {
        let staged = self.staged.as_ref();
        staged.map_or_else(Vec::new, |staged| {
            staged.quarantine.tasks().cloned().collect()
        })
    }

    /// Does what an operator decided about a task that is kept aside. Answers what it takes of the
    /// stage from now on.
    pub(crate) fn resolve(
        &mut self,
        now: Instant,
        name: &str,
        resolution: Resolution,
    ) -> Result<Limits, ResolveError> {
        if self.phase.has_ended() {
            return Err(ResolveError::Closed {
                cause: self.phase.cause(),
            });
        }
        let unknown = || ResolveError::Unknown {
            name: name.to_owned(),
        };
        let staged = self.staged.as_mut().ok_or_else(unknown)?;
        let outcome = match resolution {
            Resolution::Discard => Outcome::Retained,
            Resolution::MarkCommitted => Outcome::Settled,
            Resolution::Force => {
                let taken = staged.quarantine.send_again(name);
                let (task, place) = taken.ok_or_else(unknown)?;
                let release = Release::at(now, staged.wall, staged.settings.window);
                let request = Request::of_named(&task.task.queue, &task.task.task);
                let held = Limits::new(1, request.bytes.len());
                let create = Create {
                    queue: task.task.queue,
                    request,
                    named: task.task.named,
                };
                let place = place.unwrap_or_else(|| self.ledger.add(self.inflight.next_id()));
                let mut record = Record::new(place, held, Target::Task(create), false);
                record.release = Some(release);
                record.ambiguous = true;
                self.inflight.insert(record);
                return Ok(held);
            }
        };
        let (_, place) = staged.quarantine.dismiss(name).ok_or_else(unknown)?;
        if let Some(place) = place {
            self.ledger.settle(place, outcome);
        }
        self.advance(now);
        Ok(Limits::new(0, 0))
    }

    /// Whether the host is to take a checkpoint now. Told once for each open epoch.
    pub(crate) fn wants_checkpoint(&mut self) -> bool {
        if self.phase.has_ended() {
            return false;
        }
        let Some(staged) = &mut self.staged else {
            return false;
        };
        let (inflight, holds) = (&self.inflight, &staged.holds);
        let moving = || inflight.len() > inflight.staged() + holds.len();
        let waiting = staged.quarantine.wants_checkpoint();
        staged
            .stage
            .wants_checkpoint(inflight.held(), moving, waiting)
    }
}
