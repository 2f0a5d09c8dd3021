//! How long a sink waits.

use std::time::Duration;

use super::SinkBuilder;

impl<R> SinkBuilder<R> {
    /// Ends the sink when records wait and none gets a verdict for this long, or the failure
    /// handler owes one answer for this long. Default: 600 s, far above what the retries of one
    /// record take (176 s at worst), so that it only ever catches what stands still.
    pub const fn progress_timeout(mut self, timeout: Duration) -> Self {
        self.options.progress_timeout = timeout;
        self
    }

    /// How long `close` may take to give every accepted record its verdict. Default: 30 s, within
    /// the grace that container platforms give to a process.
    pub const fn close_timeout(mut self, budget: Duration) -> Self {
        self.options.close_timeout = budget;
        self
    }
}
