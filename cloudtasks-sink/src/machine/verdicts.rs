//! The verdicts of the failure handler.

use std::time::Instant;

use connector_core::ledger::{Outcome, Standing};
use connector_core::{CheckpointError, Verdict};

use super::Machine;
use super::effect::Effect;
use super::handling::JobId;
use super::inflight::{RecordId, Rejection, Target};
use crate::error::SinkError;
use crate::submitted::Submitted;

impl Machine {
    /// The failure handler answered for a rejected record.
    pub(crate) fn handle_verdict(
        &mut self,
        now: Instant,
        job: JobId,
        verdict: Result<Verdict, CheckpointError>,
    ) {
        let Some(id) = self.handling.verdict(job) else {
            return;
        };
        match verdict {
            // Until the handler has flushed, a crash would lose what only the state names.
            Ok(Verdict::Drop) if self.is_committed(id) => self.await_flush(now, id),
            Ok(Verdict::Drop) => {
                let Rejection {
                    reason,
                    source: cause,
                    ..
                } = self.rejection(id);
                self.settle(
                    now,
                    id,
                    Outcome::Retained,
                    Submitted::Rejected { reason, cause },
                );
                if let Some(error) = self.streak.ends_with(id) {
                    self.fail(error);
                }
            }
            // It is durable and would come again with every restart: ending the sink helps nobody.
            Ok(Verdict::Fail | _) if self.is_committed(id) => {
                let rejection = self.rejection(id);
                self.keep_refused(now, id, &rejection);
            }
            // A verdict that this build does not know does not say that the record is dealt with.
            Ok(Verdict::Fail | _) => {
                let Rejection {
                    destination,
                    reason,
                    source,
                } = self.rejection(id);
                self.fail(SinkError::Rejected {
                    destination,
                    reason,
                    source,
                });
            }
            Err(source) => self.fail(SinkError::Handler { source }),
        }
    }

    /// The failure handler answered to a flush.
    pub(crate) fn handle_handler_flushed(
        &mut self,
        now: Instant,
        job: JobId,
        outcome: Result<(), CheckpointError>,
    ) {
        if !self.handling.flushed(job, outcome.is_ok()) {
            return;
        }
        for (waiter, outcome) in self.barriers.flushed(job, &outcome) {
            self.pass(waiter, outcome);
        }
        self.after_handler_flush(now, outcome.is_ok());
        self.advance(now);
    }

    /// Whether a rejected record was committed before.
    fn is_committed(&self, id: RecordId) -> bool {
        let target = self.inflight.get(id).map(|record| &record.target);
        matches!(target, Some(Target::Refused(..)))
    }

    /// What the handler's verdict is about.
    pub(super) fn rejection(&self, id: RecordId) -> Rejection {
        match self.inflight.get(id).map(|record| &record.target) {
            Some(Target::Rejected(rejection) | Target::Refused(_, rejection)) => rejection.clone(),
            Some(Target::Task(_)) | None => {
                unreachable!("the handler has a verdict on rejected records only")
            }
        }
    }

    /// The next thing to ask of the handler.
    pub(super) fn next_for_handler(&mut self, now: Instant) -> Option<Effect> {
        if let Some((job, id, mut rejected)) = self.handling.next(now) {
            rejected.epoch =
                self.inflight
                    .get(id)
                    .and_then(|record| match self.ledger.standing(record.place) {
                        Standing::Sealed(epoch) | Standing::Settling(epoch) => Some(epoch),
                        Standing::Open | Standing::Gone | _ => None,
                    });
            return Some(Effect::Handle { job, rejected });
        }
        let job = self.handling.next_flush()?;
        Some(Effect::FlushHandler { job })
    }
}
