//! Messages as records.
//!
//! [`PubsubSource::decode`] makes a stream of records of a source. A closure from [`Message`] to
//! something that can be iterated is a decoder, and so are these:
//!
//! | payload | decoder | a record is |
//! |---|---|---|
//! | a JSON document | [`json`] | whatever serde makes of it |
//! | text in UTF-8 | [`text`] | a `String` |
//! | bytes | [`raw`] | `Bytes` |
//! | an Avro value, with feature `avro` | `avro`, `avro_single_object` | whatever serde makes of it |
//! | an Avro container, with feature `avro` | `avro_container` | each of its values |
//!
//! [`with_metadata`] keeps a message's attributes, times and names beside each of its records;
//! [`lazily`] makes a decoder of a closure whose records may fail one by one. The errors of the
//! decoders here say where a payload is wrong and quote nothing of it.

#[cfg(feature = "avro")]
mod avro;
mod current;
mod failure;
mod json;
mod metadata;
mod plain;
mod tally;

#[cfg(feature = "avro")]
pub use avro::{
    Avro, AvroContainer, AvroRecords, NotAvro, NotAvroSchema, avro, avro_container,
    avro_single_object,
};
pub use connector_core::decode::{Decode, Lazily, Sound, lazily};
pub use failure::{DecodeFailure, FewerRecords};
pub use json::{Json, NotJson, json};
pub use metadata::{Annotated, Annotating, WithMetadata, with_metadata};
pub use plain::{NotText, Raw, Text, raw, text};
pub(crate) use tally::Tally;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use connector_core::{BoxError, Checkpoint, Committed, Epoch, Receipt};
use futures::{Stream, stream::FusedStream};

use crate::{
    delivery::{DeliveryId, Disposition},
    error::{SettleError, SourceError},
    handout::Opened,
    message::Message,
    source::PubsubSource,
    state::SourceState,
    stats::Stats,
};
use current::{Current, Currents};

/// A source whose messages come out as records; what [`PubsubSource::decode`] makes.
///
/// Checkpoints as the source itself, with the same state:
///
/// - **A message belongs to the epoch of its last record**, and is acknowledged by that epoch's
///   commit. A message without any record belongs to the epoch that is open when it is decoded.
/// - **A cut may fall inside a message.** The state names it, with the number of its records that
///   were handed out. When it comes again, to this source or to another that was given the state,
///   so many records are skipped. The same holds within a run, when the message's lease ends in the
///   middle. Like ids of durable epochs this is remembered for `max_extension` + 10 minutes of open
///   stream, and forgotten by [`forget_seen`](Self::forget_seen). With
///   [`SavedDeliveries::Nothing`](crate::SavedDeliveries::Nothing) a state does not name such a
///   message: after a restore it begins again with its first record.
/// - **Decoders must be deterministic** for that. A message that has become shorter than what was
///   handed out of it counts as one that cannot be decoded, with [`FewerRecords`] as the cause; one that has become
///   exactly as long has nothing left to hand out.
/// - **A message that cannot be decoded** is treated as [`DecodeFailure`] says. Records before the fault
///   stay handed out.
///
/// # Panics
///
/// A panic of the decoder is the host's: it unwinds through `poll_next`. A host that catches it and
/// polls on gets [`SourceError::DecoderPanicked`]; nothing of the message is acknowledged.
///
/// # Cancel safety
///
/// As the source's: a record leaves together with the `Ready` that carries it.
pub struct Decoded<D: Decode<Message>> {
    source: PubsubSource,
    decoder: D,
    current: Currents<D>,
    /// The last word, which comes after the record that was handed out when it was found.
    failed: Option<SourceError>,
    /// Messages that could not be decoded.
    failures: u64,
    /// Set while the decoder runs.
    decoding: bool,
}

