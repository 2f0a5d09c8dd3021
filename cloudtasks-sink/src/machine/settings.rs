//! What the machine is told once.

use std::time::Duration;

use connector_core::backoff::Backoff;

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

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Creates that may be without an answer at a time.
    pub(crate) streams: usize,
    pub(crate) transient: RetryBudget,
    pub(crate) missing: RetryBudget,
    pub(crate) progress_timeout: Duration,
    pub(crate) close_timeout: Duration,
}
