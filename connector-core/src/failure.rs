//! What happens to a record that the service will never take.

use std::fmt;

use bytes::Bytes;

use crate::{Cause, Checkpoint, Epoch, Receipt};

/// A record that was refused for a reason of its own.
///
/// Has no type parameter, so that one handler serves every sink: by the time the service refuses,
/// the record itself is long gone.
#[derive(Clone)]
#[non_exhaustive]
pub struct Rejected {
    /// The kind of connector, for example `"pubsub-sink"`.
    pub connector: &'static str,
    /// The full name of the topic or queue, or what the record named instead of one.
    pub destination: String,
    /// The serialized payload, when serializing got that far.
    pub payload: Option<Bytes>,
    /// Which rule the record broke.
    pub reason: RejectedReason,
    /// What the serializer, the check or the service said.
    pub source: Option<Cause>,
    /// The epoch the record belongs to, once it is sealed.
    pub epoch: Option<Epoch>,
}

impl Rejected {
    /// A rejection without payload, source or epoch; fill in what is known.
    #[must_use]
    pub fn new(
        connector: &'static str,
        destination: impl Into<String>,
        reason: RejectedReason,
    ) -> Self {
        Self {
            connector,
            destination: destination.into(),
            payload: None,
            reason,
            source: None,
            epoch: None,
        }
    }

    /// Adds the serialized payload.
    #[must_use]
    pub fn payload(mut self, payload: Bytes) -> Self {
        self.payload = Some(payload);
        self
    }

    /// Adds what the serializer, the check or the service said.
    #[must_use]
    pub fn source(mut self, source: Cause) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds the epoch the record belongs to.
    #[must_use]
    pub fn epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = Some(epoch);
        self
    }
}

// The payload may be anything, secrets included: its length only in a log.
impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected")
            .field("connector", &self.connector)
            .field("destination", &self.destination)
            .field("payload_bytes", &self.payload.as_ref().map(Bytes::len))
            .field("reason", &self.reason)
            .field("source", &self.source)
            .field("epoch", &self.epoch)
            .finish()
    }
}

/// Which rule a rejected record broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RejectedReason {
    /// The record's destination does not parse.
    Destination,
    /// The serializer failed.
    Encoding,
    /// A limit of the service was checked before sending, and is exceeded.
    Limit,
    /// The service refused this one item.
    Refused,
}

/// What becomes of a rejected record, and of the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The record is dealt with; the sink goes on.
    Drop,
    /// The sink ends with an error; the record comes again after a restore.
    Fail,
}

/// Decides what becomes of rejected records.
///
/// Only failures of the data get here: a record that does not serialize, breaks a limit, or is
/// refused by the service for itself alone. Outages and configuration mistakes never do, or a
/// dropping handler would empty a stream under a healthy-looking job.
///
/// The sink calls the handler from its driver, outside any lock, and polls the verdict without
/// blocking on it; the record's admission permit returns with the verdict.
pub trait FailureHandler: Send + 'static {
    /// Takes one rejected record.
    ///
    /// # Errors
    ///
    /// A receipt that fails gives no verdict, so the sink ends as with [`Verdict::Fail`] and the
    /// record comes again after a restore.
    ///
    /// # Cancel safety
    ///
    /// The work belongs to the call: a sink that ends drops the receipts it still waits for.
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict>;

    /// Makes everything ever handled durable.
    ///
    /// # Errors
    ///
    /// The receipt is `Ok` only if *everything ever handled* is durable; after an `Err` the next
    /// flush covers it again.
    fn flush(&mut self) -> Receipt<()>;
}

impl<H: FailureHandler + ?Sized> FailureHandler for Box<H> {
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict> {
        (**self).handle(rejected)
    }

    fn flush(&mut self) -> Receipt<()> {
        (**self).flush()
    }
}

/// Ends the sink at the first rejected record. The default: nothing is lost without being asked.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a unit value, written as `Fail` by hosts"
)]
pub struct Fail;

impl FailureHandler for Fail {
    fn handle(&mut self, _rejected: Rejected) -> Receipt<Verdict> {
        Receipt::ready(Verdict::Fail)
    }

    fn flush(&mut self) -> Receipt<()> {
        Receipt::ready(())
    }
}

/// Logs each rejected record without its payload, and goes on.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a unit value, written as `LogAndDrop` by hosts"
)]
pub struct LogAndDrop;

impl FailureHandler for LogAndDrop {
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict> {
        tracing::warn!(
            connector = rejected.connector,
            destination = %rejected.destination,
            reason = ?rejected.reason,
            payload_bytes = rejected.payload.as_ref().map(Bytes::len),
            error = rejected.source.as_ref().map(tracing::field::display),
            "A rejected record was dropped."
        );
        Receipt::ready(Verdict::Drop)
    }

    fn flush(&mut self) -> Receipt<()> {
        Receipt::ready(())
    }
}

// Compile-time: both traits stay usable as trait objects.
const _: fn(&dyn FailureHandler, &dyn Checkpoint<State = ()>) = |_, _| {};
