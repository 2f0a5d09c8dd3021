//! What the handle and the driver share.

use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use connector_core::ledger::CommitId;
use connector_core::{CheckpointError, Committed, Epoch, Member, Receipt, WallClock};
use futures::task::AtomicWaker;
use tokio::sync::Notify;

use super::receipts::Receipts;
use crate::SinkError;
use crate::event;
use crate::machine::{Effect, Machine, RecordId};
use crate::state::SinkState;
use crate::submitted::Submitted;

/// The machine and its receipts under one mutex, which nobody holds across an await.
#[derive(Debug)]
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    /// Wakes the driver.
    driver: Notify,
    /// Wakes the host that waits for a flush or for the end.
    host: AtomicWaker,
    member: Member,
    instance: Arc<str>,
    wall: WallClock,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) machine: Machine,
    pub(crate) receipts: Receipts,
}

impl Shared {
    pub(crate) fn new(
        machine: Machine,
        member: Member,
        instance: Arc<str>,
        wall: WallClock,
    ) -> Self {
        Self {
            inner: Mutex::new(Inner {
                machine,
                receipts: Receipts::default(),
            }),
            driver: Notify::new(),
            host: AtomicWaker::new(),
            member,
            instance,
            wall,
        }
    }

    /// The time of day.
    pub(crate) const fn wall(&self) -> &WallClock {
        &self.wall
    }

    /// The machine. One whose invariants a panic may have broken is never used again: it has
    /// ended.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| {
            let mut inner = poisoned.into_inner();
            let message = "the lock is poisoned".to_owned();
            inner.machine.fail(SinkError::Panicked { message });
            self.driver.notify_one();
            inner
        })
    }

    pub(crate) const fn member(&self) -> &Member {
        &self.member
    }

    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// There is something for the driver to do.
    pub(crate) fn wake_driver(&self) {
        self.driver.notify_one();
    }

    pub(super) async fn woken(&self) {
        self.driver.notified().await;
    }

    /// The task to wake when a flush or the end is there. To be called before looking for it.
    pub(crate) const fn host(&self) -> &AtomicWaker {
        &self.host
    }

    pub(super) fn wake_host(&self) {
        self.host.wake();
    }

    /// Starts closing, and answers how the sink ended once it has.
    pub(crate) fn poll_close(&self, cx: &Context<'_>) -> Poll<Result<(), SinkError>> {
        self.host.register(cx.waker());
        let mut inner = self.lock();
        inner.machine.close(super::clock::now());
        let closed = inner.machine.poll_closed();
        drop(inner);
        self.wake_driver();
        closed.map_or(Poll::Pending, Poll::Ready)
    }

    /// Cuts: seals the open epoch, and takes its state under the same lock.
    pub(crate) fn snapshot(&self, epoch: Epoch) -> Receipt<SinkState> {
        let mut inner = self.lock();
        inner.machine.handle_time_of_day(self.wall.now());
        if let Err(error) = inner.machine.snapshot(super::clock::now(), epoch) {
            return Receipt::failed(error);
        }
        let state = match inner.machine.saved_tasks() {
            Some((tasks, kept)) => SinkState::staged(&self.instance, tasks, kept),
            None => SinkState::flushed(&self.instance),
        };
        let (resolver, receipt) = Receipt::channel();
        inner.receipts.snapshots.insert(epoch, (resolver, state));
        drop(inner);
        self.wake_driver();
        receipt
    }

    pub(super) fn resolve_snapshot(&self, epoch: Epoch, outcome: Result<(), CheckpointError>) {
        let waiting = self.lock().receipts.snapshots.remove(&epoch);
        if let Some((resolver, state)) = waiting {
            resolver.resolve(outcome.map(|()| state));
        }
    }

    pub(super) fn resolve_commit(
        &self,
        commit: CommitId,
        outcome: Result<Committed, CheckpointError>,
    ) {
        let resolver = self.lock().receipts.commits.remove(&commit);
        if let Some(resolver) = resolver {
            resolver.resolve(outcome);
        }
    }

    pub(super) fn resolve_submitted(&self, record: RecordId, outcome: Submitted) {
        let resolver = self.lock().receipts.submitted.remove(&record);
        if let Some(resolver) = resolver {
            resolver.resolve(Ok(outcome));
        }
    }

    /// The machine has ended: nobody who waits shall wait on.
    pub(super) fn resolve_end(&self) {
        let mut inner = self.lock();
        let receipts = std::mem::take(&mut inner.receipts);
        let cause = inner.machine.cause();
        let failure = inner.machine.failure();
        drop(inner);
        match failure {
            Some((pending, error)) => event::failed(&self.instance, pending, &error),
            None => event::closed(&self.instance),
        }
        receipts.close(&cause);
        self.host.wake();
    }

    /// Ends the sink in place of a driver that no longer performs effects.
    pub(super) fn end(&self, error: SinkError) {
        let mut inner = self.lock();
        inner.machine.fail(error);
        let now = super::clock::now();
        let mut effects = Vec::new();
        while let Some(effect) = inner.machine.poll_effect(now) {
            effects.push(effect);
        }
        drop(inner);
        for effect in effects {
            match effect {
                Effect::Release(amount) => self.member.release(amount),
                Effect::Snapshot { epoch, outcome } => self.resolve_snapshot(epoch, outcome),
                Effect::Committed { commit, committed } => {
                    self.resolve_commit(commit, Ok(committed));
                }
                Effect::Unconfirmed { commit, error } => self.resolve_commit(commit, Err(error)),
                Effect::Submitted { record, outcome } => self.resolve_submitted(record, outcome),
                Effect::Ended => self.resolve_end(),
                Effect::Create { .. }
                | Effect::CreateBatch { .. }
                | Effect::ReadOperation { .. }
                | Effect::ReadQueue { .. }
                | Effect::Handle { .. }
                | Effect::FlushHandler { .. }
                | Effect::Wake
                | Effect::Report(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use connector_core::{Budget, Limits};

    use super::*;
    use crate::options::Options;

    #[test]
    fn a_panic_under_the_lock_is_an_error_for_everyone_after_it() {
        let member = Budget::new(Limits::new(1, 1)).join("sink");
        let machine = Machine::new(Options::default().machine(), None);
        let shared = Arc::new(Shared::new(
            machine,
            member,
            "0".into(),
            WallClock::default(),
        ));
        let breaking = Arc::clone(&shared);
        let broken = std::thread::spawn(move || {
            let _inner = breaking.lock();
            panic!("a broken invariant");
        });
        assert!(broken.join().is_err());
        let first = shared.lock().machine.check_open();
        assert!(
            matches!(first, Err(SinkError::Panicked { .. })),
            "{first:?}"
        );
        let later = shared.lock().machine.check_open();
        assert!(matches!(later, Err(SinkError::Closed { .. })), "{later:?}");
        let commit = shared.lock().machine.commit(Epoch::new(1));
        assert!(
            matches!(commit, Err(CheckpointError::Closed { .. })),
            "{commit:?}"
        );
    }
}
