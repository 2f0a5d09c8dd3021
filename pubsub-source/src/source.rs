//! The handle that the host holds.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use connector_core::{Checkpoint, CheckpointError, Committed, Epoch, Receipt};
use futures::{Stream, stream::FusedStream};
use gcp_wire::SubscriptionName;

use crate::{
    builder::SourceBuilder,
    delivery::{DeliveryId, Disposition},
    driver,
    error::{SettleError, SourceError, driver_gone},
    handout::{HandOut, Pause},
    message::Message,
    shared::{Shared, State},
    state::SourceState,
    stats::Stats,
};

/// How much longer than its budget a close may take before the driver counts as gone.
const GRACE: Duration = Duration::from_secs(1);

/// A Pub/Sub subscription as a stream of messages whose acknowledgement follows the host's
/// checkpoints.
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
    shared: Arc<Shared>,
    subscription: SubscriptionName,
    close_budget: Duration,
    out: HandOut,
    started: bool,
    ended: bool,
}

impl PubsubSource {
    /// Begins to build a source that reads `subscription`.
    pub fn builder(subscription: SubscriptionName) -> SourceBuilder {
        SourceBuilder::new(subscription)
    }

    pub(crate) fn new(
        shared: Arc<Shared>,
        subscription: SubscriptionName,
        close_budget: Duration,
    ) -> Self {
        Self {
            shared,
            subscription,
            close_budget,
            out: HandOut::default(),
            started: false,
            ended: false,
        }
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
        let now = driver::now();
        let out = &mut self.out;
        let settled = self.shared.with(|state| {
            out.report(&mut state.machine, now);
            let settle = state.machine.settle(delivery, disposition)?;
            let (resolver, receipt) = Receipt::channel();
            state.settles.insert(settle, resolver);
            Ok(receipt)
        });
        settled.unwrap_or_else(|cause| Err(SettleError::Closed { cause }))
    }

    /// The receipt of what restored states name.
    ///
    /// It resolves with the source's first poll. Ids without ack ids cannot be acknowledged before
    /// their messages come again, so all of them count as `lapsed`: they may come again, and are
    /// then acknowledged and not handed out.
    pub fn restored(&mut self) -> Receipt<Committed> {
        let receipt = self.shared.with(|state| {
            if let Some(cause) = state.machine.closed() {
                return Receipt::failed(CheckpointError::Closed {
                    cause: cause.clone(),
                });
            }
            if state.machine.is_started() {
                return Receipt::ready(restored(state));
            }
            let (resolver, receipt) = Receipt::channel();
            state.restores.push(resolver);
            receipt
        });
        receipt.unwrap_or_else(|cause| Receipt::failed(CheckpointError::Closed { cause }))
    }

    /// Forgets the ids of durable epochs, so that what comes again is handed out.
    ///
    /// For an operator who seeks the subscription back on purpose. Without this, what a restored
    /// state names would be acknowledged and not handed out when it comes again.
    pub fn forget_seen(&mut self) {
        let told = self.shared.with(|state| state.machine.forget_seen());
        // A source that has ended hands nothing out any more.
        drop(told);
    }

