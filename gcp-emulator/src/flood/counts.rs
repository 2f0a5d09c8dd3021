//! What a flood server has seen.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a flood server has sent and been asked, since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FloodCounts {
    /// Messages sent on pull streams.
    pub delivered: u64,
    /// Ids acknowledged.
    pub acknowledged: u64,
    /// Ids whose deadline was extended.
    pub extended: u64,
    /// Ids given back: a deadline of zero.
    pub released: u64,
    /// Messages published.
    pub published: u64,
    /// Tasks created, single and in batches.
    pub created: u64,
    /// Requests answered.
    pub requests: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) delivered: AtomicU64,
    pub(super) acknowledged: AtomicU64,
    pub(super) extended: AtomicU64,
    pub(super) released: AtomicU64,
    pub(super) published: AtomicU64,
    pub(super) created: AtomicU64,
    pub(super) requests: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> FloodCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FloodCounts {
            delivered: read(&self.delivered),
            acknowledged: read(&self.acknowledged),
            extended: read(&self.extended),
            released: read(&self.released),
            published: read(&self.published),
            created: read(&self.created),
            requests: read(&self.requests),
        }
    }
}

pub(super) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
