//! What the sink did, in numbers.

/// Whether a number only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(any(test, feature = "metrics")),
    expect(dead_code, reason = "for metrics")
)]
pub(crate) enum Kind {
    Counter,
    Gauge,
}

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident: $kind:ident,)*) => {
        /// What a sink did and what it holds, as plain numbers; always on and cheap to read.
        ///
        /// With the feature `metrics` the same names are published through the `metrics` facade as
        /// `cloudtasks_sink_<name>`, labelled with the sink's instance.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[cfg(any(test, feature = "metrics"))]
        impl Stats {
            /// Every number with its name.
            pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, Kind, u64)> {
                [$((stringify!($name), Kind::$kind, self.$name),)*].into_iter()
            }
        }
    };
}

stats! {
    /// Records accepted: neither skipped nor the cause of the sink's end.
    accepted: Counter,
    /// Tasks that the service confirmed as new.
    created: Counter,
    /// Tasks that existed already under their name (ALREADY_EXISTS), which counts as success.
    duplicates: Counter,
    /// Of `duplicates`: minted names that existed although they were never sent before. They say
    /// that two sinks mint the same names, which chance does not do.
    unexpected_duplicates: Counter,
    /// Records for which the encoder answered that there is nothing to create.
    skipped: Counter,
    /// Records handed to the failure handler.
    rejected: Counter,
    /// Committed tasks that the service refused and the failure handler did not take: kept aside.
    refused: Counter,
    /// Committed tasks whose recovery deadline passed: kept aside.
    expired: Counter,
    /// Creations asked for, first attempts and retries: CreateTask calls, or tasks in batches.
    attempts: Counter,
    /// Creations asked for after a record's first.
    retries: Counter,
    /// Of `retries`: those of a task named by the service after an answer that leaves open whether
    /// the task was created. Each may have created a second task.
    ambiguous_retries: Counter,
    /// Bytes of first attempts, as encoded requests.
    bytes: Counter,
    /// BatchCreateTasks calls.
    batches: Counter,
    /// GetOperation calls, for batches that were not done or whose answer was lost.
    operation_reads: Counter,
    /// GetQueue calls, before the first task of a queue and every five minutes.
    queue_looks: Counter,
    /// Creations asked for and without an answer, the next batch of a queue included.
    in_flight: Gauge,
    /// Tasks waiting for the time of their next attempt.
    parked: Gauge,
    /// Tasks waiting for one of the streams of the connection (100 per channel).
    waiting: Gauge,
    /// Tasks waiting for the first look at their queue, or for their turn in its pace.
    held_back: Gauge,
    /// Records in the stage whose epoch is not committed.
    staged: Gauge,
    /// Committed tasks waiting for their queue to take tasks again.
    held: Gauge,
    /// Rejected records without a verdict of the failure handler, or of its flush.
    with_handler: Gauge,
    /// Records accepted and without a verdict: the seven numbers above together.
    pending: Gauge,
    /// Bytes of the records without a verdict.
    pending_bytes: Gauge,
    /// Committed tasks that are kept aside for an operator.
    kept: Gauge,
    /// Tasks that the service refused since it last took one.
    consecutive_rejections: Gauge,
    /// Queues that were paused or disabled when they were last looked at.
    queues_stopped: Gauge,
    /// How much of the time to its recovery deadline the oldest committed task without a verdict has
    /// used, in hundredths; 0 without such a task. At 100 it is kept aside as expired.
    window_used_percent: Gauge,
}

/// What a sink did for one queue.
///
/// With the feature `metrics` the same numbers are published as
/// `cloudtasks_sink_destination_<name>`, labelled with the sink's instance and the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestinationStats {
    /// Tasks that the service confirmed as new.
    pub created: u64,
    /// Tasks that existed already under their name.
    pub duplicates: u64,
    /// Records for the queue that were handed to the failure handler, whatever it decided.
    pub rejected: u64,
}

impl DestinationStats {
    /// The names of all numbers, in the order of the fields.
    pub const NAMES: &'static [&'static str] = &["created", "duplicates", "rejected"];
}
