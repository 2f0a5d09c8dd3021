//! How long the host has waited for room.

use std::time::{Duration, Instant};

/// A wait this long is told: somebody else's connector may hold the shared budget.
const FIRST_REPORT: Duration = Duration::from_secs(10);

/// And told again at this interval, for as long as it lasts.
const NEXT_REPORTS: Duration = Duration::from_secs(60);

/// A host's wait for room, if there is one.
#[derive(Debug, Default)]
pub(super) struct RoomWait(Option<Wait>);

#[derive(Debug)]
struct Wait {
    since: Instant,
    report_at: Option<Instant>,
}

impl RoomWait {
    /// The wait begins, unless there is one.
    pub(super) fn start(&mut self, now: Instant) {
        let report_at = now.checked_add(FIRST_REPORT);
        self.0.get_or_insert(Wait {
            since: now,
            report_at,
        });
    }

    pub(super) fn end(&mut self) {
        self.0 = None;
    }

    /// When to report the wait.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.as_ref()?.report_at
    }

    /// How long the wait has lasted, when it is time to report it.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Duration> {
        let wait = self.0.as_mut()?;
        if wait.report_at? > now {
            return None;
        }
        wait.report_at = now.checked_add(NEXT_REPORTS);
        Some(now.saturating_duration_since(wait.since))
    }
}
