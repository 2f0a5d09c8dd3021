//! How many unacknowledged messages the server is told to send.

use std::time::{Duration, Instant};

/// By how much the told limit grows when a commit finds that it was reached: a steady
/// 100,000 messages/s with 10 s between checkpoints is reached from 1,000 within five commits.
const GROWTH: u64 = 4;

/// A limit counts as reached when this share of it was held: the last few messages of a full
/// stream may always be on their way.
const REACHED: (u64, u64) = (15, 16);

/// What the host needs to hold, learnt at its commits.
///
/// Until the first commit the limit stays at its start: a crash loop then burns the delivery
/// attempts of a thousand messages, not of a hundred thousand.
#[derive(Debug)]
pub(super) struct Need {
    start: u64,
    bound: u64,
    told: u64,
    peak: u64,
    commits: bool,
    /// Acknowledged since `since`, for the rate that a reconnect shrinks towards.
    released: u64,
    since: Option<Instant>,
    rate: Option<f64>,
    commit_time: Duration,
}

impl Need {
    pub(super) fn new(start: usize, bound: usize) -> Self {
        let (start, bound) = (start as u64, bound as u64);
        Self {
            start: start.min(bound),
            bound,
            told: start.min(bound),
            peak: 0,
            commits: false,
            released: 0,
            since: None,
            rate: None,
            commit_time: Duration::ZERO,
        }
    }

    /// The limit to tell, over all streams.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// So many deliveries are held now.
    pub(super) fn handle_held(&mut self, held: usize) {
        self.peak = self.peak.max(held as u64);
    }

    /// A commit released deliveries. Answers whether the limit grew.
    pub(super) fn handle_commit(&mut self, now: Instant, released: usize, held: usize) -> bool {
        let first = !std::mem::replace(&mut self.commits, true);
        if let Some(since) = self.since {
            let elapsed = now.saturating_duration_since(since).as_secs_f64();
            if elapsed > 0.0 {
                // Exact up to 2^53 messages.
                #[expect(clippy::cast_precision_loss, reason = "a rate")]
                let seen = released as f64 / elapsed;
                self.rate = Some(self.rate.map_or(seen, |rate| (rate + seen) / 2.0));
            }
        }
        self.since = Some(now);
        self.released = self.released.saturating_add(released as u64);
        // Saturates for a bound that is none.
        let reached = self.peak.saturating_mul(REACHED.1) >= self.told.saturating_mul(REACHED.0);
        self.peak = held as u64;
        if !reached || (first && self.released == 0) {
            return false;
        }
        let before = self.told;
        self.told = self.told.saturating_mul(GROWTH).min(self.bound);
        self.told > before
    }

    /// A commit's acknowledgements took so long.
    pub(super) fn handle_committed(&mut self, took: Duration) {
        self.commit_time = (self.commit_time / 2).max(took);
    }

    /// All streams are closed and open again: the moment to tell less, if less is needed.
    pub(super) fn shrink(&mut self, interval: Option<Duration>, buffer_target: f64) {
        let (Some(interval), Some(rate)) = (interval, self.rate) else {
            return;
        };
        let hold = (interval + self.commit_time).as_secs_f64();
        // Saturates for any absurd product.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a product of non-negative numbers; `as` saturates"
        )]
        let needed = (2.0 * rate).mul_add(hold, buffer_target) as u64;
        self.told = self.told.min(needed.max(self.start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_limit_stays_at_its_start_until_the_first_commit() {
        let mut need = Need::new(1000, 100_000);
        need.handle_held(1000);
        need.handle_held(5000);
        assert_eq!(need.told(), 1000);
        assert!(need.handle_commit(crate::driver::now(), 1000, 0));
        assert_eq!(need.told(), 4000);
    }

    #[test]
    fn a_limit_that_is_reached_grows_fourfold_up_to_the_bound() {
        let mut need = Need::new(1000, 100_000);
        let mut now = crate::driver::now();
        let mut told = Vec::new();
        for _ in 0..5 {
            need.handle_held(usize::try_from(need.told()).unwrap());
            need.handle_commit(now, 1000, 0);
            told.push(need.told());
            now += SECOND;
        }
        assert_eq!(told, [4000, 16_000, 64_000, 100_000, 100_000]);
    }

    #[test]
    fn a_limit_that_is_not_reached_stays() {
        let mut need = Need::new(1000, 100_000);
        need.handle_held(900);
        assert!(!need.handle_commit(crate::driver::now(), 900, 0));
        assert_eq!(need.told(), 1000);
    }

    #[test]
    fn a_reconnect_shrinks_the_limit_towards_what_is_needed() {
        let mut need = Need::new(1000, 100_000);
        let mut now = crate::driver::now();
        for _ in 0..4 {
            need.handle_held(100_000);
            need.handle_commit(now, 3000, 0);
            now += SECOND * 10;
        }
        assert_eq!(need.told(), 100_000);
        need.shrink(Some(SECOND * 10), 500.0);
        assert_eq!(need.told(), 2 * 300 * 10 + 500);
        need.shrink(Some(SECOND), 0.0);
        assert_eq!(need.told(), 1000, "never below the start");
    }

    #[test]
    fn a_first_commit_of_nothing_lets_no_limit_grow_and_a_second_does() {
        let mut need = Need::new(1000, 4000);
        let now = crate::driver::now();
        need.handle_held(1000);
        assert!(!need.handle_commit(now, 0, 1000));
        assert!(need.handle_commit(now + SECOND, 0, 4000));
        assert!(!need.handle_commit(now + SECOND * 2, 0, 4000), "the bound");
        assert_eq!(need.told(), 4000);
    }

    #[test]
    fn a_reconnect_counts_the_time_that_commits_take_and_no_rate_of_an_instant() {
        let mut need = Need::new(1000, 100_000);
        let mut now = crate::driver::now();
        for _ in 0..4 {
            need.handle_held(100_000);
            need.handle_commit(now, 3000, 0);
            need.handle_commit(now, 3000, 0);
            now += SECOND * 10;
        }
        // What one took counts half as much at the next.
        need.handle_committed(SECOND * 10);
        need.handle_committed(SECOND);
        assert_eq!(need.told(), 100_000);
        need.shrink(Some(SECOND * 10), 0.0);
        assert_eq!(need.told(), 2 * 300 * (10 + 5));
    }
}
