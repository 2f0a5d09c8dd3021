//! Few lines in the log where much goes wrong.

use std::time::{Duration, Instant};

/// At most one report in this time: an outage of a minute makes half a dozen lines, not thousands.
const INTERVAL: Duration = Duration::from_secs(10);

/// Counts events and says when to report them.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    unreported: u64,
    quiet_until: Option<Instant>,
}

impl Throttle {
    /// Counts an event; answers how many a report now would be about, if it is time for one.
    pub(super) fn count(&mut self, now: Instant) -> Option<u64> {
        self.unreported += 1;
        if self.quiet_until.is_some_and(|until| now < until) {
            return None;
        }
        self.quiet_until = now.checked_add(INTERVAL);
        Some(std::mem::take(&mut self.unreported))
    }
}
