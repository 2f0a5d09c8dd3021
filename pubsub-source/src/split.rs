//! One split of a source, as the handle sees it: a subscription with its machine.

mod opening;

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use connector_core::{Cause, CheckpointError, Committed, Epoch, Receipt};
use gcp_wire::SubscriptionName;
use tokio::sync::watch;

use crate::{
    delivery::{DeliveryId, Disposition},
    driver,
    error::{SettleError, SourceError},
    handout::{Found, HandOut, Pause},
    message::Message,
    shared::Shared,
    state::SourceState,
    stats::Stats,
};

/// Reads one subscription.
///
/// Deliveries are named here as the split's machine names them.
pub(crate) struct SplitReader {
    shared: Arc<Shared>,
    subscription: SubscriptionName,
    out: HandOut,
    started: bool,
    paused: bool,
    /// Who waits for a message. There is none before this task is woken.
    waits: Option<Waker>,
    ended: bool,
    /// Whether it was told that the machine cannot be asked any more.
    told_gone: bool,
}

impl SplitReader {
    pub(crate) fn new(shared: Arc<Shared>, subscription: SubscriptionName) -> Self {
        Self {
            shared,
            subscription,
            out: HandOut::default(),
            started: false,
            paused: false,
            waits: None,
            ended: false,
            told_gone: false,
        }
    }

    pub(crate) fn subscription(&self) -> &SubscriptionName {
        &self.subscription
    }

