//! A failure handler that publishes what was rejected to a topic.

mod backlog;
mod builder;
mod desk;
mod driver;
mod envelope;
mod error;

pub use builder::{DeadLetterBuilder, Outstanding};
pub use driver::DeadLetterDriver;
pub use error::DeadLetterError;

#[cfg(feature = "metrics")]
pub(crate) use desk::FlushTimes;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use connector_core::{Cause, CheckpointError, FailureHandler, Receipt, Rejected, Verdict};
use gcp_wire::{Code, TopicName};

use crate::{PublishMessage, PubsubSink, Stats, clock, message, shared::Shared};
use desk::Desk;

/// Publishes rejected records to a topic of their own, for people or programs to look at.
///
/// A [`FailureHandler`] for every sink of the family:
///
/// ```no_run
/// use pubsub_sink::{PublishMessage, PubsubDeadLetterQueue, PubsubSink};
///
/// # fn build() -> Result<(), Box<dyn std::error::Error>> {
/// let queue = PubsubDeadLetterQueue::builder("projects/shop/topics/rejected".parse()?).build()?;
/// let sink = PubsubSink::builder(|order: &u64| Ok(Some(PublishMessage::json(order)?)))
///     .topic("projects/shop/topics/orders".parse()?)
///     .on_rejected(queue)
///     .build()?;
/// # drop(sink);
/// # Ok(())
/// # }
/// ```
///
/// A dead letter has the rejected payload as its payload: for this crate's sink the whole encoded
/// `google.pubsub.v1.PubsubMessage`, so that attributes and ordering key can be recovered. A record
/// that did not get as far as a payload is a dead letter without one. The attributes:
///
/// | attribute | what it says |
/// |---|---|
/// | `dlq-connector` | the kind of connector that rejected the record, such as `pubsub-sink` |
/// | `dlq-destination` | where the record was to go, or `unresolved` |
/// | `dlq-error` | what was wrong with it, in at most 1,024 bytes; the causes behind it are left out |
/// | `dlq-timestamp` | when the queue was given the record, in UTC, as RFC 3339 has it |
/// | `dlq-subtask` | the [`instance`](DeadLetterBuilder::instance) |
/// | `dlq-epoch` | the epoch the record belongs to, when it was sealed already |
///
/// A dead letter counts as handled when it is among the [`max_outstanding`] that may be under way;
/// a flush is complete when every dead letter ever handled is stored. One that fails leaves them
/// owed and still being sent, and the next flush covers them again, so a snapshot never succeeds
/// over a dead letter that did not arrive.
///
/// At least once: what is rejected again after a restore is a dead letter again, and one whose
/// answer was lost is stored twice.
///
/// The queue has a connection and a budget of its own, so that neither waits for the sink's. Its
/// topic is never created, since nothing would read it. What the topic refuses has nowhere else to
/// go: that ends the queue, and the sink with it. So give the topic no schema, and mind that a
/// payload of nearly 10,000,000 bytes leaves no room for the attributes.
///
/// Dropped with its sink, it sends what is left for
/// [`shutdown_timeout`](DeadLetterBuilder::shutdown_timeout) while the runtime lives; after a
/// [`close`](PubsubSink::close) that succeeded nothing is.
///
/// [`max_outstanding`]: DeadLetterBuilder::max_outstanding
pub struct PubsubDeadLetterQueue {
    sink: PubsubSink<PublishMessage>,
    desk: Arc<Desk>,
    topic: TopicName,
    instance: Arc<str>,
    flush_timeout: Duration,
}

impl PubsubDeadLetterQueue {
    /// Starts building a queue that publishes to `topic`, which must exist.
    pub fn builder(topic: TopicName) -> DeadLetterBuilder {
        DeadLetterBuilder::new(topic)
    }

    /// A view of the queue's numbers that outlives giving the queue to its sink.
    #[must_use]
    pub fn watch(&self) -> DeadLetterWatch {
        DeadLetterWatch {
            shared: Arc::clone(self.sink.shared()),
            desk: Arc::clone(&self.desk),
        }
    }
}

impl FailureHandler for PubsubDeadLetterQueue {
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict> {
        let letter = envelope::wrap(&rejected, &self.instance, clock::wall());
        let bytes = message::frame_len(&letter);
        // Sent at once whatever is outstanding: the record is in memory either way, and what waits
        // for the verdict is the room that it holds in its own sink.
        let confirmation = self.sink.submit(letter);
        self.desk.take(bytes, confirmation)
    }

    fn flush(&mut self) -> Receipt<()> {
        // From the call on, not from when someone first waits for the receipt.
        let called = clock::now();
        let deadline = called.checked_add(self.flush_timeout);
        let (id, mut receipt) = self.desk.flush();
        if id.is_none() {
            return receipt;
        }
        #[cfg(feature = "metrics")]
        let instance = Arc::clone(&self.instance);
        let (desk, topic, within) = (
            Arc::clone(&self.desk),
            self.topic.clone(),
            self.flush_timeout,
        );
        Receipt::pending(async move {
            let outcome = async {
                let Some(deadline) = deadline else {
                    return receipt.await;
                };
                let deadline = tokio::time::Instant::from_std(deadline);
                if let Ok(outcome) = tokio::time::timeout_at(deadline, &mut receipt).await {
                    return outcome;
                }
                let Some((unconfirmed, of)) = desk.give_up(id) else {
                    // It was resolved meanwhile.
                    return receipt.await;
                };
                Err(CheckpointError::Handler {
                    cause: Cause::new(DeadLetterError::Unconfirmed {
                        topic,
                        unconfirmed,
                        of,
                        within,
                    }),
                })
            };
            let outcome = outcome.await;
            desk.flushed(clock::now().saturating_duration_since(called));
            #[cfg(feature = "metrics")]
            crate::metrics::publish_flush_times(&instance, desk.flush_times());
            outcome
        })
    }
}

impl Drop for PubsubDeadLetterQueue {
    fn drop(&mut self) {
        self.desk.close();
    }
}

impl fmt::Debug for PubsubDeadLetterQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubsubDeadLetterQueue")
            .field("topic", &self.topic)
            .field("instance", &self.instance)
            .field("stats", &self.sink.stats())
            .finish_non_exhaustive()
    }
}

/// A view of a dead-letter queue's numbers.
#[derive(Clone)]
pub struct DeadLetterWatch {
    shared: Arc<Shared>,
    desk: Arc<Desk>,
}

impl DeadLetterWatch {
    /// What the queue did and holds, in the numbers of a sink.
    ///
    /// `records_published` are the dead letters that are stored, `in_flight_records` those that are
    /// outstanding, `closes_abandoned` tells that the queue ended with some left.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared
            .with(|state| state.machine.stats())
            .unwrap_or_default()
    }

    /// How often requests that publish dead letters failed, by the code of the failure.
    #[must_use]
    pub fn failures(&self) -> BTreeMap<Code, u64> {
        self.shared
            .with(|state| state.machine.failures().clone())
            .unwrap_or_default()
    }

    /// How long the last flush took that had dead letters to wait for, whether or not it succeeded.
    #[must_use]
    pub fn last_flush(&self) -> Option<Duration> {
        self.desk.flush_times().last
    }

    /// The longest of those times.
    #[must_use]
    pub fn longest_flush(&self) -> Option<Duration> {
        self.desk.flush_times().longest
    }
}

impl fmt::Debug for DeadLetterWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetterWatch")
            .field("stats", &self.stats())
            .field("flush_times", &self.desk.flush_times())
            .finish()
    }
}
