//! What the source has done and holds, in numbers.

use std::time::{Duration, Instant};

use super::Machine;
use crate::stats::Stats;

impl Machine {
    /// What the source has done and holds.
    pub(crate) fn stats(&self, now: Instant) -> Stats {
        let held = self.buffer.held();
        let oldest = self.deliveries.oldest_from(0);
        let oldest = oldest.map_or(Duration::ZERO, |(_, received)| {
            now.saturating_duration_since(received)
        });
        Stats {
            open_streams: self.streams.open_count(),
            buffered: held.items,
            buffered_bytes: held.bytes,
            leased: self.deliveries.leased(),
            seen: self.seen.len(),
            seen_overflowed: self.seen.overflowed() + self.partials.overflowed(),
            unfinished: self.partials.len(),
            pending_checkpoints: self.deliveries.ledger().sealed_epochs(),
            pending_commits: self.commits.len(),
            oldest_commit_seconds: Stats::seconds(
                (self.commits.oldest())
                    .map_or(Duration::ZERO, |since| now.saturating_duration_since(since)),
            ),
            told_limit: self.need.told(),
            lease_seconds: self.lease.as_secs(),
            oldest_held_seconds: Stats::seconds(oldest),
            ..self.stats_of_pauses(now)
        }
    }
}
