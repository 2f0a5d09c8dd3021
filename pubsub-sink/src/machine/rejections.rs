//! Rejected records on their way to the failure handler and back.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use connector_core::{Rejected, ledger::Place};

use super::{RejectionId, ReplyId, destinations::DestinationId};
use crate::SinkError;

/// Verdicts the handler may owe at a time. Further rejections wait and keep their permits, so a
/// handler that is slow slows the sink down instead of filling memory.
const MAX_PENDING: usize = 1_000;

/// A record without a verdict of the handler.
#[derive(Debug)]
pub(super) struct Rejection {
    pub(super) place: Place,
    /// Its encoded size, as charged to the budget.
    pub(super) bytes: usize,
    /// Where it was to go, when that counts it among what it holds.
    pub(super) destination: Option<DestinationId>,
    /// Its ordering key, whose other messages wait for the verdict.
    pub(super) key: Option<Arc<str>>,
    pub(super) reply: Option<ReplyId>,
    pub(super) rejected: Rejected,
}

/// What is known of a rejected record once the handler has it.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) rejection: Rejection,
    /// With its verdict the sink ends: it was one too many in a row.
    pub(super) ends: Option<SinkError>,
    /// Its number among those that were rejected before they could be staged or sent.
    arrival: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Rejections {
    next: u64,
    queued: VecDeque<Pending>,
    pending: BTreeMap<RejectionId, Pending>,
    /// Records rejected before they could be staged or sent.
    arrivals: u64,
    /// Those without a verdict.
    undecided: BTreeSet<u64>,
}

impl Rejections {
    /// A message that the service refused.
    pub(super) fn add(&mut self, rejection: Rejection, ends: Option<SinkError>) {
        self.queued.push_back(Pending {
            rejection,
            ends,
            arrival: None,
        });
    }

    /// A record that did not get as far as the stage or a batch.
    pub(super) fn arrive(&mut self, rejection: Rejection) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.undecided.insert(arrival);
        self.queued.push_back(Pending {
            rejection,
            ends: None,
            arrival: Some(arrival),
        });
    }

    /// How many records have arrived so.
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Whether the first so many of them have their verdict.
    pub(super) fn decided(&self, arrivals: u64) -> bool {
        self.undecided
            .first()
            .is_none_or(|first| *first >= arrivals)
    }

    pub(super) fn has_next(&self) -> bool {
        !self.queued.is_empty() && self.pending.len() < MAX_PENDING
    }

    /// The next record for the handler.
    pub(super) fn hand_over(&mut self) -> Option<(RejectionId, &mut Rejected, Place)> {
        if !self.has_next() {
            return None;
        }
        let rejection = self.queued.pop_front()?;
        let id = RejectionId(self.next);
        self.next += 1;
        let pending = self.pending.entry(id).or_insert(rejection);
        Some((id, &mut pending.rejection.rejected, pending.rejection.place))
    }

    /// The handler's verdict is there.
    pub(super) fn take(&mut self, id: RejectionId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if let Some(arrival) = pending.arrival {
            self.undecided.remove(&arrival);
        }
        Some(pending)
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Rejection> {
        self.queued
            .iter()
            .chain(self.pending.values())
            .map(|pending| &pending.rejection)
    }
}
