//! How a source ends: what was committed is finished, everything else is given back.

use std::time::Instant;

use connector_core::{
    Cause,
    ledger::{Outcome, Standing},
};

use super::{Machine, Notice, Phase, batch::Stage, calls::Errand, streams::LAST_FAREWELL};
use crate::{delivery::DeliveryId, error::SourceError, on_drop::OnDrop};

/// The part of the close budget that half-closed streams have for their end; the rest is for giving
/// back.
const FAREWELL_SHARE: u32 = 5;

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
            deadline: now.checked_add(self.settings.close_budget),
        };
        self.revoked += 1;
        self.buffer.retain(|_| false);
        let batches: Vec<u64> = self.deliveries.batches().collect();
        for batch in batches {
            for id in self.deliveries.ids_of(batch) {
                if self.is_uncommitted(id) {
                    self.part_with(id);
                }
            }
        }
        // What is given back waits for the streams to end, so they must leave it time.
        let farewell = LAST_FAREWELL.min(self.settings.close_budget / FAREWELL_SHARE);
        self.streams.close(now, farewell);
        self.unread_since = None;
        self.tidy();
        self.watch_reading(now);
        self.advance_closing(now);
    }

    /// Fetches nothing more. What was fetched is still handed out, unless the host has paused this
    /// split; then it is given back.
    pub(crate) fn stop(&mut self, now: Instant) {
        if self.stopping || self.closed().is_some() {
            return;
        }
        self.stopping = true;
        if self.flow.paused_since().is_some() && !self.flow.is_parked() {
            self.release_buffered();
        }
        self.streams.close(now, LAST_FAREWELL);
        self.unread_since = None;
        self.tidy();
        self.watch_reading(now);
    }

    /// Whether a stopped source has handed out everything it had fetched.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopping && self.closed().is_none() && self.buffer.held().items == 0
    }

    /// Does with an uncommitted delivery of a source that ends what the host wants done.
    pub(super) fn part_with(&mut self, id: DeliveryId) {
        let handed_out = self.deliveries.stage(id) == Stage::Out;
        let release = match self.settings.on_drop {
            None if handed_out && self.counts_attempts => None,
            None | Some(OnDrop::Release) => Some(0),
            Some(OnDrop::Lapse) => None,
            Some(OnDrop::ReleaseAfter(delay)) => Some(whole_seconds_up(delay)),
        };
        match release {
            Some(seconds) => self.give_back(id, seconds),
            // Nothing is sent: its lease runs out at the service.
            None => drop(self.deliveries.settle(id, Outcome::Lapsed)),
        }
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
        if !finished && deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        let cause = cause.clone();
        if acknowledgements + releases > 0 {
            // Whoever dropped the source reads no error any more.
            self.tell(Notice::CloseTimedOut {
                acknowledgements,
                releases,
            });
            let after = self.settings.close_budget;
            self.error.get_or_insert(SourceError::CloseTimedOut {
                after,
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

/// The settings allow no more than fits.
fn whole_seconds_up(delay: std::time::Duration) -> u32 {
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
