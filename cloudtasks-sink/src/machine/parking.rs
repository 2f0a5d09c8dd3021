//! Tasks that wait for the time of their next attempt.

use std::collections::BTreeSet;
use std::time::Instant;

use super::RecordId;

/// Records by the time at which they are due, earliest first; equal times in order of acceptance.
#[derive(Debug, Default)]
pub(super) struct Parking {
    due: BTreeSet<(Instant, RecordId)>,
}

impl Parking {
    pub(super) fn park(&mut self, record: RecordId, due: Instant) {
        self.due.insert((due, record));
    }

    /// When the first record is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Takes out the first record that is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<RecordId> {
        let (due, _) = self.due.first()?;
        if *due > now {
            return None;
        }
        self.due.pop_first().map(|(_, record)| record)
    }

    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    pub(super) fn clear(&mut self) {
        self.due.clear();
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn contains(&self, record: RecordId, due: Instant) -> bool {
        self.due.contains(&(due, record))
    }
}
