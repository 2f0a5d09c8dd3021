//! The handle that the host holds.

mod checkpoint;
mod close;
mod intake;
mod quarantine;
mod room;

use std::{
    collections::BTreeMap,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use connector_core::{
    BoxError, Cause, CheckpointError, Committed, DestinationResolver, Encode, Receipt,
};
use futures::Sink;
use gcp_wire::{Code, TopicName};

use crate::{
    DestinationStats, PublishMessage, Published, SinkBuilder, SinkError, Stats, clock,
    settings::IdentityAttributes,
    shared::{CutReceipt, Shared},
    staged::Minting,
    trace::TraceOf,
};

/// Publishes records to Pub/Sub topics, delivered by the time of the host's checkpoints.
///
/// A [`futures::Sink`] that also implements [`Checkpoint`](connector_core::Checkpoint): a snapshot's
/// receipt resolves when everything accepted before it is stored by the service (with
/// [`Delivery::Staged`](crate::Delivery::Staged): is in the state), skipped by the encoder, or in the
/// hands of a failure handler that has flushed. Everything transient is retried inside; an error is
/// the sink's last word, and the host's rule is then to rebuild from its last saved state.
///
/// Dropping the sink without [`close`](Self::close) logs a warning; what it had accepted is still
/// sent while the runtime lives.
pub struct PubsubSink<R> {
    resolver: Box<dyn DestinationResolver<R, TopicName>>,
    encoder: Box<dyn Encode<R, PublishMessage>>,
    shared: Arc<Shared>,
    /// Names staged messages. None in a flushing sink.
    minting: Option<Minting>,
    identity_attributes: Option<IdentityAttributes>,
    trace: Option<TraceOf<R>>,
    /// The next record has its room.
    admitted: bool,
    /// How much more is taken before the host's task is asked whether others have their turn.
    turn: usize,
    /// The machine knows that the host waits for room.
    waiting: bool,
    /// The terminal error was given out; from now on it is the cause of `Closed`.
    told: bool,
    flushing: Option<Receipt<()>>,
    closing: Option<Receipt<()>>,
    closed: bool,
    restored: Option<Receipt<Committed>>,
}

impl<R> PubsubSink<R> {
    /// Starts building a sink whose records become messages through `encode`.
    ///
    /// A closure `|record: &Order| Ok(Some(PublishMessage::json(record)?))` is an encoder. `Ok(None)`
    /// skips the record, an `Err` is that record's own failure and goes to the failure handler.
    pub fn builder<F>(encode: F) -> SinkBuilder<R>
    where
        F: FnMut(&R) -> Result<Option<PublishMessage>, BoxError> + Send + 'static,
    {
        SinkBuilder::new(Box::new(encode))
    }

    /// Starts building a sink that publishes payloads, with nothing around them but what
    /// [`attributes`](SinkBuilder::attributes) and [`ordering_key`](SinkBuilder::ordering_key) of
    /// the builder add.
    ///
    /// As with [`builder`](Self::builder), `Ok(None)` skips the record and an `Err` is its own
    /// failure.
    pub fn payload<F, P>(mut encode: F) -> SinkBuilder<R>
    where
        F: FnMut(&R) -> Result<Option<P>, BoxError> + Send + 'static,
        P: Into<Bytes>,
    {
        Self::builder(move |record| Ok(encode(record)?.map(PublishMessage::new)))
    }

    /// Starts building a sink with an encoder that is a type of its own.
    pub fn builder_with(encoder: impl Encode<R, PublishMessage> + 'static) -> SinkBuilder<R> {
        SinkBuilder::new(Box::new(encoder))
    }

    pub(crate) fn new(
        resolver: Box<dyn DestinationResolver<R, TopicName>>,
        encoder: Box<dyn Encode<R, PublishMessage>>,
        shared: Arc<Shared>,
        minting: Option<Minting>,
        identity_attributes: Option<IdentityAttributes>,
        trace: Option<TraceOf<R>>,
        restored: Receipt<Committed>,
    ) -> Self {
        Self {
            trace,
            resolver,
            encoder,
            shared,
            minting,
            identity_attributes,
            admitted: false,
            turn: 0,
            waiting: false,
            told: false,
            flushing: None,
            closing: None,
            closed: false,
            restored: Some(restored),
        }
    }

    /// Waits until there is room for one more record.
    ///
    /// # Errors
    ///
    /// The sink's terminal error.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost; a place in the queue of a shared budget is kept until the next call.
    pub async fn ready(&mut self) -> Result<(), SinkError> {
        poll_fn(|cx| self.poll_admitted(cx)).await
    }

    /// Publishes a record and tells what became of it: for services that must answer their caller.
    ///
    /// Wait for [`ready`](Self::ready) first. The message is part of checkpoints like any other,
    /// and is published whether or not the receipt is kept. In a staged sink the receipt resolves
    /// after the commit, so do not wait for it before the checkpoint.
    ///
    /// # Errors
    ///
    /// The receipt fails with [`CheckpointError::Closed`] when the sink ends before it is known
    /// what became of the record.
    pub fn submit(&mut self, record: R) -> Receipt<Published> {
        match self.take_room() {
            Ok(()) => {}
            Err(SinkError::NotReady) => return Receipt::ready(Published::NotAccepted),
            Err(error) => return Receipt::failed(closed(error)),
        }
        let (resolver, receipt) = Receipt::channel();
        let reply = self.shared.with(|state| {
            let id = state.machine.reply();
            state.receipts.reply(id, resolver);
            id
        });
        match reply.and_then(|reply| self.take(&record, Some(reply))) {
            // When the sink ended meanwhile, the driver resolves the receipt, or did so before.
            Ok(()) => receipt,
            Err(error) => Receipt::failed(closed(error)),
        }
    }

    /// The receipt of what a restored sink commits by itself.
    ///
    /// Resolves when every message that the state names has its verdict. A flushing sink's state
    /// names nothing, nor does one that the host knows as settled: then it resolves to zero counts
    /// with the sink's first turn. The second call answers a receipt that is ready.
    ///
    /// # Errors
    ///
    /// The receipt fails with [`CheckpointError::Closed`] when the sink ends before, at the latest when
    /// nothing completes for [`progress_timeout`](SinkBuilder::progress_timeout); and like a commit's
    /// with [`CheckpointError::Retained`], when no checkpoint names what is kept aside.
    pub fn restored(&mut self) -> Receipt<Committed> {
        self.restored
            .take()
            .unwrap_or_else(|| Receipt::ready(Committed::default()))
    }

    /// What the sink did and holds.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared
            .with(|state| state.machine.stats())
            .unwrap_or_default()
    }

    /// What the sink did for each topic, as far as the builder's
    /// [`destination_stats`](SinkBuilder::destination_stats) asked for it.
    #[must_use]
    pub fn destination_stats(&self) -> BTreeMap<TopicName, DestinationStats> {
        self.shared
            .with(|state| state.machine.destination_stats().clone())
            .unwrap_or_default()
    }

    /// How often publish requests failed, by the code of the failure: each attempt counts, whether
    /// or not it was made again.
    ///
    /// A request that was refused and divided is not among them: what is found at fault counts, once.
    #[must_use]
    pub fn failures(&self) -> BTreeMap<Code, u64> {
        self.shared
            .with(|state| state.machine.failures().clone())
            .unwrap_or_default()
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What ended the sink, the first time; from then on that it is closed, and by what.
    fn last_word(&mut self) -> SinkError {
        let error = self.shared.ended();
        if self.told || matches!(error, SinkError::ClosedByHost) {
            return SinkError::Closed {
                cause: Cause::new(error),
            };
        }
        self.told = true;
        error
    }

    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        if self.flushing.is_none() {
            if self.shared.is_ended() {
                return Poll::Ready(Err(self.last_word()));
            }
            let (resolver, receipt) = Receipt::channel();
            self.shared.with(|state| {
                let id = state.machine.flush(clock::now());
                state.receipts.cut(id, CutReceipt::Flush(resolver));
            })?;
            self.flushing = Some(receipt);
        }
        let outcome = match &mut self.flushing {
            Some(receipt) => ready!(Pin::new(receipt).poll(cx)),
            None => Ok(()),
        };
        self.flushing = None;
        // A flush fails only with the sink.
        Poll::Ready(outcome.map_err(|_| self.last_word()))
    }
}

fn closed(error: SinkError) -> CheckpointError {
    CheckpointError::Closed {
        cause: Cause::new(error),
    }
}

/// `poll_flush` resolves when everything accepted is stored (in a staged sink: staged), skipped, or in
/// the hands of a failure handler that has flushed; not already when it is queued. `SinkExt::send` flushes after each
/// record, so a loop over it has one message in flight: use `feed`, or
/// [`next_when`](connector_core::next_when).
impl<R> Sink<R> for PubsubSink<R> {
    type Error = SinkError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.get_mut().poll_admitted(cx)
    }

    fn start_send(self: Pin<&mut Self>, record: R) -> Result<(), SinkError> {
        let this = self.get_mut();
        this.take_room()?;
        this.take(&record, None)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.get_mut().poll_flushed(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.get_mut().poll_closed(cx)
    }
}

impl<R> fmt::Debug for PubsubSink<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubsubSink")
            .field("instance", &self.shared.instance)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
