//! What the failure handler was given, and what it has not answered.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use connector_core::Rejected;

use super::RecordId;

/// Rejected records that the handler may have without a verdict. Further ones wait here and keep
/// their permits, so that a handler with a bounded queue of its own is not flooded.
const OUTSTANDING: usize = 100;

/// Names one thing asked of the handler. Ascending in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct JobId(u64);

#[derive(Debug)]
struct Job {
    since: Instant,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Handle(RecordId),
    /// A flush that covers this many handled records.
    Flush {
        covers: u64,
    },
}

/// The failure handler as the machine sees it.
#[derive(Debug, Default)]
pub(super) struct Handling {
    queue: VecDeque<(RecordId, Box<Rejected>)>,
    jobs: BTreeMap<JobId, Job>,
    next: u64,
    /// Records that were ever given to the handler.
    handled: u64,
    /// How many of them a flush has made durable.
    durable: u64,
    /// Flushes to be asked for.
    flushes: VecDeque<JobId>,
}

impl Handling {
    pub(super) fn push(&mut self, record: RecordId, rejected: Box<Rejected>) {
        self.queue.push_back((record, rejected));
    }

    /// Takes the next record for the handler, if it may have one more.
    pub(super) fn next(&mut self, now: Instant) -> Option<(JobId, RecordId, Box<Rejected>)> {
        if self.jobs.len() >= OUTSTANDING {
            return None;
        }
        let (record, rejected) = self.queue.pop_front()?;
        self.handled += 1;
        Some((self.start(now, What::Handle(record)), record, rejected))
    }

    /// The record that a verdict is about; nothing when the job is not outstanding.
    pub(super) fn verdict(&mut self, job: JobId) -> Option<RecordId> {
        match self.jobs.get(&job)?.what {
            What::Handle(record) => {
                self.jobs.remove(&job);
                Some(record)
            }
            What::Flush { .. } => None,
        }
    }

    /// Whether everything ever handled is durable.
    pub(super) const fn is_durable(&self) -> bool {
        self.durable == self.handled
    }

    /// Asks for a flush, or joins one that covers everything handled so far.
    pub(super) fn flush(&mut self, now: Instant) -> JobId {
        let handled = self.handled;
        let under_way = self.jobs.iter().find_map(|(id, job)| match job.what {
            What::Flush { covers } if covers == handled => Some(*id),
            What::Flush { .. } | What::Handle(_) => None,
        });
        under_way.unwrap_or_else(|| {
            let job = self.start(now, What::Flush { covers: handled });
            self.flushes.push_back(job);
            job
        })
    }

    /// The next flush to ask the handler for.
    pub(super) fn next_flush(&mut self) -> Option<JobId> {
        self.flushes.pop_front()
    }

    /// A flush was answered. Nothing becomes durable by one that failed.
    pub(super) fn flushed(&mut self, job: JobId, is_ok: bool) -> bool {
        let Some(What::Flush { covers }) = self.jobs.get(&job).map(|job| job.what) else {
            return false;
        };
        self.jobs.remove(&job);
        if is_ok {
            self.durable = self.durable.max(covers);
        }
        true
    }

    /// Since when the handler owes its oldest answer.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.jobs.first_key_value().map(|(_, job)| job.since)
    }

    /// When waiting for the handler has lasted `limit`.
    pub(super) fn deadline(&self, limit: Duration) -> Option<Instant> {
        self.oldest().and_then(|since| since.checked_add(limit))
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.jobs.clear();
        self.flushes.clear();
    }

    fn start(&mut self, now: Instant, what: What) -> JobId {
        let job = JobId(self.next);
        self.next += 1;
        self.jobs.insert(job, Job { since: now, what });
        job
    }

    /// Records that are queued for the handler or with it.
    #[cfg(any(test, fuzzing))]
    pub(super) fn records(&self) -> Vec<RecordId> {
        let out = self.jobs.values().filter_map(|job| match job.what {
            What::Handle(record) => Some(record),
            What::Flush { .. } => None,
        });
        self.queue
            .iter()
            .map(|(record, _)| *record)
            .chain(out)
            .collect()
    }
}
