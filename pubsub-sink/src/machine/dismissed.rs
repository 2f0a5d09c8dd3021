//! Staged messages that the failure handler took over, until it has made that durable.

use std::time::{Duration, Instant};

use connector_core::{backoff::Backoff, ledger::Place};

/// Messages with the verdict "drop" whose handler has not flushed since.
///
/// Their source has forgotten them, and the state names them as long as they have no verdict here:
/// so they keep their place until the handler has made them durable. A flush that fails is repeated.
#[derive(Debug)]
pub(super) struct Dismissed {
    /// Pauses after failed flushes.
    delays: Backoff,
    waiting: Vec<Place>,
    /// What the flush that runs was called after.
    flushing: Vec<Place>,
    failures: u32,
    /// When a failed flush is repeated.
    again: Option<Instant>,
}

impl Dismissed {
    pub(super) const fn new(delays: Backoff) -> Self {
        Self {
            delays,
            waiting: Vec::new(),
            flushing: Vec::new(),
            failures: 0,
            again: None,
        }
    }

    pub(super) fn add(&mut self, place: Place) {
        self.waiting.push(place);
    }

    /// Whether a flush should begin for what waits.
    pub(super) fn wants_flush(&self) -> bool {
        !self.waiting.is_empty() && self.again.is_none()
    }

    /// A flush begins, for whatever reason: it covers all that waits.
    pub(super) fn begin_flush(&mut self) {
        self.flushing.append(&mut self.waiting);
        self.again = None;
    }

    /// The flush ended: answers what is durable with the handler.
    pub(super) fn end_flush(&mut self, now: Instant, succeeded: bool, random: f64) -> Vec<Place> {
        if succeeded {
            self.failures = 0;
            return std::mem::take(&mut self.flushing);
        }
        if !self.flushing.is_empty() {
            self.failures = self.failures.saturating_add(1);
            self.waiting.append(&mut self.flushing);
            let delay = self.delays.jittered(self.failures, random);
            // A pause beyond the end of time is as good as the longest.
            self.again = now.checked_add(delay.min(Duration::from_secs(3600)));
        }
        Vec::new()
    }

    /// When a failed flush is repeated.
    pub(super) fn next_flush(&self) -> Option<Instant> {
        self.again.filter(|_| !self.waiting.is_empty())
    }

    /// Whether a flush has become due.
    pub(super) fn wake(&mut self, now: Instant) -> bool {
        let due = self.again.is_some_and(|again| again <= now);
        if due {
            self.again = None;
        }
        due
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.flushing.len()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.waiting.iter().chain(&self.flushing).copied()
    }
}

#[cfg(test)]
mod tests {
    use connector_core::ledger::Ledger;

    use super::*;
    use crate::clock;

    #[test]
    fn a_flush_covers_what_was_dismissed_before_it_and_a_failed_one_is_repeated() {
        let start = clock::now();
        let mut ledger = Ledger::new();
        let (first, second) = (ledger.add(()), ledger.add(()));
        let delays = Backoff::new(Duration::from_secs(1), 2.0, Duration::from_secs(60));
        let mut dismissed = Dismissed::new(delays);
        assert!(!dismissed.wants_flush());
        dismissed.add(first);
        assert!(dismissed.wants_flush());
        dismissed.begin_flush();
        dismissed.add(second);
        assert!(dismissed.end_flush(start, false, 0.5).is_empty());
        assert!(!dismissed.wants_flush(), "not at once");
        let again = dismissed.next_flush().unwrap();
        assert_eq!(again, start + Duration::from_secs(1));
        assert!(!dismissed.wake(start));
        assert!(dismissed.wake(again) && dismissed.wants_flush());
        dismissed.begin_flush();
        let mut durable = dismissed.end_flush(again, true, 0.5);
        durable.sort_unstable();
        assert_eq!(durable, [first, second]);
        assert_eq!(dismissed.len(), 0);
    }
}
