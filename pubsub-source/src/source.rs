//! The handle that the host holds.

mod joining;
mod opening;
mod pool;
mod purse;
mod shares;

pub(crate) use pool::{Pool, Room};
pub(crate) use shares::{PAUSED_PART, Standing};

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use connector_core::{Checkpoint, CheckpointError, Committed, Decode, Epoch, Receipt};
use futures::{Stream, future::join_all, stream::FusedStream};
use gcp_wire::SubscriptionName;

use crate::{
    builder::SourceBuilder,
    decode::{DecodeFailure, Decoded},
    delivery::{DeliveryId, Disposition},
    driver::{self, WallClock},
    error::{SettleError, SourceError, driver_gone},
    message::Message,
    split::SplitReader,
    state::SourceState,
    stats::Stats,
};
use joining::{joined, last_word};

/// How much longer than its budget a close may take before the driver counts as gone.
const GRACE: Duration = Duration::from_secs(1);

/// Pub/Sub subscriptions as one stream of messages whose acknowledgement follows the host's
/// checkpoints.
///
/// Reads one subscription ([`builder`](Self::builder)) or several
/// ([`builder_of`](Self::builder_of)). Several take turns, one response each, so that none starves
/// another; a checkpoint cuts all in one call; an error of one ends the source, and the others give
/// back what they hold. Connects when it is first polled. An `Err` is the stream's last word:
/// everything that may pass is retried inside.
///
/// # Cancel safety
///
/// A message leaves the source together with the `Ready` that carries it: dropping a future that
/// waits for the next message, as `select!` does, loses nothing.
///
/// Dropping the source gives back what was not committed, while the runtime lives; `close` waits.
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

    /// Hands out nothing of a subscription until it is [resumed](Self::resume). Answers whether the
    /// source reads it.
    ///
    /// For hosts that let the slowest input set the pace. Checkpoints go on as before: what was
    /// handed out is settled by its epochs' commits, and its leases are extended. What is fetched
    /// meanwhile stays leased, up to [`paused_limit`](SourceBuilder::paused_limit).
    ///
    /// Beyond that limit, or when another subscription of the source finds no room in the buffer
    /// (the one that holds most first), the subscription is *parked*: its streams are closed, and
    /// what was not handed out is given back for others to have, each message at the cost of one
    /// delivery attempt. A parked subscription is not watched either: that it was deleted meanwhile
    /// shows when it is resumed.
    pub fn pause(&mut self, subscription: &SubscriptionName) -> bool {
        let split = self.split_of(subscription);
        split.map(SplitReader::pause).is_some()
    }

    /// Hands out a subscription's messages again. Answers whether the source reads it.
    ///
    /// What was fetched before and during the pause comes first, as long as it is still ours.
    pub fn resume(&mut self, subscription: &SubscriptionName) -> bool {
        let split = self.split_of(subscription);
        split.map(SplitReader::resume).is_some()
    }

    /// Whether a subscription of this source is paused.
    #[must_use]
    pub fn is_paused(&self, subscription: &SubscriptionName) -> bool {
        let mut splits = self.splits.iter();
        splits.any(|split| split.subscription() == subscription && split.is_paused())
    }

    fn split_of(&mut self, subscription: &SubscriptionName) -> Option<&mut SplitReader> {
        let mut splits = self.splits.iter_mut();
        splits.find(|split| split.subscription() == subscription)
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

    /// Fetches nothing more: the stream ends once what was fetched has been handed out.
    ///
    /// For a host that stops in good order: it goes on until the stream ends, takes a last
    /// checkpoint, commits it, awaits the receipt and [closes](Self::close) the source. Checkpoints
    /// work as before after the end. What the service still sends, and what is fetched of a paused
    /// subscription, is given back for others to have. A host that wants none of what is fetched
    /// closes the source instead, which gives it back.
    pub fn stop(&mut self) {
        self.splits.iter_mut().for_each(SplitReader::stop);
    }

    /// Ends the source: finishes what was committed, and gives everything else back, so that
    /// another subscriber gets it at once.
    ///
    /// Takes at most `close_budget`, 5 s by default, for all subscriptions together. Giving back
    /// counts as a delivery attempt on a subscription with a dead-letter policy. After this the
    /// stream ends, and every call answers `Closed`.
    ///
    /// # Errors
    ///
    /// [`SourceError::CloseTimedOut`] when something was not confirmed in time, and the source's
    /// terminal error if the stream did not give it before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the closing.
    pub async fn close(&mut self) -> Result<(), SourceError> {
        self.splits.iter_mut().for_each(SplitReader::close);
        let ends: Vec<_> = self.splits.iter().map(SplitReader::driver_ended).collect();
        let ends = ends.into_iter().map(|mut ended| async move {
            // The sender lives in what the handle shares with its driver.
            drop(ended.wait_for(|ended| *ended).await);
        });
        let limit = self.close_budget.saturating_add(GRACE);
        let waited = tokio::time::timeout(limit, join_all(ends)).await;
        self.ended = true;
        match (last_word(&mut self.splits), waited) {
            (Some(error), _) => Err(error),
            (None, Ok(_)) => Ok(()),
            (None, Err(_)) => Err(SourceError::DriverGone {
                cause: driver_gone(),
            }),
        }
    }

    /// Waits for a message; answers the split that has one.
    #[inline]
    fn poll_split(&mut self, cx: &Context<'_>) -> Poll<Option<Result<usize, SourceError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut live = false;
        for _ in 0..self.splits.len() {
            let at = self.turn;
            let split = &mut self.splits[at];
            match split.poll_ready(cx) {
                Poll::Ready(true) => {
                    // The last of a response: the next one is another's.
                    if split.is_at_last() {
                        self.pass_on();
                    }
                    return Poll::Ready(Some(Ok(at)));
                }
                Poll::Pending => live = true,
                // An error of one is the source's; whoever only follows it has none.
                Poll::Ready(false) => {
                    if let Some(error) = last_word(&mut self.splits) {
                        self.ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
            self.pass_on();
        }
        if live {
            return Poll::Pending;
        }
        self.ended = true;
        Poll::Ready(None)
    }

    /// One response of a split, then one of the next.
    fn pass_on(&mut self) {
        self.turn = (self.turn + 1) % self.splits.len();
    }

    /// A source with a split that has ended answers nothing else any more.
    fn refuse_when_closed(&self) -> Result<(), CheckpointError> {
        let closed = self.splits.iter().find_map(SplitReader::closed);
        closed.map_or(Ok(()), |cause| Err(CheckpointError::Closed { cause }))
    }

    fn cut(&mut self, epoch: Epoch) -> Result<SourceState, CheckpointError> {
        self.refuse_when_closed()?;
        let now = driver::now();
        let mut states = Vec::with_capacity(self.splits.len());
        for split in &mut self.splits {
            // All of them are at the same epoch, so either all refuse this one or none does.
            states.push(split.snapshot(now, epoch)?);
        }
        SourceState::join(states).ok_or_else(CheckpointError::driver_gone)
    }
}

impl Stream for PubsubSource {
    type Item = Result<Message, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A host that always finds a message must still let the driver and its timers run.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let found = ready!(self.poll_split(cx));
        budget.made_progress();
        match found {
            Some(Ok(split)) => Poll::Ready(self.splits[split].take(split).map(Ok)),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => Poll::Ready(None),
        }
    }
}

impl FusedStream for PubsubSource {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl Checkpoint for PubsubSource {
    type State = SourceState;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<SourceState> {
        match self.cut(epoch) {
            Ok(state) => Receipt::ready(state.taken_at(self.wall.now())),
            Err(error) => Receipt::failed(error),
        }
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        if let Err(error) = self.refuse_when_closed() {
            return Receipt::failed(error);
        }
        let now = driver::now();
        joined(self.splits.iter().map(|split| split.commit(now, epoch)))
    }

    fn abort(&mut self, epoch: Epoch) {
        self.splits.iter().for_each(|split| split.abort(epoch));
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
