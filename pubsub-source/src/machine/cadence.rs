//! How long a lease should be, learnt from how often the host takes checkpoints.

use std::time::{Duration, Instant};

/// A lease lasts this many checkpoint intervals: a delivery is held for up to one interval and the
/// time its commit takes, so at a steady cadence nearly nothing has to be extended.
const INTERVALS: u32 = 3;

/// The least lease, unless the cap is lower: shorter ones would be extended by nearly every
/// scheduling hiccup of a host with very frequent checkpoints.
const LEAST: Duration = Duration::from_secs(20);

/// The least lease on a subscription with exactly-once delivery: Google's clients never ask for
/// less there, since an extension has to be confirmed before it counts.
const LEAST_EXACTLY_ONCE: Duration = Duration::from_secs(60);

/// The observed cadence of checkpoints and what follows for leases.
#[derive(Debug)]
pub(super) struct Cadence {
    cap: Duration,
    exactly_once: bool,
    last: Option<Instant>,
    /// The longer of the last two intervals: one quick checkpoint must not shorten leases.
    recent: [Option<Duration>; 2],
}

impl Cadence {
    pub(super) fn new(cap: Duration) -> Self {
        Self {
            cap,
            exactly_once: false,
            last: None,
            recent: [None; 2],
        }
    }

    pub(super) fn handle_checkpoint(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            self.recent = [Some(now.saturating_duration_since(last)), self.recent[0]];
        }
    }

    pub(super) fn handle_exactly_once(&mut self, on: bool) {
        self.exactly_once = on;
    }

    /// The interval at which checkpoints come, once two were seen.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.recent.into_iter().flatten().max()
    }

    /// The length of a lease, in whole seconds.
    pub(super) fn lease(&self) -> Duration {
        let floor = if self.exactly_once {
            LEAST_EXACTLY_ONCE.max(LEAST)
        } else {
            LEAST.min(self.cap)
        };
        let wanted = self.interval().map_or(self.cap, |interval| {
            interval.saturating_mul(INTERVALS).min(self.cap)
        });
        // Rounded up: a lease that is a second longer than needed costs nothing.
        let seconds = wanted.max(floor).as_secs_f64().ceil();
        Duration::try_from_secs_f64(seconds).unwrap_or(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(intervals: &[u64], cap: u64) -> Duration {
        let mut cadence = Cadence::new(Duration::from_secs(cap));
        let mut now = crate::driver::now();
        for interval in intervals {
            now += Duration::from_secs(*interval);
            cadence.handle_checkpoint(now);
        }
        cadence.lease()
    }

    #[test]
    fn the_cap_holds_until_two_checkpoints_were_seen() {
        assert_eq!(after(&[], 60), Duration::from_secs(60));
        assert_eq!(after(&[1], 60), Duration::from_secs(60));
        assert_eq!(after(&[1, 1], 60), Duration::from_secs(20));
    }

    #[test]
    fn a_lease_lasts_three_intervals_within_its_bounds() {
        assert_eq!(after(&[0, 10], 60), Duration::from_secs(30));
        assert_eq!(after(&[0, 2], 60), Duration::from_secs(20));
        assert_eq!(after(&[0, 300], 60), Duration::from_secs(60));
        assert_eq!(after(&[0, 300], 600), Duration::from_secs(600));
        assert_eq!(after(&[0, 1], 10), Duration::from_secs(10));
    }

    #[test]
    fn one_quick_checkpoint_does_not_shorten_leases() {
        assert_eq!(after(&[0, 15, 1], 60), Duration::from_secs(45));
        assert_eq!(after(&[0, 15, 1, 1], 60), Duration::from_secs(20));
    }

    #[test]
    fn exactly_once_never_asks_for_less_than_a_minute() {
        let mut cadence = Cadence::new(Duration::from_secs(60));
        let start = crate::driver::now();
        cadence.handle_checkpoint(start);
        cadence.handle_checkpoint(start + Duration::from_secs(1));
        cadence.handle_exactly_once(true);
        assert_eq!(cadence.lease(), Duration::from_secs(60));
        cadence.handle_exactly_once(false);
        assert_eq!(cadence.lease(), Duration::from_secs(20));
    }
}
