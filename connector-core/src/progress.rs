//! Bounding a wait by the absence of progress, not by its length.

use std::time::{Duration, Instant};

/// Watches that something moves.
///
/// A long wait is fine while items are confirmed one after the other; a short one is not when
/// nothing moves at all. Armed while there is something to wait for, moved forward by progress.
#[derive(Debug, Clone, Copy)]
pub struct ProgressWatch {
    limit: Duration,
    since: Option<Instant>,
}

impl ProgressWatch {
    /// A watch that expires after `limit` without progress.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self { limit, since: None }
    }

    /// There is something to wait for. Starts the watch unless it runs already.
    pub fn arm(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Something moved. Starts over, if armed.
    pub fn progress(&mut self, now: Instant) {
        if let Some(since) = &mut self.since {
            *since = now.max(*since);
        }
    }

    /// There is nothing to wait for any more.
    pub fn disarm(&mut self) {
        self.since = None;
    }

    /// When the watch expires, if it runs.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(self.limit))
    }

    /// How long nothing moved, once that is too long.
    #[must_use]
    pub fn expired(&self, now: Instant) -> Option<Duration> {
        let still = now.saturating_duration_since(self.since?);
        (still >= self.limit).then_some(still)
    }

    /// The limit.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        self.limit
    }
}
