//! What the host holds.

mod operator;
mod preparation;

pub(crate) use preparation::Preparation;

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use connector_core::{
    BoxError, Checkpoint, CheckpointError, Committed, Encode, Epoch, Limits, Receipt, Resolver,
    host::{Admission, Room},
};
use futures::Sink;
use gcp_wire::{Code, QueueName};

use crate::builder::SinkBuilder;
use crate::driver::{Shared, clock};
use crate::error::SinkError;
use crate::event;
use crate::queue_state::QueueState;
use crate::state::SinkState;
use crate::stats::{DestinationStats, Stats};
use crate::submitted::Submitted;
use crate::task::Task;
use preparation::Prepared;

/// Records taken for one unit of the host's cooperative budget, of which a task has 128 at a time: so
/// many that calls of 100 tasks fill before the driver has its turn.
const TURN: usize = 2;

/// A sink that creates one Cloud Task per record.
///
/// A `futures::Sink` of records that also takes part in its host's checkpoints: the receipt of a
/// snapshot resolves when every record before the cut is a task (or, in
/// [`Delivery::Staged`](crate::Delivery::Staged), part of the state), or was handed to the failure
/// handler and that handler has flushed. See the [crate's documentation](crate) for what that
/// guarantees.
///
/// Prefer [`feed`](futures::SinkExt::feed) to [`send`](futures::SinkExt::send), which flushes after
/// each record and so creates one task at a time.
pub struct CloudTasksSink<R> {
    preparation: Preparation<R>,
    shared: Arc<Shared>,
    /// Room was given and not used.
    admitted: bool,
    /// How many more records are taken before the host's task is asked whether others have their turn.
    turn: usize,
    /// The machine knows that the host waits for room.
    waiting: bool,
    /// A flush of the machine is under way on behalf of `poll_flush`.
    flushing: bool,
    /// The receipt of what the restore commits, until it is asked for.
    restored: Option<Receipt<Committed>>,
}

impl<R> CloudTasksSink<R> {
    /// Starts building a sink whose records become tasks through `encode`.
    ///
    /// A closure `|order: &Order| Ok(Some(HttpTask::post(url)?.json(order)?))` is an encoder; so is
    /// one that answers an [`AppEngineTask`](crate::AppEngineTask), a
    /// [`FullTask`](crate::FullTask), or a [`Task`] of any kind.
    /// `Ok(None)` skips the record, which is counted; an `Err` is that record's own failure and
    /// goes to the failure handler.
    pub fn builder<F, T>(mut encode: F) -> SinkBuilder<R>
    where
        F: FnMut(&R) -> Result<Option<T>, BoxError> + Send + 'static,
        T: Into<Task>,
    {
        let encode = move |record: &R| Ok(encode(record)?.map(Into::into));
        SinkBuilder::new(Box::new(encode))
    }

    /// Starts building a sink with an encoder that is a type of its own.
    pub fn builder_with<T: Into<Task>>(mut encoder: impl Encode<R, T> + 'static) -> SinkBuilder<R> {
        let encode = move |record: &R| Ok(encoder.encode(record)?.map(Into::into));
        SinkBuilder::new(Box::new(encode))
    }

    pub(crate) const fn new(
        preparation: Preparation<R>,
        shared: Arc<Shared>,
        restored: Option<Receipt<Committed>>,
    ) -> Self {
        Self {
            preparation,
            shared,
            admitted: false,
            turn: 0,
            waiting: false,
            flushing: false,
            restored,
        }
    }

