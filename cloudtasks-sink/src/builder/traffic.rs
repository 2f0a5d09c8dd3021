//! In which calls, how fast and how often tasks are created.

use std::num::NonZeroU32;
use std::time::Duration;

use super::SinkBuilder;
use crate::machine::{Batch, Ramp, RetryBudget};

/// In which calls, how fast and how often tasks are created.
impl<R> SinkBuilder<R> {
    /// Creates tasks many in one call (BatchCreateTasks). Default: one by one, with an answer for
    /// each as soon as there is one.
    ///
    /// A call leaves at once while fewer than two of its queue are under way; else the next one
    /// grows, up to the given size. Every task gets a verdict of its own, so that one bad task
    /// harms no other. A call whose answer is lost is sent again as the same bytes under the same
    /// request id, which the service carries out once at most, so that not even unnamed tasks are
    /// made twice for it. Batches save calls, and make a single task wait for its batch.
    pub const fn batching(mut self, size: Batch) -> Self {
        self.options.batch = Some(size);
        self
    }

    /// Opens this many connections, each carrying 100 creations at a time. Default: 1, which takes
    /// 210 to 400 tasks a second (measured against the service; a creation takes about a quarter
    /// of a second). 1 to 256.
    ///
    /// Above 500 a second raise the traffic by at most half every five minutes, as Google asks.
    pub const fn channels(mut self, channels: usize) -> Self {
        self.options.channels = channels;
        self
    }

    /// Lets the traffic to each queue grow no faster than this. Default: no bound.
    ///
    /// For backfills: Google asks not to raise traffic above 500 operations a second by more than
    /// half in five minutes ([`Ramp::google`]). In ordinary service the queue paces what counts, the
    /// calls to the target; the sink need not. Retries take their turns like first attempts.
    pub const fn ramp(mut self, ramp: Ramp) -> Self {
        self.options.ramp = Some(ramp);
        self
    }

    /// Creates at most this many tasks a second in each queue. Default: no bound.
    ///
    /// For backfills beside live traffic: a queue takes about 1,000 creations and dispatches a second
    /// together. What the target can take is a setting of the queue, not of the sink. At most one
    /// task per [`progress_timeout`](Self::progress_timeout) would end the sink and is refused.
    pub const fn queue_rate(mut self, tasks_per_second: f64) -> Self {
        self.options.queue_rate = Some(tasks_per_second);
        self
    }

    /// Bounds one CreateTask call. Default: 20 s, as Google's own clients have it; the service
    /// refuses more than 30 s. Shorter ones make ambiguous failures out of slow successes.
    pub const fn attempt_deadline(mut self, deadline: Duration) -> Self {
        self.options.attempt_deadline = deadline;
        self
    }

    /// How a task is tried again after UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, a broken
    /// connection or our own time-out. Default: 8 attempts, 100 ms doubling up to 10 s, which rides
    /// out about 13 s of refusals. Spent, the sink ends.
    pub const fn retries(mut self, budget: RetryBudget) -> Self {
        self.options.retries = budget;
        self
    }

    /// How a task is tried again while its queue does not exist. Default: 3 attempts, 500 ms
    /// doubling up to 2 s: enough for a queue that was just created, short enough to name a
    /// mistyped one at once. A queue that woke up after 30 idle days may take minutes. Spent, the
    /// sink ends and names the queue.
    pub const fn queue_missing_retries(mut self, budget: RetryBudget) -> Self {
        self.options.queue_missing_retries = budget;
        self
    }

    /// How many tasks in a row the service may refuse before the sink ends, or none for no bound.
    /// Default 100.
    ///
    /// Counts tasks that were refused alone, over all queues; any task created starts it anew. So
    /// many in a row are a mistake in the configuration rather than in the data, and a handler that
    /// drops would go on dropping. The last one is handed over before the sink ends.
    ///
    /// Staged tasks are refused after their commit, when ending the sink would help nobody: they would
    /// come again with every restart. They do not end it; those that nobody takes are kept aside, and
    /// that has a cap of its own.
    pub const fn max_consecutive_rejections(mut self, most: Option<NonZeroU32>) -> Self {
        self.options.max_consecutive_rejections = most;
        self
    }
}
