//! How long nothing could be received although it was tried.

use std::time::{Duration, Instant};

use gcp_wire::RpcError;

use super::{Machine, StreamId, streams::StreamEnd};
use crate::error::SourceError;

/// A stream that stayed open for so long had got through. One that fails at once may be open for a
/// moment with some servers.
const THROUGH: Duration = Duration::from_secs(10);

/// The time since which every attempt to receive has failed.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Instant>,
    /// When a stream opened after the last failure.
    opened: Option<Instant>,
    cause: Option<RpcError>,
}

impl Outage {
    /// A stream opened.
    pub(super) fn opened(&mut self, now: Instant) {
        self.opened.get_or_insert(now);
    }

    /// A stream failed while no other was open. A failure without an error is a stream that ended
    /// by itself or fell silent: it does not make an earlier error untrue.
    fn failed(&mut self, now: Instant, cause: Option<RpcError>) {
        let through = |opened| now.saturating_duration_since(opened) >= THROUGH;
        if self.opened.take().is_some_and(through) {
            self.over();
        }
        self.since.get_or_insert(now);
        if cause.is_some() {
            self.cause = cause;
        }
    }

    /// Something was received, or nothing is read: then it is not seen whether a stream opens.
    pub(super) fn over(&mut self) {
        *self = Self::default();
    }

    fn deadline(&self, limit: Option<Duration>) -> Option<Instant> {
        self.since?.checked_add(limit?)
    }
}

impl Machine {
    /// A stream ended. `cause` is what it failed with, if it did not just end.
    pub(crate) fn handle_stream_ended(
        &mut self,
        now: Instant,
        random: f64,
        stream: StreamId,
        end: StreamEnd,
        cause: Option<RpcError>,
    ) {
        let unasked = self.end_stream(now, random, stream, end);
        if unasked && self.streams.open_count() == 0 && self.reads() {
            self.outage.failed(now, cause);
        }
    }

    /// When an outage has lasted as long as the host bears.
    pub(super) fn outage_deadline(&self) -> Option<Instant> {
        self.outage.deadline(self.settings.unreachable_after)
    }

    /// Ends the source when an outage has lasted for too long. A stream that is open now has got
    /// through.
    pub(super) fn check_outage(&mut self, now: Instant) {
        if self.outage_deadline().is_none_or(|at| at > now) {
            return;
        }
        let after = self.settings.unreachable_after.unwrap_or_default();
        let cause = self.outage.cause.take();
        self.outage.over();
        if self.streams.open_count() == 0 && self.streams.may_open() {
            let subscription = self.subscription.clone();
            let error = SourceError::Unreachable {
                subscription,
                after,
                cause,
            };
            self.fail(now, error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ends(outage: &Outage, start: Instant) -> Option<Duration> {
        let at = outage.deadline(Some(SECOND * 60))?;
        Some(at - start)
    }

    #[test]
    fn a_stream_that_was_open_for_long_ends_an_outage_although_nothing_came_on_it() {
        let start = crate::driver::now();
        let mut outage = Outage::default();
        outage.failed(start, None);
        outage.opened(start + SECOND);
        outage.failed(start + SECOND * 55, None);
        assert_eq!(ends(&outage, start), Some(SECOND * 115));
    }

    #[test]
    fn streams_that_fail_as_soon_as_they_are_open_are_one_outage() {
        let start = crate::driver::now();
        let mut outage = Outage::default();
        for number in 0..10 {
            let at = start + SECOND * 5 * number;
            outage.opened(at);
            outage.failed(at + SECOND / 100, None);
        }
        assert_eq!(ends(&outage, start), Some(SECOND * 60 + SECOND / 100));
        outage.over();
        assert_eq!(ends(&outage, start), None);
    }
}