impl<D: Decode<Message>> Decoded<D> {
    pub(crate) fn new(source: PubsubSource, decoder: D) -> Self {
        Self {
            decoder,
            current: Currents::new(source.splits()),
            source,
            failed: None,
            failures: 0,
            decoding: false,
        }
    }

    /// The source inside.
    #[must_use]
    pub fn get_ref(&self) -> &PubsubSource {
        &self.source
    }

    /// The source inside, for whatever it can do. Messages that are read from it directly are handed out whole.
    pub fn get_mut(&mut self) -> &mut PubsubSource {
        &mut self.source
    }

    /// Decides about one delivery of the open epoch. As [`PubsubSource::settle`].
    ///
    /// # Errors
    ///
    /// [`SettleError::Unfinished`] while records of the message are left, and whatever
    /// [`PubsubSource::settle`] answers.
    pub fn settle(
        &mut self,
        delivery: DeliveryId,
        disposition: Disposition,
    ) -> Result<Receipt<Committed>, SettleError> {
        self.source.settle(delivery, disposition)
    }

    /// The receipt of what restored states name. As [`PubsubSource::restored`].
    pub fn restored(&mut self) -> Receipt<Committed> {
        self.source.restored()
    }

    /// Forgets the ids of durable epochs, and which messages are unfinished. As
    /// [`PubsubSource::forget_seen`].
    pub fn forget_seen(&mut self) {
        self.source.forget_seen();
    }