    /// Waits for a message to [`take`](Self::take); answers `None` once the split has ended, for
    /// whatever reason.
    #[inline]
    pub(crate) fn poll_ready(&mut self, cx: &Context<'_>) -> Poll<Option<Found>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if self.paused {
            return self.poll_end(cx);
        }
        if self.out.is_empty() && self.is_asleep(cx) {
            return Poll::Pending;
        }
        loop {
            let now = driver::now();
            match self.out.look_ahead(now, self.shared.revoked()) {
                Ok(found) => return Poll::Ready(Some(found)),
                Err(Pause::Empty) if !self.started => self.start(now),
                Err(Pause::Empty | Pause::Stale) => {}
            }
            let (out, shared) = (&mut self.out, &self.shared);
            let found = shared.with(|state| {
                out.refresh(&mut state.machine, now);
                if out.fill(&mut state.machine, now) {
                    return Poll::Ready(true);
                }
                if state.machine.closed().is_some() || state.machine.has_stopped() {
                    return Poll::Ready(false);
                }
                shared.await_message(state, cx.waker());
                Poll::Pending
            });
            match found {
                Ok(Poll::Ready(true)) => {}
                Ok(Poll::Pending) => {
                    self.waits = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Ok(Poll::Ready(false)) | Err(_) => {
                    self.ended = true;
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Hands out the message that [`poll_ready`](Self::poll_ready) found, as the host knows it.
    #[inline]
    pub(crate) fn take(&mut self, found: Found, split: usize) -> Message {
        self.out.take(found, split)
    }

    /// Whether this task has asked before and was not woken since, so that there is no need to ask
    /// again: the handle's other splits may be busy.
    fn is_asleep(&self, cx: &Context<'_>) -> bool {
        let waits = self.waits.as_ref();
        waits.is_some_and(|waker| waker.will_wake(cx.waker())) && !self.shared.is_woken()
    }

    /// What a paused split still has to tell: its end. And it drops what was revoked meanwhile.
    fn poll_end(&mut self, cx: &Context<'_>) -> Poll<Option<Found>> {
        let now = driver::now();
        if !self.out.is_stale(now, self.shared.revoked()) && self.is_asleep(cx) {
            return Poll::Pending;
        }
        if !self.started {
            self.start(now);
        }
        let (out, shared) = (&mut self.out, &self.shared);
        let closed = shared.with(|state| {
            if out.is_stale(now, state.machine.revoked()) {
                out.refresh(&mut state.machine, now);
            }
            shared.await_message(state, cx.waker());
            state.machine.closed().is_some() || state.machine.has_stopped()
        });
        if let Ok(false) = closed {
            self.waits = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.ended = true;
        Poll::Ready(None)
    }

    pub(crate) fn pause(&mut self) {
        self.paused = true;
        self.waits = None;
        let now = driver::now();
        let out = &mut self.out;
        // A source that has ended hands nothing out anyway.
        drop(self.shared.with(|state| {
            out.report(&mut state.machine, now);
            state.machine.pause(now);
        }));
    }

    pub(crate) fn resume(&mut self) {
        self.paused = false;
        self.waits = None;
        let now = driver::now();
        let shared = &self.shared;
        let reader = shared.with(|state| {
            state.machine.resume(now);
            shared.rouse(state)
        });
        // Whoever waits for the source waits for this split again.
        if let Ok(Some(reader)) = reader {
            reader.wake();
        }
    }

    /// Fetches nothing more; ends once everything fetched is handed out.
    pub(crate) fn stop(&mut self) {
        self.waits = None;
        let now = driver::now();
        let paused = self.paused;
        let (out, shared) = (&mut self.out, &self.shared);
        let reader = shared.with(|state| {
            out.report(&mut state.machine, now);
            state.machine.stop(now);
            if paused {
                out.refresh(&mut state.machine, now);
            }
            shared.rouse(state)
        });
        // Whoever waits for the source may be waiting for its end now.
        if let Ok(Some(reader)) = reader {
            reader.wake();
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether the next message is the last of those that were taken in bulk.
    pub(crate) fn is_at_last(&self) -> bool {
        self.out.is_at_last()
    }

    fn start(&mut self, now: Instant) {
        self.started = true;
        let waiting = self.shared.with(|state| {
            state.machine.start(now);
            let committed = state.machine.restored()?;
            Some((std::mem::take(&mut state.restores), committed))
        });
        if let Ok(Some((waiting, committed))) = waiting {
            for resolver in waiting {
                resolver.resolve(Ok(committed));
            }
        }
    }

    pub(crate) fn restored(&self) -> Receipt<Committed> {
        let receipt = self.shared.with(|state| {
            if let Some(cause) = state.machine.closed() {
                return closed(cause.clone());
            }
            if let Some(committed) = state.machine.restored() {
                return Receipt::ready(committed);
            }
            let (resolver, receipt) = Receipt::channel();
            state.restores.push(resolver);
            receipt
        });
        receipt.unwrap_or_else(closed)
    }

    pub(crate) fn settle(
        &mut self,
        delivery: DeliveryId,
        disposition: Disposition,
    ) -> Result<Receipt<Committed>, SettleError> {
        let now = driver::now();
        let out = &mut self.out;
        if out.in_hand().is_some_and(|it| it.delivery() == delivery) {
            return Err(SettleError::Unfinished { delivery });
        }
        let settled = self.shared.with(|state| {
            out.report(&mut state.machine, now);
            let settle = state.machine.settle(delivery, disposition)?;
            let (resolver, receipt) = Receipt::channel();
            state.settles.insert(settle, resolver);
            Ok(receipt)
        });
        settled.unwrap_or_else(|cause| Err(SettleError::Closed { cause }))
    }

    /// The host decides about single deliveries, if not of this split: no checkpoint need come.
    pub(crate) fn expect_no_checkpoint(&self) {
        // A source that has ended expects nothing.
        drop(
            self.shared
                .with(|state| state.machine.expect_no_checkpoint()),
        );
    }

    pub(crate) fn forget_seen(&self) {
        let told = self.shared.with(|state| state.machine.forget_seen());
        // A source that has ended hands nothing out any more.
        drop(told);
    }

    pub(crate) fn stats(&self) -> Stats {
        let now = driver::now();
        let stats = self.shared.with(|state| state.machine.stats(now));
        let (mut stats, left) = (stats.unwrap_or_default(), self.out.left());
        stats.handed_out += left.items as u64;
        stats.buffered = stats.buffered.saturating_sub(left.items);
        stats.buffered_bytes = stats.buffered_bytes.saturating_sub(left.bytes);
        self.out.untold_tally().add_to(&mut stats);
        stats
    }

    pub(crate) fn snapshot(
        &mut self,
        now: Instant,
        epoch: Epoch,
    ) -> Result<SourceState, CheckpointError> {
        let out = &mut self.out;
        let taken = self.shared.with(|state| {
            out.report(&mut state.machine, now);
            state.machine.snapshot(now, epoch)
        });
        taken.unwrap_or_else(|cause| Err(CheckpointError::Closed { cause }))
    }

    pub(crate) fn commit(&self, now: Instant, epoch: Epoch) -> Receipt<Committed> {
        let committed = self.shared.with(|state| {
            let commit = state.machine.commit(now, epoch)?;
            let (resolver, receipt) = Receipt::channel();
            state.commits.insert(commit, resolver);
            Ok(receipt)
        });
        match committed {
            Ok(Ok(receipt)) => receipt,
            Ok(Err(error)) => Receipt::failed(error),
            Err(cause) => closed(cause),
        }
    }

    pub(crate) fn abort(&self, epoch: Epoch) {
        // Nothing to abort in a source that has ended.
        drop(self.shared.with(|state| state.machine.abort(epoch)));
    }

    /// Why every call is refused, once the split has ended or is ending.
    pub(crate) fn closed(&self) -> Option<Cause> {
        match self.shared.with(|state| state.machine.closed().cloned()) {
            Ok(closed) => closed,
            Err(cause) => Some(cause),
        }
    }

    /// Starts to finish what was committed and to give the rest back.
    pub(crate) fn close(&mut self) {
        let now = driver::now();
        let out = &mut self.out;
        let told = self.shared.with(|state| {
            out.clear(&mut state.machine, now);
            state.machine.close(now);
        });
        // What was poisoned has ended too; `take_error` tells why.
        drop(told);
    }

    /// Follows whether the driver has ended.
    pub(crate) fn driver_ended(&self) -> watch::Receiver<bool> {
        self.shared.ended()
    }

    /// What the split died of, once.
    pub(crate) fn take_error(&mut self) -> Option<SourceError> {
        match self.shared.with(|state| state.machine.take_error()) {
            Ok(error) => error,
            Err(cause) => {
                let first = !std::mem::replace(&mut self.told_gone, true);
                first.then_some(SourceError::DriverGone { cause })
            }
        }
    }
}

impl Drop for SplitReader {
    fn drop(&mut self) {
        self.close();
        if let Some(error) = self.take_error() {
            driver::tell_unread(&self.subscription, &error);
        }
    }
}

fn closed<T>(cause: Cause) -> Receipt<T> {
    Receipt::failed(CheckpointError::Closed { cause })
}