    /// Waits until the sink has room for one more record.
    ///
    /// # Errors
    ///
    /// The error that ended the sink.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn ready(&mut self) -> Result<(), SinkError> {
        poll_fn(|cx| self.poll_admission(cx)).await
    }

    /// Creates a record's task and tells what became of it: for services that must answer their
    /// caller.
    ///
    /// Wait for [`ready`](Self::ready) first. The task is part of checkpoints like any other, and is
    /// created whether or not the receipt is kept.
    ///
    /// # Errors
    ///
    /// The receipt fails with [`CheckpointError::Closed`] when the sink ends before the record has a
    /// verdict; the task may exist then or not.
    pub fn submit(&mut self, record: R) -> Receipt<Submitted> {
        let (resolver, receipt) = Receipt::channel();
        match self.take(&record, Some(resolver)) {
            Ok(()) => receipt,
            Err(SinkError::NotReady) => Receipt::ready(Submitted::NotAccepted),
            Err(error) => Receipt::failed(CheckpointError::Closed {
                cause: error.into_cause(),
            }),
        }
    }

    /// What the sink did and holds, in numbers.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut inner = self.shared.lock();
        inner.machine.handle_time_of_day(self.shared.wall().now());
        inner.machine.stats()
    }

    /// What the sink did for each queue, as far as the builder's
    /// [`destination_stats`](SinkBuilder::destination_stats) asked for it.
    #[must_use]
    pub fn destination_stats(&self) -> BTreeMap<QueueName, DestinationStats> {
        self.shared.lock().machine.destination_stats().clone()
    }

    /// Failed attempts so far by what the service, or the connection, said: calls that were tried
    /// again or given up, and verdicts on tasks of a batch. ALREADY_EXISTS of a named task is none.
    #[must_use]
    pub fn failures(&self) -> BTreeMap<Code, u64> {
        self.shared.lock().machine.failures().clone()
    }

    /// Whether the queues dispatch that the sink [looks at](SinkBuilder::queue_check), as they were
    /// when they were last looked at.
    #[must_use]
    pub fn queue_states(&self) -> BTreeMap<QueueName, QueueState> {
        self.shared
            .lock()
            .machine
            .queue_states()
            .into_iter()
            .collect()
    }

    /// The receipt of what a restore commits by itself: the staged tasks that the restored state
    /// names, and nothing where tasks are not staged. Asked again, it is ready with zero counts.
    pub fn restored(&mut self) -> Receipt<Committed> {
        let owed = self.restored.take();
        owed.unwrap_or_else(|| Receipt::ready(Committed::default()))
    }

    /// Gives every accepted record its verdict, flushes the failure handler, and ends the sink.
    /// Takes at most the [close timeout](crate::SinkBuilder::close_timeout).
    ///
    /// # Errors
    ///
    /// [`SinkError::CloseExpired`] with the number of records that have no verdict, or the error
    /// that ended the sink. They come again after a restore from the last saved state.
    ///
    /// # Cancel safety
    ///
    /// The sink goes on closing; call `close` again to learn the outcome.
    pub async fn close(&mut self) -> Result<(), SinkError> {
        let shared = Arc::clone(&self.shared);
        poll_fn(move |cx| shared.poll_close(cx)).await
    }

    fn poll_admission(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        // On a current-thread runtime a host that never has to wait would otherwise keep the
        // driver from running until the budget is used up.
        if self.turn == 0 {
            ready!(tokio::task::coop::poll_proceed(cx)).made_progress();
            self.turn = TURN;
        }
        self.shared.lock().machine.check_open()?;
        if !self.admitted && self.shared.member().poll_admit(cx).is_pending() {
            // A sink that ends gives back what it holds, which wakes whoever waits for room in it.
            if !std::mem::replace(&mut self.waiting, true) {
                self.shared.lock().machine.await_room(clock::now());
                self.shared.wake_driver();
            }
            return Poll::Pending;
        }
        if std::mem::take(&mut self.waiting) {
            self.shared.lock().machine.get_room();
        }
        self.admitted = true;
        Poll::Ready(Ok(()))
    }

    /// Accepts a record, or skips it.
    fn take(&mut self, record: &R, resolver: Option<Resolver<Submitted>>) -> Result<(), SinkError> {
        let member = self.shared.member();
        if !self.admitted && !member.try_admit() {
            self.shared.lock().machine.check_open()?;
            return Err(SinkError::NotReady);
        }
        self.admitted = true;
        self.turn = self.turn.saturating_sub(1);
        let prepared = match self.preparation.prepare(record, self.shared.wall().now()) {
            Ok(prepared) => prepared,
            Err(error) => {
                let mut inner = self.shared.lock();
                inner.machine.fail(error);
                let ended = inner.machine.check_open();
                drop(inner);
                self.shared.wake_driver();
                return ended;
            }
        };
        let Some(prepared) = prepared else {
            self.shared.lock().machine.skip()?;
            if let Some(resolver) = resolver {
                resolver.resolve(Ok(Submitted::Skipped));
            }
            return Ok(());
        };
        let amount = Limits::new(1, prepared.bytes());
        // Taken before the machine has it: the driver may give it back at any moment after.
        self.admitted = member.charge_and_admit(amount);
        let (now, submitted) = (clock::now(), resolver.is_some());
        let mut inner = self.shared.lock();
        if self.flushing {
            // A flush that nobody waits for any more does not cover this record.
            inner.machine.cancel_flush();
            self.flushing = false;
        }
        let taken = match prepared {
            Prepared::Create(create) => inner.machine.accept(now, create, submitted),
            Prepared::Reject(rejected) => inner.machine.reject(now, *rejected, submitted),
        };
        // Under the same lock as the record: its outcome cannot come before its receipt is known.
        if let (Ok(id), Some(resolver)) = (&taken, resolver) {
            inner.receipts.submitted.insert(*id, resolver);
        }
        drop(inner);
        match taken {
            Ok(_) => {
                self.shared.wake_driver();
                Ok(())
            }
            Err(error) => {
                member.release(amount);
                Err(error)
            }
        }
    }

    fn poll_flushed(&mut self, cx: &Context<'_>) -> Poll<Result<(), SinkError>> {
        self.shared.host().register(cx.waker());
        let mut inner = self.shared.lock();
        if !self.flushing {
            inner.machine.start_flush(clock::now());
            self.flushing = true;
            self.shared.wake_driver();
        }
        inner
            .machine
            .poll_flushed()
            .map_or(Poll::Pending, |outcome| {
                self.flushing = false;
                Poll::Ready(outcome)
            })
    }
}

