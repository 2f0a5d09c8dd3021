//! Records coming in.

use std::time::Instant;

use connector_core::{Limits, Rejected};

use super::Machine;
use super::figures::count_rejected;
use super::inflight::{Create, Record, RecordId, Rejection, Target};
use crate::error::SinkError;

impl Machine {
    /// Takes a task to create. `submitted` asks for an [`Effect::Submitted`].
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        create: Create,
        submitted: bool,
    ) -> Result<RecordId, SinkError> {
        self.phase.check_open()?;
        let held = Limits::new(1, create.request.bytes.len());
        Ok(self.insert(now, held, Target::Task(create), submitted))
    }

    /// Takes a record that was rejected before it could be sent.
    pub(crate) fn reject(
        &mut self,
        now: Instant,
        rejected: Rejected,
        submitted: bool,
    ) -> Result<RecordId, SinkError> {
        self.phase.check_open()?;
        let bytes = rejected.payload.as_ref().map_or(0, bytes::Bytes::len);
        let rejection = Rejection {
            destination: rejected.destination.clone(),
            reason: rejected.reason,
            source: rejected.source.clone(),
        };
        let held = Limits::new(1, bytes);
        let id = self.insert(now, held, Target::Rejected(rejection), submitted);
        self.await_handler(id);
        self.stats.rejected += 1;
        count_rejected(&mut self.figures, &rejected.destination);
        self.handling.push(id, Box::new(rejected));
        Ok(id)
    }

    /// Counts a record that makes no task.
    pub(crate) fn skip(&mut self) -> Result<(), SinkError> {
        self.phase.check_open()?;
        self.stats.skipped += 1;
        Ok(())
    }

    fn insert(&mut self, now: Instant, held: Limits, target: Target, submitted: bool) -> RecordId {
        let place = self.ledger.add(self.inflight.next_id());
        self.stats.accepted += 1;
        let mut record = Record::new(place, held, target, submitted);
        match &mut self.staged {
            // What waits for its commit is owed by the host, and its deadline bounds the rest.
            Some(staged) => staged.take_in(&mut record),
            None => self.watch.arm(now),
        }
        self.inflight.insert(record)
    }
}