    /// What the source has done and holds.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let now = driver::now();
        let stats = self.shared.with(|state| state.machine.stats(now));
        let (mut stats, left) = (stats.unwrap_or_default(), self.out.left());
        stats.handed_out += left.items as u64;
        stats.buffered = stats.buffered.saturating_sub(left.items);
        stats.buffered_bytes = stats.buffered_bytes.saturating_sub(left.bytes);
        stats
    }

    /// The subscription that is read.
    #[must_use]
    pub fn subscription(&self) -> &SubscriptionName {
        &self.subscription
    }

    /// Ends the source: finishes what was committed, and gives everything else back, so that
    /// another subscriber gets it at once.
    ///
    /// Takes at most `close_budget`, 5 s by default. Giving back counts as a delivery attempt on a
    /// subscription with a dead-letter policy. After this the stream ends, and every call answers
    /// `Closed`.
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
        let now = driver::now();
        let out = &mut self.out;
        // What was poisoned has ended too, and tells why below.
        drop(self.shared.with(|state| {
            out.clear(&mut state.machine, now);
            state.machine.close(now);
        }));
        let mut ended = self.shared.ended();
        let limit = self.close_budget.saturating_add(GRACE);
        let waited = tokio::time::timeout(limit, ended.wait_for(|ended| *ended)).await;
        self.ended = true;
        let error = self.shared.with(|state| state.machine.take_error());
        match (error, waited) {
            (Ok(Some(error)), _) => Err(error),
            (Ok(None), Ok(_)) => Ok(()),
            (Ok(None), Err(_)) => Err(SourceError::DriverGone {
                cause: driver_gone(),
            }),
            (Err(cause), _) => Err(SourceError::DriverGone { cause }),
        }
    }

    fn poll_message(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Message, SourceError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        loop {
            let now = driver::now();
            match self.out.pop(now, self.shared.revoked()) {
                Ok(message) => return Poll::Ready(Some(Ok(message))),
                Err(Pause::Empty) if !self.started => self.start(),
                Err(Pause::Empty | Pause::Stale) => {}
            }
            let out = &mut self.out;
            let found = self.shared.with(|state| {
                out.refresh(&mut state.machine, now);
                if out.fill(&mut state.machine, now) {
                    return Poll::Ready(None);
                }
                if state.machine.closed().is_some() {
                    return Poll::Ready(Some(state.machine.take_error()));
                }
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            });
            match found {
                Ok(Poll::Ready(None)) => {}
                Ok(Poll::Ready(Some(end))) => {
                    self.ended = true;
                    return Poll::Ready(end.map(Err));
                }
                Ok(Poll::Pending) => return Poll::Pending,
                Err(cause) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(SourceError::DriverGone { cause })));
                }
            }
        }
    }

    fn start(&mut self) {
        self.started = true;
        let now = driver::now();
        let waiting = self.shared.with(|state| {
            state.machine.start(now);
            let committed = restored(state);
            (std::mem::take(&mut state.restores), committed)
        });
        if let Ok((waiting, committed)) = waiting {
            for resolver in waiting {
                resolver.resolve(Ok(committed));
            }
        }
    }
}

/// What a restore commits: ids whose leases ended with the process that held them.
fn restored(state: &State) -> Committed {
    let mut committed = Committed::default();
    committed.lapsed = state.machine.restored_ids();
    committed
}

impl Stream for PubsubSource {
    type Item = Result<Message, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A host that always finds a message must still let the driver and its timers run.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let polled = self.poll_message(cx);
        if polled.is_ready() {
            budget.made_progress();
        }
        polled
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
        let now = driver::now();
        let out = &mut self.out;
        let taken = self.shared.with(|state| {
            out.report(&mut state.machine, now);
            state.machine.snapshot(now, epoch)
        });
        match taken {
            Ok(Ok(state)) => Receipt::ready(state),
            Ok(Err(error)) => Receipt::failed(error),
            Err(cause) => Receipt::failed(CheckpointError::Closed { cause }),
        }
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        let now = driver::now();
        let committed = self.shared.with(|state| {
            let commit = state.machine.commit(now, epoch)?;
            let (resolver, receipt) = Receipt::channel();
            state.commits.insert(commit, resolver);
            Ok(receipt)
        });
        match committed {
            Ok(Ok(receipt)) => receipt,
            Ok(Err(error)) => Receipt::failed(error),
            Err(cause) => Receipt::failed(CheckpointError::Closed { cause }),
        }
    }

    fn abort(&mut self, epoch: Epoch) {
        // Nothing to abort in a source that has ended.
        drop(self.shared.with(|state| state.machine.abort(epoch)));
    }
}

impl Drop for PubsubSource {
    fn drop(&mut self) {
        let now = driver::now();
        let out = &mut self.out;
        drop(self.shared.with(|state| {
            out.clear(&mut state.machine, now);
            state.machine.close(now);
        }));
    }
}

impl fmt::Debug for PubsubSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubsubSource")
            .field("subscription", &self.subscription)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
