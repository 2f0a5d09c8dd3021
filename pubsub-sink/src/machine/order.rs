//! Lanes of one destination: one per ordering key, and one for messages without.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use super::{
    RequestId,
    batch::{Batch, OpenBatch},
};

/// An ordering key, or none.
pub(super) type LaneKey = Option<Arc<str>>;

/// The messages of one key on their way into requests.
///
/// A keyed lane has at most one request without a verdict, so a retry is never overtaken. It also
/// stands still while the failure handler has one of its messages: were the verdict to end the
/// sink, what was published behind the message would stand before it after the replay.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) open: Option<OpenBatch>,
    pub(super) closed: VecDeque<Batch>,
    pub(super) in_flight: usize,
    /// Messages of this key that wait for the failure handler's verdict.
    pub(super) verdicts: usize,
    /// The request that waits for those verdicts.
    pub(super) held: Option<RequestId>,
    /// Whether the lane stands in its destination's queue of lanes with something to send.
    pub(super) queued: bool,
}

impl Lane {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_none()
            && self.closed.is_empty()
            && self.in_flight == 0
            && self.verdicts == 0
            && !self.queued
    }

    /// Whether a request may leave now. `due` says whether an open batch has waited long enough.
    pub(super) fn is_sendable(&self, limit: usize, due: impl FnOnce(Instant) -> bool) -> bool {
        self.in_flight < limit
            && self.verdicts == 0
            && (!self.closed.is_empty() || self.open.as_ref().is_some_and(|open| due(open.since)))
    }

    /// The next batch to send.
    pub(super) fn take(&mut self) -> Option<Batch> {
        self.closed
            .pop_front()
            .or_else(|| self.open.take().map(OpenBatch::close))
    }
}

/// The lanes of a destination. Those of keys exist only while there is something in them: a key
/// that failed once leaves nothing behind.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    unkeyed: Lane,
    keyed: BTreeMap<Arc<str>, Lane>,
}

impl Lanes {
    /// The key as lanes are found by: shared with the lane when there is one.
    pub(super) fn key_of(&self, key: Option<&str>) -> LaneKey {
        let key = key?;
        Some(
            self.keyed
                .get_key_value(key)
                .map_or_else(|| Arc::from(key), |(known, _)| Arc::clone(known)),
        )
    }

    /// The lane of a key, made when there is none.
    pub(super) fn open(&mut self, key: &LaneKey) -> &mut Lane {
        match key {
            None => &mut self.unkeyed,
            Some(key) => self.keyed.entry(Arc::clone(key)).or_default(),
        }
    }

    /// The lane of messages without a key, or of a key that has one.
    pub(super) fn find(&mut self, key: Option<&str>) -> Option<&mut Lane> {
        match key {
            None => Some(&mut self.unkeyed),
            Some(key) => self.keyed.get_mut(key),
        }
    }

    /// Forgets the lane when nothing is in it.
    pub(super) fn prune(&mut self, key: &LaneKey) {
        if let Some(key) = key
            && self.keyed.get(key).is_some_and(Lane::is_empty)
        {
            self.keyed.remove(key);
        }
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (LaneKey, &Lane)> {
        std::iter::once((None, &self.unkeyed)).chain(
            self.keyed
                .iter()
                .map(|(key, lane)| (Some(Arc::clone(key)), lane)),
        )
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn is_empty(&self) -> bool {
        self.unkeyed.is_empty() && self.keyed.is_empty()
    }
}