impl<R> Sink<R> for CloudTasksSink<R> {
    type Error = SinkError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.get_mut().poll_admission(cx)
    }

    fn start_send(self: Pin<&mut Self>, record: R) -> Result<(), SinkError> {
        self.get_mut().take(&record, None)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.get_mut().poll_flushed(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.shared.poll_close(cx)
    }
}

impl<R> Admission for CloudTasksSink<R> {
    type Error = SinkError;

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, SinkError>> {
        // Also where there is room: the host goes on to wait for its source, and hears of an end.
        self.shared.host().register(cx.waker());
        if self.shared.lock().machine.wants_checkpoint() {
            return Poll::Ready(Ok(Room::CheckpointWanted));
        }
        self.poll_admission(cx).map_ok(|()| Room::Ready)
    }
}

impl<R> Checkpoint for CloudTasksSink<R> {
    type State = SinkState;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<SinkState> {
        self.shared.snapshot(epoch)
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        let mut inner = self.shared.lock();
        let commit = match inner.machine.commit(epoch) {
            Ok(commit) => commit,
            Err(error) => return Receipt::failed(error),
        };
        let (resolver, receipt) = Receipt::channel();
        inner.receipts.commits.insert(commit, resolver);
        drop(inner);
        self.shared.wake_driver();
        receipt
    }

    fn abort(&mut self, epoch: Epoch) {
        self.shared.lock().machine.abort(epoch);
        self.shared.wake_driver();
    }
}

impl<R> Drop for CloudTasksSink<R> {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        let pending = inner.machine.pending();
        let uncommitted = inner.machine.uncommitted();
        // While the runtime lives, the driver still gives everything accepted its verdict.
        let forgotten = inner.machine.close(clock::now());
        drop(inner);
        self.shared.wake_driver();
        self.shared.member().give_up();
        if forgotten && pending > 0 {
            event::dropped(self.shared.instance(), pending, uncommitted);
        }
    }
}

impl<R> fmt::Debug for CloudTasksSink<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudTasksSink")
            .field("instance", &self.shared.instance())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