    /// What the source has done and holds. As [`PubsubSource::stats`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.source.stats()
    }

    /// Ends the source. As [`PubsubSource::close`].
    ///
    /// # Errors
    ///
    /// As [`PubsubSource::close`]. [`SourceError::Decode`] is one that the stream did not give
    /// before, when the fault was found behind the last record that was read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the closing.
    pub async fn close(&mut self) -> Result<(), SourceError> {
        self.end_if_failed();
        self.current.clear();
        self.source.close().await
    }

    /// Decodes a message up to its first record that was not handed out before.
    fn begin(&mut self, opened: Opened) {
        let Opened { message, skip } = opened;
        self.decoding = true;
        let (decoded, skipped) = match self.decoder.decode(message) {
            Ok(records) => skip_records(records, skip),
            Err(error) => (Err(error), 0),
        };
        self.decoding = false;
        let tally = self.source.out().tally();
        tally.skipped += skipped;
        match decoded {
            Ok(Some((ahead, records))) => self.keep(Current { ahead, records }),
            Ok(None) => {
                tally.without_records += u64::from(skip == 0);
                self.source.out().finish();
            }
            Err(error) => {
                self.refuse(error);
                // Nothing comes before it.
                self.end_if_failed();
            }
        }
    }

    fn keep(&mut self, current: Current<D>) {
        self.current.keep(self.source.opened(), current);
    }

    /// What is left of a message that is still ours, unless its split is paused: of the last one,
    /// or of one whose split was paused and goes on.
    fn take_current(&mut self) -> Option<Current<D>> {
        loop {
            let source = &self.source;
            let runs = |split| !source.is_paused_at(split);
            let split = self.current.find(source.opened(), runs)?;
            self.source.reopen(split);
            // What is not ours any more comes again.
            let current = self.current.take(split);
            if self.source.still_in_hand() {
                return current;
            }
        }
    }

    /// Hands a record out, and finds out whether it was its message's last.
    fn hand_out(&mut self, current: Current<D>) -> D::Record {
        let Current { ahead, mut records } = current;
        self.decoding = true;
        let following = records.next();
        self.decoding = false;
        self.source.out().hand_out_record();
        match following {
            Some(Ok(next)) => {
                let ahead = next;
                self.keep(Current { ahead, records });
            }
            None => self.source.out().finish(),
            Some(Err(error)) => self.refuse(error),
        }
        ahead
    }

    /// Treats the message in hand as the policy says.
    fn refuse(&mut self, error: BoxError) {
        let policy = self.source.decode_failure();
        let subscription = self.source.opened_from().clone();
        let out = self.source.out();
        let Some(in_hand) = out.in_hand() else {
            return;
        };
        let (message, records) = (in_hand.key().to_string(), in_hand.records());
        let attempt = in_hand.attempt();
        out.tally().failures += 1;
        self.failures += 1;
        match policy {
            DecodeFailure::Fail => {
                self.failed = Some(SourceError::Decode {
                    subscription,
                    message,
                    records,
                    cause: error.into(),
                });
                return;
            }
            DecodeFailure::Drop => {
                out.tally().dropped += 1;
                out.finish();
            }
            DecodeFailure::Nack => {
                out.tally().nacked += 1;
                self.source.turn_down();
            }
        }
        failure::tell(&failure::Refused {
            policy,
            subscription: subscription.as_str(),
            message: &message,
            records,
            attempt,
            failures: self.failures,
            error: &*error,
        });
    }

    /// Ends the source over a fault, if one was found. The records before it are out.
    fn end_if_failed(&mut self) {
        if let Some(error) = self.failed.take() {
            self.source.fail(error);
        }
    }

    /// A decoder that panicked may have left anything behind: the source ends.
    fn end_if_panicked(&mut self) {
        if !std::mem::take(&mut self.decoding) {
            return;
        }
        self.current.clear();
        let message = self.source.out().in_hand().map(|it| it.key().to_string());
        let subscription = self.source.opened_from().clone();
        self.source.fail(SourceError::DecoderPanicked {
            subscription,
            message: message.unwrap_or_default(),
        });
    }

    fn poll_record(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<D::Record, SourceError>>> {
        self.end_if_panicked();
        self.end_if_failed();
        loop {
            // Messages without records must not keep the driver and its timers from running.
            let budget = ready!(tokio::task::coop::poll_proceed(cx));
            if let Some(current) = self.take_current() {
                budget.made_progress();
                return Poll::Ready(Some(Ok(self.hand_out(current))));
            }
            let opened = ready!(self.source.poll_open(cx));
            budget.made_progress();
            match opened {
                Some(Ok(opened)) => self.begin(opened),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// The first record after so many, with what follows; how many were skipped.
type Skipped<R, I> = (Result<Option<(R, I)>, BoxError>, u64);

fn skip_records<R, I>(mut records: I, skip: u64) -> Skipped<R, I>
where
    I: Iterator<Item = Result<R, BoxError>>,
{
    for yielded in 0..skip {
        match records.next() {
            Some(Ok(_)) => {}
            Some(Err(error)) => return (Err(error), yielded),
            None => {
                let error = FewerRecords {
                    handed_out: skip,
                    yielded,
                };
                return (Err(error.into()), yielded);
            }
        }
    }
    let first = records.next().transpose();
    (first.map(|first| first.map(|ahead| (ahead, records))), skip)
}

// Nothing is pinned in here: the iterator is only ever called by value or by reference.
impl<D: Decode<Message>> Unpin for Decoded<D> {}

impl<D: Decode<Message>> Stream for Decoded<D> {
    type Item = Result<D::Record, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_record(cx)
    }
}

impl<D: Decode<Message>> FusedStream for Decoded<D> {
    fn is_terminated(&self) -> bool {
        self.source.is_terminated()
    }
}

impl<D: Decode<Message>> Checkpoint for Decoded<D> {
    type State = SourceState;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<SourceState> {
        self.source.snapshot(epoch)
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        self.source.commit(epoch)
    }

    fn abort(&mut self, epoch: Epoch) {
        self.source.abort(epoch);
    }
}

impl<D: Decode<Message>> fmt::Debug for Decoded<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded")
            .field("source", &self.source)
            .field("in_the_middle", &!self.current.is_empty())
            .finish_non_exhaustive()
    }
}

impl<D: Decode<Message>> Drop for Decoded<D> {
    fn drop(&mut self) {
        // Nobody reads it any more: the source tells it in the log.
        self.end_if_failed();
    }
}
