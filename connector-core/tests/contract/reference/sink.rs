//! A sink of numbers, in either mode.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    time::Duration,
};

use connector_core::{
    Cause, Checkpoint, CheckpointError, Committed, Epoch, FailureHandler, Receipt, Rejected,
    RejectedReason, Resolver, Restored,
    conformance::FlakyHandler,
    host::{Admission, Room},
    ledger::{Commit, CommitId, Ledger, Outcome, Place, Standing},
};
use futures::Sink;
use serde::{Deserialize, Serialize};

use super::{
    Bug,
    crew::Drive,
    push_service::{PushService, Pushed},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Flush,
    Staged,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Record {
    Good(u64),
    Refused(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Item {
    /// (incarnation, sequence): the same item in whatever state it is named.
    identity: (u64, u64),
    number: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    items: Vec<Item>,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("the sink has ended; what was not confirmed is owed")]
pub(crate) struct SinkEnded(#[source] Cause);

#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the destination does not exist")]
pub(crate) struct Missing;

pub(crate) struct FakeSink {
    core: Arc<Mutex<Core>>,
    restored: Option<Receipt<Committed>>,
}

pub(crate) struct Core {
    mode: Mode,
    bug: Option<Bug>,
    service: PushService,
    stage: usize,
    incarnation: u64,
    next_sequence: u64,
    ledger: Ledger<Item>,
    /// What may leave, in order.
    outbox: VecDeque<(Place, Item)>,
    handler: FlakyHandler,
    /// Something was handled and no flush has succeeded since.
    owes_flush: bool,
    snapshots: BTreeMap<Epoch, (Resolver<State>, State)>,
    commits: Vec<(CommitId, Resolver<Committed>)>,
    ended: Option<Cause>,
    wish_told: bool,
    waker: Option<Waker>,
    driver: Option<Waker>,
    /// For [`Bug::CutsLate`].
    late_cuts: VecDeque<(Epoch, Resolver<State>)>,
    /// For [`Bug::GivesUpCommitted`].
    patience: usize,
    /// For [`Bug::NamesDelivered`].
    delivered: Vec<Item>,
}

pub(crate) struct Setup {
    pub(crate) mode: Mode,
    pub(crate) bug: Option<Bug>,
    pub(crate) stage: usize,
    pub(crate) incarnation: u64,
    pub(crate) handler: FlakyHandler,
}

impl FakeSink {
    pub(crate) fn new(service: &PushService, setup: Setup, restored: Vec<Restored<State>>) -> Self {
        let bug = setup.bug;
        let mut restored = restored;
        if bug == Some(Bug::RestoresOneState) {
            restored.truncate(1);
        }
        let newest = restored.iter().map(|restored| restored.epoch).max();
        let mut items: Vec<Item> = restored
            .into_iter()
            .filter(|restored| !restored.settled || bug == Some(Bug::IgnoresSettledMark))
            .flat_map(|restored| restored.state.items)
            .collect();
        if bug != Some(Bug::RepeatsMergedItems) {
            let mut known = BTreeSet::new();
            items.retain(|item| known.insert(item.identity));
        }
        let (ledger, commit) = match newest {
            Some(epoch) => {
                let (ledger, commit) = Ledger::restore(epoch, items);
                (ledger, Some(commit))
            }
            None => (Ledger::new(), None),
        };
        let mut core = Core {
            mode: setup.mode,
            bug,
            service: service.clone(),
            stage: setup.stage,
            incarnation: setup.incarnation,
            next_sequence: 0,
            ledger,
            outbox: VecDeque::new(),
            handler: setup.handler,
            owes_flush: false,
            snapshots: BTreeMap::new(),
            commits: Vec::new(),
            ended: None,
            wish_told: false,
            waker: None,
            driver: None,
            late_cuts: VecDeque::new(),
            patience: 3,
            delivered: Vec::new(),
        };
        let restored = commit.map(|commit| {
            if bug == Some(Bug::RestoreDoesNotCommit) {
                return Receipt::ready(Committed::default());
            }
            core.release(commit)
        });
        Self {
            core: Arc::new(Mutex::new(core)),
            restored,
        }
    }

    pub(crate) fn core(&self) -> &Arc<Mutex<Core>> {
        &self.core
    }

    pub(crate) fn take_restored(&mut self) -> Receipt<Committed> {
        self.restored
            .take()
            .unwrap_or_else(|| Receipt::ready(Committed::default()))
    }

    /// Ends without a clean-up.
    pub(crate) fn crash(self) {
        self.lock().abandon();
    }

    /// Finishes what was committed (in mode `Flush`: what was accepted), and ends.
    pub(crate) fn close(self) {
        let mut core = self.lock();
        match core.bug {
            Some(Bug::CloseDropsCommitted) => core.outbox.clear(),
            Some(Bug::CloseSettlesAll) => {
                let newest = core.ledger.newest().unwrap_or_default();
                let epoch = newest.next();
                let sealed = core.ledger.seal(epoch);
                assert!(sealed.is_ok(), "the next epoch is newer");
                core.release_everything();
            }
            _ => {}
        }
        core.drive();
        core.abandon();
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap()
    }
}

impl Drop for FakeSink {
    fn drop(&mut self) {
        let mut core = self.lock();
        if core.bug == Some(Bug::DropSettles) {
            core.release_everything();
            core.drive();
        }
        core.abandon();
    }
}

impl Core {
    /// Nothing of this sink reaches the service any more.
    fn abandon(&mut self) {
        self.outbox.clear();
        self.ledger = Ledger::new();
    }

    fn release_everything(&mut self) {
        if let Some(newest) = self.ledger.newest()
            && let Ok(commit) = self.ledger.commit(newest)
        {
            drop(self.release(commit));
        }
    }

    fn closed(&self) -> Option<CheckpointError> {
        let cause = self.ended.clone()?;
        Some(CheckpointError::Closed { cause })
    }

    fn state(&self) -> State {
        let view = self.ledger.view();
        let placed = view.segments().iter().flat_map(|segment| segment.iter());
        let settling = |place| matches!(self.ledger.standing(place), Standing::Settling(_));
        let named = placed
            .filter(|(place, _)| self.bug != Some(Bug::ForgetsSettling) || !settling(*place))
            .map(|(_, item)| *item);
        match self.mode {
            Mode::Staged => State {
                items: named.collect(),
            },
            // When its receipt resolves, everything is delivered and there is nothing to name.
            Mode::Flush => State {
                items: self.delivered.clone(),
            },
        }
    }

    fn release(&mut self, commit: Commit<Item>) -> Receipt<Committed> {
        let skip = match self.bug {
            Some(Bug::SweepsNewestOnly) => commit.released.len().saturating_sub(1),
            _ => 0,
        };
        // In mode Flush everything has left already, or is about to.
        if self.mode == Mode::Staged || self.bug == Some(Bug::NamesDelivered) {
            let items = commit.released.iter().skip(skip);
            self.outbox.extend(
                items.flat_map(|segment| segment.iter().map(|(place, item)| (place, *item))),
            );
        }
        let (resolver, receipt) = Receipt::channel();
        self.commits.push((commit.id, resolver));
        self.tell_commits();
        self.wake_driver();
        receipt
    }

    fn tell_commits(&mut self) {
        while let Some((id, committed)) = self.ledger.poll_committed() {
            if let Some(at) = self.commits.iter().position(|(waiting, _)| *waiting == id) {
                self.commits.swap_remove(at).1.resolve(Ok(committed));
            }
        }
    }

    fn send(&mut self) {
        let mut first_that_waits = None;
        let mut kept = VecDeque::new();
        for (place, item) in std::mem::take(&mut self.outbox) {
            let in_order = self.bug == Some(Bug::SettlesInOrder) && first_that_waits.is_some();
            let pushed = if in_order {
                Pushed::Waits
            } else {
                self.service.push(item.number)
            };
            match pushed {
                Pushed::Taken => {
                    self.ledger.settle(place, Outcome::Settled);
                    if self.bug == Some(Bug::NamesDelivered) {
                        self.delivered.push(item);
                    }
                }
                Pushed::Waits => {
                    first_that_waits.get_or_insert(place);
                    kept.push_back((place, item));
                }
                Pushed::Refused => {
                    kept.push_back((place, item));
                    self.end();
                }
            }
        }
        self.outbox = kept;
        if self.bug == Some(Bug::GivesUpCommitted) && first_that_waits.is_some() {
            self.patience = self.patience.saturating_sub(1);
            if self.patience == 0 {
                self.outbox.clear();
            }
        }
    }

    fn end(&mut self) {
        let cause = Cause::new(Missing);
        for (_, resolver) in self.commits.drain(..) {
            let cause = cause.clone();
            resolver.resolve(Err(CheckpointError::Closed { cause }));
        }
        for (resolver, _) in std::mem::take(&mut self.snapshots).into_values() {
            let cause = cause.clone();
            resolver.resolve(Err(CheckpointError::Closed { cause }));
        }
        self.ended = Some(cause);
    }

    fn is_complete(&self, epoch: Epoch) -> bool {
        if self.mode == Mode::Staged || self.bug == Some(Bug::ReadyWhenQueued) {
            return true;
        }
        if self.bug == Some(Bug::VouchesForOwnEpochOnly) {
            return !self
                .outbox
                .iter()
                .any(|(place, _)| self.ledger.standing(*place) == Standing::Sealed(epoch));
        }
        self.ledger.is_drained(epoch)
    }

    fn complete_snapshots(&mut self) {
        let complete: Vec<Epoch> = self
            .snapshots
            .keys()
            .copied()
            .filter(|epoch| self.is_complete(*epoch))
            .collect();
        for epoch in complete {
            let Some((resolver, state)) = self.snapshots.remove(&epoch) else {
                continue;
            };
            let state = match self.mode {
                Mode::Staged => state,
                Mode::Flush => self.state(),
            };
            if !self.owes_flush || self.bug == Some(Bug::NeverFlushes) {
                resolver.resolve(Ok(state));
                continue;
            }
            match self.handler.flush().try_now() {
                Some(Ok(())) => {
                    self.owes_flush = false;
                    resolver.resolve(Ok(state));
                }
                Some(Err(error)) => {
                    self.owes_flush = self.bug != Some(Bug::ForgetsFailedFlush);
                    let cause = Cause::new(error);
                    resolver.resolve(Err(CheckpointError::Incomplete { epoch, cause }));
                }
                None => unreachable!("the handler of these tests answers at once"),
            }
        }
    }

    fn cut(&mut self, epoch: Epoch, resolver: Resolver<State>) {
        if let Err(error) = self.ledger.seal(epoch) {
            if self.bug == Some(Bug::AcceptsOldEpochs) {
                resolver.resolve(Ok(self.state()));
            } else {
                resolver.resolve(Err(error));
            }
            return;
        }
        self.wish_told = false;
        if self.bug == Some(Bug::SettlesAtSnapshot) {
            self.release_everything();
        }
        let state = self.state();
        self.snapshots.insert(epoch, (resolver, state));
        self.complete_snapshots();
        self.wake_driver();
    }

    fn drop_orphans(&mut self) {
        if self.bug != Some(Bug::NeedsReceipt) {
            return;
        }
        let orphaned = self
            .commits
            .iter()
            .any(|(_, resolver)| resolver.is_orphaned())
            || self
                .snapshots
                .values()
                .any(|(resolver, _)| resolver.is_orphaned());
        if orphaned {
            self.outbox.clear();
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn wake_driver(&mut self) {
        if let Some(waker) = self.driver.take() {
            waker.wake();
        }
    }

    /// For a driver that is a task: ready while there is something to do.
    pub(crate) fn poll_work(&mut self, cx: &Context<'_>) -> Poll<()> {
        if !self.outbox.is_empty() {
            return Poll::Ready(());
        }
        self.driver = Some(cx.waker().clone());
        Poll::Pending
    }

    fn has_room(&self) -> bool {
        self.ledger.len() < self.stage
    }

    fn error(&self) -> Option<SinkEnded> {
        self.ended.clone().map(SinkEnded)
    }
}

impl Drive for Core {
    fn drive(&mut self) {
        self.drop_orphans();
        while let Some((epoch, resolver)) = self.late_cuts.pop_front() {
            self.cut(epoch, resolver);
        }
        if self.service.is_broken() && self.ended.is_none() && !self.outbox.is_empty() {
            self.end();
        }
        if self.ended.is_none() {
            self.send();
            self.complete_snapshots();
            self.tell_commits();
        }
        self.wake();
    }
}

impl Checkpoint for FakeSink {
    type State = State;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<State> {
        let mut core = self.lock();
        if let Some(closed) = core.closed() {
            if core.bug == Some(Bug::ForgetsItsEnd) {
                return Receipt::ready(core.state());
            }
            return Receipt::failed(closed);
        }
        let (resolver, receipt) = Receipt::channel();
        if core.bug == Some(Bug::CutsLate) {
            core.late_cuts.push_back((epoch, resolver));
        } else {
            core.cut(epoch, resolver);
        }
        receipt
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        let mut core = self.lock();
        if let Some(closed) = core.closed() {
            return Receipt::failed(closed);
        }
        match core.ledger.commit(epoch) {
            Ok(commit) => {
                let receipt = core.release(commit);
                if core.bug == Some(Bug::CommitsBlindly) {
                    return Receipt::ready(Committed::default());
                }
                receipt
            }
            Err(_) if core.bug == Some(Bug::UnknownIsOk) => Receipt::ready(Committed::default()),
            Err(error) => Receipt::failed(error),
        }
    }

    fn abort(&mut self, epoch: Epoch) {
        let mut core = self.lock();
        let bug = core.bug;
        if !core.ledger.is_sealed(epoch) {
            return;
        }
        if bug == Some(Bug::AbortDrops) {
            let mut sealed = Vec::new();
            for segment in core.ledger.view().segments() {
                sealed.extend(segment.iter().map(|(place, _)| place));
            }
            for place in sealed {
                if core.ledger.standing(place) == Standing::Sealed(epoch) {
                    core.ledger.settle(place, Outcome::Retained);
                    core.outbox.retain(|(waiting, _)| *waiting != place);
                }
            }
        }
        if bug == Some(Bug::AbortReleases) {
            core.release_everything();
        }
        if core.ledger.abort(epoch) {
            core.wish_told = false;
        }
        if bug != Some(Bug::AbortLeavesReceipt)
            && let Some((resolver, _)) = core.snapshots.remove(&epoch)
        {
            resolver.resolve(Err(CheckpointError::Aborted { epoch }));
        }
        core.wake();
    }
}

impl Admission for FakeSink {
    type Error = SinkEnded;

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, SinkEnded>> {
        let mut core = self.lock();
        if let Some(error) = core.error() {
            return Poll::Ready(Err(error));
        }
        if core.mode == Mode::Staged && !core.wish_told && core.ledger.open_len() * 2 >= core.stage
        {
            core.wish_told = true;
            return Poll::Ready(Ok(Room::CheckpointWanted));
        }
        // Also when there is room: the host goes on to wait for its source, and shall hear of an
        // end meanwhile.
        core.waker = Some(cx.waker().clone());
        if core.has_room() {
            return Poll::Ready(Ok(Room::Ready));
        }
        Poll::Pending
    }
}

impl Sink<Record> for FakeSink {
    type Error = SinkEnded;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkEnded>> {
        let mut core = self.lock();
        match core.error() {
            Some(_) if core.bug == Some(Bug::ForgetsItsEnd) => Poll::Ready(Ok(())),
            Some(error) => Poll::Ready(Err(error)),
            None if core.has_room() => Poll::Ready(Ok(())),
            None => {
                core.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn start_send(self: Pin<&mut Self>, record: Record) -> Result<(), SinkEnded> {
        let mut core = self.lock();
        match record {
            Record::Good(number) => {
                let identity = (core.incarnation, core.next_sequence);
                core.next_sequence += 1;
                let item = Item { identity, number };
                let place = core.ledger.add(item);
                if core.mode == Mode::Flush {
                    core.outbox.push_back((place, item));
                    core.wake_driver();
                }
            }
            Record::Refused(number) => {
                let rejected = Rejected::new("fake-sink", "numbers", RejectedReason::Limit)
                    .payload(number.to_string().into());
                drop(core.handler.handle(rejected));
                core.owes_flush = true;
            }
        }
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkEnded>> {
        let mut core = self.lock();
        // Staged is as settled as a staging sink gets; but it must not look well when the service
        // is gone.
        if core.ended.is_none() && core.service.is_broken() {
            core.end();
        }
        match core.error() {
            Some(_) if core.bug == Some(Bug::ForgetsItsEnd) => Poll::Ready(Ok(())),
            Some(error) => Poll::Ready(Err(error)),
            None if core.outbox.is_empty() || core.mode == Mode::Staged => Poll::Ready(Ok(())),
            None => {
                core.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkEnded>> {
        self.poll_flush(cx)
    }
}

/// A driver as a task: every turn takes `latency`, as long as there is something to send.
pub(crate) async fn drive_with(core: Arc<Mutex<Core>>, latency: Duration) {
    loop {
        std::future::poll_fn(|cx| core.lock().unwrap().poll_work(cx)).await;
        tokio::time::sleep(latency).await;
        core.lock().unwrap().drive();
    }
}
