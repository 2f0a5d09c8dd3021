//! Who waits until everything before some point has its verdict.

use connector_core::{CheckpointError, Epoch};

use super::{JobId, RecordId};

/// What passing a barrier means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    /// The snapshot of this epoch is complete.
    Snapshot(Epoch),
    /// The host's flush is done.
    Flush,
    /// The sink may end.
    Close,
}

#[derive(Debug, Clone, Copy)]
struct Barrier {
    waiter: Waiter,
    /// Every record below must have its verdict.
    upto: RecordId,
    /// The flush of the failure handler that is under way. It starts after the last verdict of
    /// the cut, since only then has the handler been given everything.
    flush: Option<JobId>,
}

/// Waiters in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    list: Vec<Barrier>,
}

impl Barriers {
    pub(super) fn add(&mut self, waiter: Waiter, upto: RecordId) {
        self.list.push(Barrier {
            waiter,
            upto,
            flush: None,
        });
    }

    /// Takes a waiter out. Answers whether it was there.
    pub(super) fn remove(&mut self, waiter: Waiter) -> bool {
        let before = self.list.len();
        self.list.retain(|barrier| barrier.waiter != waiter);
        self.list.len() < before
    }

    /// Takes out the first waiter that needs nothing any more: all its records have their
    /// verdicts, and the handler owes no flush.
    pub(super) fn pop_passed(&mut self, oldest: Option<RecordId>) -> Option<Waiter> {
        let at = self
            .list
            .iter()
            .position(|barrier| barrier.flush.is_none() && barrier.is_drained(oldest))?;
        Some(self.list.remove(at).waiter)
    }

    /// Gives every waiter that only waits for the handler the flush that is to be waited for.
    pub(super) fn start_flush(
        &mut self,
        oldest: Option<RecordId>,
        mut flush: impl FnMut() -> JobId,
    ) {
        for barrier in &mut self.list {
            if barrier.flush.is_none() && barrier.is_drained(oldest) {
                barrier.flush = Some(flush());
            }
        }
    }

    /// Takes out everyone who waited for this flush.
    pub(super) fn flushed(
        &mut self,
        job: JobId,
        outcome: &Result<(), CheckpointError>,
    ) -> Vec<(Waiter, Result<(), CheckpointError>)> {
        let mut done = Vec::new();
        self.list.retain(|barrier| {
            let waited = barrier.flush == Some(job);
            if waited {
                done.push((barrier.waiter, outcome.clone()));
            }
            !waited
        });
        done
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }
}

impl Barrier {
    fn is_drained(&self, oldest: Option<RecordId>) -> bool {
        oldest.is_none_or(|oldest| oldest >= self.upto)
    }
}
