//! Bounding the host's waits by the absence of progress.

use std::time::{Duration, Instant};

use connector_core::ProgressWatch;

/// Into how many parts the limit is divided for warnings: the first comes after a tenth.
const WARNINGS: u32 = 10;

/// Watches the two waits of a host: for room, and for a cut.
#[derive(Debug)]
pub(super) struct Stall {
    watch: ProgressWatch,
    /// Warnings given since something last moved.
    warned: u32,
}

/// What a look at the watch found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    Fine,
    /// Nothing has moved for this long; time for a warning.
    Slow(Duration),
    /// Nothing has moved for too long.
    Stalled(Duration),
}

impl Stall {
    pub(super) const fn new(limit: Duration) -> Self {
        Self {
            watch: ProgressWatch::new(limit),
            warned: 0,
        }
    }

    /// Starts or stops watching. An idle sink is not watched: the next wait begins with a budget
    /// of its own.
    pub(super) fn watch(&mut self, now: Instant, wanted: bool) {
        if wanted {
            self.watch.arm(now);
        } else {
            self.watch.disarm();
            self.warned = 0;
        }
    }

    pub(super) fn progress(&mut self, now: Instant) {
        self.watch.progress(now);
        self.warned = 0;
    }

    pub(super) fn look(&mut self, now: Instant) -> Finding {
        if let Some(after) = self.watch.expired(now) {
            return Finding::Stalled(after);
        }
        let mut found = Finding::Fine;
        while let (Some(at), Some(since)) = (self.next_warning(), self.since())
            && at <= now
        {
            self.warned += 1;
            found = Finding::Slow(now.saturating_duration_since(since));
        }
        found
    }

    pub(super) fn next_look(&self) -> Option<Instant> {
        let expiry = self.watch.deadline();
        match (self.next_warning(), expiry) {
            (Some(warning), Some(expiry)) => Some(warning.min(expiry)),
            (warning, expiry) => warning.or(expiry),
        }
    }

    fn since(&self) -> Option<Instant> {
        self.watch
            .deadline()
            .and_then(|deadline| deadline.checked_sub(self.watch.limit()))
    }

    fn next_warning(&self) -> Option<Instant> {
        if self.warned + 1 >= WARNINGS {
            return None;
        }
        let after = self.watch.limit() / WARNINGS * (self.warned + 1);
        self.since()?.checked_add(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const LIMIT: Duration = Duration::from_secs(600);

    #[test]
    fn warnings_come_at_each_tenth_and_the_end_at_the_limit() {
        let start = clock::now();
        let mut stall = Stall::new(LIMIT);
        stall.watch(start, true);
        let mut found = Vec::new();
        while let Some(at) = stall.next_look() {
            match stall.look(at) {
                Finding::Fine => panic!("looked too early"),
                Finding::Slow(after) => found.push(after.as_secs()),
                Finding::Stalled(after) => {
                    assert_eq!(after, LIMIT);
                    break;
                }
            }
        }
        assert_eq!(found, [60, 120, 180, 240, 300, 360, 420, 480, 540]);
    }

    #[test]
    fn an_idle_hour_does_not_shorten_the_next_wait() {
        let start = clock::now();
        let mut stall = Stall::new(LIMIT);
        stall.watch(start, true);
        stall.watch(start, false);
        let later = start + Duration::from_secs(3600);
        stall.watch(later, true);
        assert_eq!(stall.look(later), Finding::Fine);
        assert_eq!(stall.next_look(), Some(later + LIMIT / 10));
    }

    #[test]
    fn a_sink_that_completes_one_message_a_minute_is_never_stalled() {
        let mut now = clock::now();
        let mut stall = Stall::new(Duration::from_secs(90));
        stall.watch(now, true);
        for _ in 0..1000 {
            now += Duration::from_secs(60);
            assert!(!matches!(stall.look(now), Finding::Stalled(_)));
            stall.progress(now);
        }
    }
}
