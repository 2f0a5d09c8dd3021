//! How long nothing could be received although it was tried.

use std::time::{Duration, Instant};

use gcp_wire::RpcError;

use super::{Machine, StreamId, streams::StreamEnd};
use crate::error::SourceError;

/// The time since which every attempt to receive has failed.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Instant>,
    cause: Option<RpcError>,
}

impl Outage {
    /// A stream failed while no other was open. A failure without an error is a stream that ended
    /// by itself or fell silent: it does not make an earlier error untrue.
    fn failed(&mut self, now: Instant, cause: Option<RpcError>) {
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

    /// Ends the source when an outage has lasted for too long.
    ///
    /// A stream that fails is open for a moment with some servers; one that is open now has got
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
