//! What the machine is told once.

use std::num::NonZeroU32;
use std::time::Duration;

use connector_core::backoff::Backoff;

use super::gate::Pacing;

/// How often one record's task is tried, and with which delays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryBudget {
    pub(crate) attempts: u32,
    pub(crate) first: Duration,
    pub(crate) cap: Duration,
}

impl RetryBudget {
    /// At most `attempts` attempts, the first included; the delay after the first failure is
    /// `first`, doubles each time up to `cap`, and strays by ±25 %.
    #[must_use]
    pub const fn new(attempts: u32, first: Duration, cap: Duration) -> Self {
        Self {
            attempts,
            first,
            cap,
        }
    }

    pub(super) const fn backoff(&self) -> Backoff {
        Backoff::new(self.first, 2.0, self.cap)
    }
}

/// How many tasks one call creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub(crate) tasks: usize,
    pub(crate) bytes: usize,
}

impl Batch {
    /// At most `tasks` tasks in one call, 1 to 100, which is the most that the service takes; and
    /// at most 3.5 MiB, so that a call stays well below the 4 MiB that servers commonly take.
    #[must_use]
    pub const fn up_to(tasks: usize) -> Self {
        Self {
            tasks,
            bytes: Self::MOST_BYTES,
        }
    }

    /// At most this many encoded bytes in one call, up to 3.5 MiB. A larger task goes alone.
    #[must_use]
    pub const fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    pub(crate) const MOST_TASKS: usize = 100;
    pub(crate) const MOST_BYTES: usize = 3_584 * 1024;
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Whether queues are looked at before tasks are put into them.
    pub(crate) queue_looks: bool,
    /// Whether a queue may replace the URLs of its tasks.
    pub(crate) url_overrides: bool,
    pub(crate) pacing: Pacing,
    pub(crate) max_consecutive_rejections: Option<NonZeroU32>,
    /// Queues with numbers of their own.
    pub(crate) destination_stats: usize,
    /// Creates that may be without an answer at a time.
    pub(crate) streams: usize,
    pub(crate) transient: RetryBudget,
    pub(crate) missing: RetryBudget,
    pub(crate) progress_timeout: Duration,
    pub(crate) close_timeout: Duration,
}
