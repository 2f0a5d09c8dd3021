//! How a source ends: what was committed is finished, everything else is given back.

use std::time::Instant;

use connector_core::{Cause, ledger::Standing};

use super::{Machine, Phase, batch::Stage, calls::Errand};
use crate::{delivery::DeliveryId, error::SourceError};

impl Machine {
    /// Ends the source in good order.
    pub(crate) fn close(&mut self, now: Instant) {
        self.begin_closing(now, Cause::new(SourceError::Closed));
    }

    /// Ends the source with an error. The first one counts.
    pub(crate) fn fail(&mut self, now: Instant, error: SourceError) {
        match self.phase {
            Phase::Running => {}
            Phase::Closing { .. } | Phase::Closed { .. } => return,
        }
        self.error = Some(error.clone());
        self.fall(now, Cause::new(error));
    }

    /// Ends together with what died of `cause`, whose error tells about it.
    pub(crate) fn fall(&mut self, now: Instant, cause: Cause) {
        match self.phase {
            Phase::Running => {}
            Phase::Closing { .. } | Phase::Closed { .. } => return,
        }
        self.failed = true;
        self.begin_closing(now, cause);
    }

    fn begin_closing(&mut self, now: Instant, cause: Cause) {
        match self.phase {
            Phase::Running => {}
            Phase::Closing { .. } | Phase::Closed { .. } => return,
        }
        self.phase = Phase::Closing {
            cause,
            deadline: now + self.settings.close_budget,
        };
        self.revoked += 1;
        self.buffer.retain(|_| false);
        let batches: Vec<u64> = self.deliveries.batches().collect();
        for batch in batches {
            for id in self.deliveries.ids_of(batch) {
                if self.is_uncommitted(id) {
                    self.give_back(id, 0);
                }
            }
        }
        self.streams.close(now);
        self.unread_since = None;
        self.tidy();
        self.watch_reading(now);
        self.advance_closing(now);
    }

    fn is_uncommitted(&self, id: DeliveryId) -> bool {
        match self.deliveries.stage(id) {
            Stage::Buffered => true,
            Stage::Out => !matches!(self.deliveries.standing(id), Standing::Settling(_)),
            Stage::Acking
            | Stage::HostAcking
            | Stage::ReAcking
            | Stage::Superseded
            | Stage::Releasing
            | Stage::Gone => false,
        }
    }

    /// Ends a closing source once nothing is left to do, or its time is over.
    pub(super) fn advance_closing(&mut self, now: Instant) {
        let Phase::Closing { cause, deadline } = &self.phase else {
            return;
        };
        let (acknowledgements, releases) = self.unfinished();
        let finished = acknowledgements == 0 && releases == 0 && self.streams.count() == 0;
        if !finished && now < *deadline {
            return;
        }
        let cause = cause.clone();
        if self.error.is_none() && acknowledgements + releases > 0 {
            self.error = Some(SourceError::CloseTimedOut {
                after: self.settings.close_budget,
                acknowledgements,
                releases,
            });
        }
        self.poll_committed(now);
        self.streams.drop_all(now);
        self.phase = Phase::Closed { cause };
    }

    /// Acknowledgements and releases that are not confirmed.
    fn unfinished(&self) -> (usize, usize) {
        let acknowledgements = if self.acks.is_empty() && self.calls.open(Errand::Acknowledge) == 0
        {
            0
        } else {
            let settling = self.deliveries.ledger().settling_len();
            settling + self.settles.len()
        };
        (acknowledgements, self.deliveries.releasing())
    }
}
