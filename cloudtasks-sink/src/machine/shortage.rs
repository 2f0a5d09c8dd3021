//! Tasks that have waited long for a stream.

use std::time::{Duration, Instant};

/// Tasks wait for streams whenever there is more to do than the connections carry; this long at a
/// stretch is no burst any more.
const LONG: Duration = Duration::from_secs(30);

/// A setting does not change by itself, so that one line an hour will do.
const NEXT_REPORT: Duration = Duration::from_secs(3600);

/// How long there have been tasks without a stream, if there are.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    report_at: Option<Instant>,
    quiet_until: Option<Instant>,
}

impl Shortage {
    /// Whether there are tasks that only lack a stream.
    pub(super) fn observe(&mut self, now: Instant, is_short: bool) {
        if !is_short {
            self.report_at = None;
        } else if self.report_at.is_none() {
            let after = now.checked_add(LONG);
            self.report_at = after.max(self.quiet_until);
        }
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.report_at
    }

    /// Whether it is time to report.
    pub(super) fn overdue(&mut self, now: Instant) -> bool {
        if self.report_at.is_none_or(|at| at > now) {
            return false;
        }
        self.quiet_until = now.checked_add(NEXT_REPORT);
        self.report_at = self.quiet_until;
        true
    }
}
