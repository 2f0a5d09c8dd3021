//! Where tasks may lead.

use super::SinkBuilder;

/// Where tasks may lead.
impl<R> SinkBuilder<R> {
    /// Whether each queue is looked at before its first task, and every five minutes after. Default
    /// true.
    ///
    /// A paused or disabled queue takes tasks and dispatches none, in silence: it is told in the log
    /// and by [`queue_states`](crate::CloudTasksSink::queue_states). The queue given by
    /// [`queue`](Self::queue) is looked at as soon as the driver runs, others when a record first
    /// names them, the first hundred of a run. The first look holds up the queue's records for
    /// the one call it takes, and for 5 s at most; a queue that may not be looked at (this needs
    /// `cloudtasks.queues.get`) is told once and used as it is.
    pub const fn queue_check(mut self, check: bool) -> Self {
        self.options.queue_check = check;
        self
    }

    /// Whether a queue may replace the URLs of its tasks. Default false: such a queue ends the sink.
    ///
    /// The setting `uriOverride` of a queue, enforced always, sends every HTTP task to another
    /// address than its record says, the tasks that are already there included. That is a mistake
    /// where records carry URLs, and what you want where the queue is to decide. Only seen with
    /// [`queue_check`](Self::queue_check).
    pub const fn allow_url_overrides(mut self, allow: bool) -> Self {
        self.options.allow_url_overrides = allow;
        self
    }

    /// Lets tasks call these hosts only; a task for another one is a rejection. Default: any host.
    ///
    /// Compared without letter case and without the port. Use it whenever a URL, or a part of one,
    /// comes from a record: Cloud Tasks calls from inside Google's network and may carry a token of
    /// yours.
    pub fn allow_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }
}
