//! The handle that the host holds.

mod contract;
mod ending;
mod joining;
mod opening;
mod pausing;
mod pool;
mod purse;
mod shares;
mod turns;

pub(crate) use pool::{Pool, Room};
pub(crate) use shares::{PAUSED_PART, Standing};

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use connector_core::{Committed, Decode, Receipt, WallClock};
use futures::{Stream, stream::FusedStream};
use gcp_wire::SubscriptionName;

use crate::{
    builder::SourceBuilder,
    decode::{DecodeFailure, Decoded},
    delivery::{DeliveryId, Disposition},
    error::{SettleError, SourceError},
    message::Message,
    split::SplitReader,
    stats::Stats,
};
use joining::joined;
use turns::Turn;

/// Pub/Sub subscriptions as one stream of messages whose acknowledgement follows the host's
/// checkpoints.
///
/// Reads one subscription ([`builder`](Self::builder)) or several
/// ([`builder_of`](Self::builder_of)). Several take turns, one response each, so that none starves
/// another; a checkpoint cuts all of them in the one call; an error of one ends the source, and the
/// others give back what they hold.
///
/// Connects when it is first polled. An `Err` is the stream's last word: everything that may pass
/// is retried inside.
///
/// # Cancel safety
///
/// A message leaves the source together with the `Ready` that carries it: dropping a future that
/// waits for the next message, as `select!` does, loses nothing.
///
/// Dropping the source gives back what was not committed, as far as the runtime lives long enough;
/// [`close`](Self::close) waits for it.
pub struct PubsubSource {
    /// One per subscription, in the order of their names; never empty.
    splits: Vec<SplitReader>,
    /// Whose turn it is to hand out.
    turn: usize,
    /// Whose message is being decoded.
    opened: usize,
    close_budget: Duration,
    decode_failure: DecodeFailure,
    wall: WallClock,
    /// Whether the host decides about single deliveries.
    settles: bool,
    ended: bool,
}

impl PubsubSource {
    /// Begins to build a source that reads `subscription`.
    pub fn builder(subscription: SubscriptionName) -> SourceBuilder {
        SourceBuilder::new([subscription])
    }

    /// Begins to build a source that reads several splits as one stream.
    ///
    /// A split is a part of a subscription, and the service decides which messages a part gets. So
    /// splits of one subscription are read as one, with as many times the
    /// [`streams`](SourceBuilder::streams): read side by side they would not know each other's
    /// deliveries, and what the service delivers to both would be handed out twice.
    ///
    /// Several subscriptions need an [`instance`](SourceBuilder::instance).
    pub fn builder_of<S>(splits: impl IntoIterator<Item = S>) -> SourceBuilder
    where
        S: Into<SubscriptionName>,
    {
        SourceBuilder::new(splits.into_iter().map(Into::into))
    }

    pub(crate) fn new(
        splits: Vec<SplitReader>,
        close_budget: Duration,
        decode_failure: DecodeFailure,
        wall: WallClock,
    ) -> Self {
        Self {
            splits,
            turn: 0,
            opened: 0,
            close_budget,
            decode_failure,
            wall,
            settles: false,
            ended: false,
        }
    }

    /// Makes records of the messages: a stream of records that keeps the checkpoints.
    ///
    /// The decoder sees the whole [`Message`] and makes any number of records of it; a closure is
    /// one. A message belongs to the epoch of its last record, and a cut may fall inside it. What
    /// becomes of messages that cannot be decoded is chosen by
    /// [`SourceBuilder::decode_failure`]. See [`Decoded`].
    pub fn decode<D: Decode<Message>>(self, decoder: D) -> Decoded<D> {
        Decoded::new(self, decoder)
    }

    /// Decides about one delivery of the open epoch, without waiting for a checkpoint.
    ///
    /// For hosts without checkpoints, and for single messages of those with them. The delivery
    /// leaves the open epoch. The receipt resolves when the service has confirmed; its `lapsed` is
    /// 1 when the lease ended before.
    ///
    /// # Errors
    ///
    /// [`SettleError::Sealed`] for a delivery that a snapshot covers: its epoch's commit settles
    /// it. [`SettleError::Unknown`] for one that is not held. [`SettleError::DelayTooLong`] for
    /// more than 600 s. [`SettleError::Closed`] after the source ended.
    pub fn settle(
        &mut self,
        delivery: DeliveryId,
        disposition: Disposition,
    ) -> Result<Receipt<Committed>, SettleError> {
        let (split, own) = delivery.apart();
        let Some(split) = self.splits.get_mut(split) else {
            return Err(SettleError::Unknown { delivery });
        };
        let settled = split.settle(own, disposition);
        let receipt = settled.map_err(|error| error.about(delivery))?;
        if !std::mem::replace(&mut self.settles, true) {
            // A split that is paused from the beginning waits for no checkpoint either.
            self.splits
                .iter()
                .for_each(SplitReader::expect_no_checkpoint);
        }
        Ok(receipt)
    }

    /// The receipt of what restored states name.
    ///
    /// It resolves with the source's first poll, unless the states were saved with
    /// [`SavedDeliveries::AckIds`](crate::SavedDeliveries::AckIds): what they name is acknowledged
    /// with the first poll, and the receipt resolves when the service has answered. It counts as
    /// `settled` what was confirmed before its lease ended by the clocks of both processes. The
    /// rest counts as `lapsed`, as do ids without ack ids, which cannot be acknowledged before
    /// their messages come again: they may come again, and are then acknowledged and not handed
    /// out.
    pub fn restored(&mut self) -> Receipt<Committed> {
        joined(self.splits.iter().map(SplitReader::restored))
    }

    /// Forgets the ids of durable epochs, so that what comes again is handed out.
    ///
    /// For an operator who seeks the subscription back on purpose. Without this, what a restored
    /// state names would be acknowledged and not handed out when it comes again.
    pub fn forget_seen(&mut self) {
        self.splits.iter().for_each(SplitReader::forget_seen);
    }

    /// What the source has done and holds, over all its subscriptions.
    ///
    /// What each of them counts for itself adds up. Snapshots and commits are the source's, and
    /// spans of time are the longest.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let splits = self.splits.iter().map(SplitReader::stats);
        splits.reduce(Stats::with).unwrap_or_default()
    }

    /// What the source has done and holds, subscription by subscription.
    #[must_use]
    pub fn stats_by_split(&self) -> Vec<(&SubscriptionName, Stats)> {
        let splits = self.splits.iter();
        splits
            .map(|split| (split.subscription(), split.stats()))
            .collect()
    }

    /// The subscriptions that are read, each once, in the order of their names.
    pub fn subscriptions(&self) -> impl Iterator<Item = &SubscriptionName> + '_ {
        self.splits.iter().map(SplitReader::subscription)
    }
}

impl Stream for PubsubSource {
    type Item = Result<Message, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A host that always finds a message must still let the driver and its timers run.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let found = ready!(self.poll_split(cx));
        budget.made_progress();
        Poll::Ready(found.map(|turn| {
            let Turn { split, found } = turn?;
            Ok(self.splits[split].take(found, split))
        }))
    }
}

impl FusedStream for PubsubSource {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl fmt::Debug for PubsubSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.subscriptions().map(SubscriptionName::as_str).collect();
        f.debug_struct("PubsubSource")
            .field("subscriptions", &names)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
