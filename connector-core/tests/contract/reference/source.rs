//! A source of numbers.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
};

use connector_core::{
    Cause, Checkpoint, CheckpointError, Committed, Epoch, Receipt, Resolver, Restored,
    ledger::{Commit, CommitId, Ledger, Outcome, Place, Standing},
};
use futures::Stream;
use serde::{Deserialize, Serialize};

use super::{
    Bug,
    crew::Drive,
    pull_service::{Acked, PullService},
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    /// Message ids that are not to be handed out again.
    ids: Vec<u64>,
    /// The message whose records were not all handed out, and how many were.
    partial: Option<(u64, usize)>,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("the source has ended; nothing uncommitted was acknowledged")]
pub(crate) struct SourceEnded(#[source] Cause);

pub(crate) struct FakeSource {
    core: Arc<Mutex<Core>>,
    restored: Option<Receipt<Committed>>,
}

pub(crate) struct Core {
    bug: Option<Bug>,
    service: PullService,
    ledger: Ledger<u64>,
    buffer: VecDeque<Buffered>,
    /// Deliveries that were handed out whole, or that a restored state names.
    held: BTreeMap<u64, Held>,
    /// Ids that are acknowledged when they come, and not handed out.
    seen: BTreeSet<u64>,
    /// Of the message at the front of the buffer; restored, of one that is to come.
    partial: Option<(u64, usize)>,
    acknowledge_unseen: Vec<u64>,
    snapshots: Vec<(Resolver<State>, State)>,
    commits: Vec<(CommitId, Resolver<Committed>)>,
    ended: Option<Cause>,
    told: bool,
    waker: Option<Waker>,
}

struct Buffered {
    id: u64,
    ack: u64,
    numbers: Vec<u64>,
    /// Set when the ledger knows it already, by a planted bug.
    place: Option<Place>,
}

struct Held {
    place: Place,
    ack: Option<u64>,
}

impl FakeSource {
    pub(crate) fn new(
        service: &PullService,
        bug: Option<Bug>,
        restored: Vec<Restored<State>>,
    ) -> Self {
        let mut restored = restored;
        if bug == Some(Bug::RestoresOneState) {
            restored.truncate(1);
        }
        let newest = restored.iter().map(|restored| restored.epoch).max();
        let partial = restored.iter().find_map(|restored| restored.state.partial);
        let mut seen = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for restored in restored {
            if !restored.settled {
                ids.extend(restored.state.ids);
            } else if bug != Some(Bug::IgnoresSettledMark) {
                seen.extend(restored.state.ids);
            }
        }
        let mut core = Core {
            bug,
            service: service.clone(),
            ledger: Ledger::new(),
            buffer: VecDeque::new(),
            held: BTreeMap::new(),
            seen,
            partial,
            acknowledge_unseen: Vec::new(),
            snapshots: Vec::new(),
            commits: Vec::new(),
            ended: None,
            told: false,
            waker: None,
        };
        let restored = newest.map(|epoch| {
            let (ledger, commit) = Ledger::restore(epoch, ids.into_iter().collect());
            core.ledger = ledger;
            if bug == Some(Bug::RestoreDoesNotCommit) {
                return Receipt::ready(Committed::default());
            }
            for (place, id) in commit.released.iter().flat_map(|segment| segment.iter()) {
                core.held.insert(*id, Held { place, ack: None });
            }
            core.release(&commit)
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

    /// Finishes what was committed, releases the rest, and ends.
    pub(crate) fn close(self) {
        let mut core = self.lock();
        if core.bug == Some(Bug::CloseSettlesAll) {
            core.settle_everything();
        }
        if core.bug != Some(Bug::CloseDropsCommitted) {
            core.acknowledge();
        }
        if core.bug != Some(Bug::CloseKeepsLeases) {
            core.release_leases();
        }
        core.abandon();
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap()
    }
}

impl Drop for FakeSource {
    fn drop(&mut self) {
        let mut core = self.lock();
        if core.bug == Some(Bug::DropSettles) {
            core.settle_everything();
        }
        core.release_leases();
        core.abandon();
    }
}

impl Core {
    fn abandon(&mut self) {
        self.ledger = Ledger::new();
        self.buffer.clear();
        self.held.clear();
        self.acknowledge_unseen.clear();
    }

    fn release_leases(&self) {
        let held = self.held.values().filter_map(|held| held.ack);
        for ack in held.chain(self.buffer.iter().map(|buffered| buffered.ack)) {
            self.service.release(ack);
        }
    }

    fn settle_everything(&mut self) {
        let epoch = self.ledger.newest().unwrap_or_default().next();
        if self.ledger.seal(epoch).is_ok() && self.ledger.commit(epoch).is_ok() {
            self.acknowledge();
        }
    }

    fn closed(&self) -> Option<CheckpointError> {
        let cause = self.ended.clone()?;
        Some(CheckpointError::Closed { cause })
    }

    fn state(&self) -> State {
        let view = self.ledger.view();
        let placed = view.segments().iter().flat_map(|segment| segment.iter());
        let forgets = self.bug == Some(Bug::ForgetsSettling);
        let settling = |place| matches!(self.ledger.standing(place), Standing::Settling(_));
        let named = placed
            .filter(|(place, _)| !forgets || !settling(*place))
            .map(|(_, id)| *id);
        State {
            ids: named.chain(self.seen.iter().copied()).collect(),
            partial: self.partial,
        }
    }

    fn release(&mut self, commit: &Commit<u64>) -> Receipt<Committed> {
        let (resolver, receipt) = Receipt::channel();
        self.commits.push((commit.id, resolver));
        self.tell_commits();
        receipt
    }

    fn tell_commits(&mut self) {
        while let Some((id, committed)) = self.ledger.poll_committed() {
            if let Some(at) = self.commits.iter().position(|(waiting, _)| *waiting == id) {
                self.commits.swap_remove(at).1.resolve(Ok(committed));
            }
        }
    }

    /// Acknowledges what is committed, and what came although it had been seen.
    fn acknowledge(&mut self) {
        let service = self.service.clone();
        self.acknowledge_unseen
            .retain(|ack| service.acknowledge(*ack) == Acked::Waits);
        let settling: Vec<(u64, Place, Option<u64>)> = self
            .held
            .iter()
            .filter(|(_, held)| matches!(self.ledger.standing(held.place), Standing::Settling(_)))
            .map(|(id, held)| (*id, held.place, held.ack))
            .collect();
        for (id, place, ack) in settling {
            let Some(ack) = ack else { continue };
            match service.acknowledge(ack) {
                Acked::Done => {
                    self.ledger.settle(place, Outcome::Settled);
                    self.held.remove(&id);
                }
                Acked::Waits if self.bug == Some(Bug::GivesUpCommitted) => {
                    self.ledger.settle(place, Outcome::Lapsed);
                    self.held.remove(&id);
                }
                Acked::Waits => {}
                Acked::Stale => {
                    self.ledger.settle(place, Outcome::Lapsed);
                    self.held.remove(&id);
                    self.seen.insert(id);
                }
            }
        }
        self.tell_commits();
    }

    fn pull(&mut self) {
        let delivered = match self.service.pull() {
            Ok(delivered) => delivered,
            Err(missing) => {
                let cause = self
                    .ended
                    .get_or_insert_with(|| Cause::new(missing))
                    .clone();
                for (_, resolver) in self.commits.drain(..) {
                    let cause = cause.clone();
                    resolver.resolve(Err(CheckpointError::Closed { cause }));
                }
                return;
            }
        };
        for delivery in delivered {
            if self.bug == Some(Bug::EmitsLapsed)
                && let Some(held) = self.held.get(&delivery.id)
                && let Standing::Settling(_) = self.ledger.standing(held.place)
            {
                self.ledger.settle(held.place, Outcome::Lapsed);
                self.held.remove(&delivery.id);
            }
            if let Some(held) = self.held.get_mut(&delivery.id) {
                held.ack = Some(delivery.ack);
            } else if self.seen.remove(&delivery.id) {
                self.acknowledge_unseen.push(delivery.ack);
            } else if let Some(buffered) = self
                .buffer
                .iter_mut()
                .find(|buffered| buffered.id == delivery.id)
            {
                buffered.ack = delivery.ack;
            } else {
                self.buffer.push_back(Buffered {
                    id: delivery.id,
                    ack: delivery.ack,
                    numbers: delivery.numbers,
                    place: None,
                });
            }
        }
    }

    fn hand_out(&mut self) -> Option<u64> {
        let front = self.buffer.front_mut()?;
        let skip = match self.partial {
            Some((id, handed_out)) if id == front.id => handed_out,
            _ => 0,
        };
        let number = *front.numbers.get(skip)?;
        let is_last = skip + 1 == front.numbers.len();
        let settles = match self.bug {
            Some(Bug::SettlesWithFirstRecord) => skip == 0,
            _ => is_last,
        };
        if settles {
            let place = match front.place {
                Some(place) => place,
                None => self.ledger.add(front.id),
            };
            let ack = Some(front.ack);
            self.held.insert(front.id, Held { place, ack });
        }
        self.partial = (!is_last).then_some((front.id, skip + 1));
        if is_last {
            self.buffer.pop_front();
        }
        Some(number)
    }

    fn drop_orphans(&mut self) {
        let orphaned = self
            .commits
            .iter()
            .any(|(_, resolver)| resolver.is_orphaned());
        if self.bug == Some(Bug::NeedsReceipt) && orphaned {
            let ledger = &self.ledger;
            self.held
                .retain(|_, held| !matches!(ledger.standing(held.place), Standing::Settling(_)));
        }
    }
}

impl Drive for Core {
    fn drive(&mut self) {
        self.drop_orphans();
        for (resolver, state) in self.snapshots.drain(..) {
            resolver.resolve(Ok(state));
        }
        if self.ended.is_none() {
            self.pull();
        }
        if self.ended.is_none() {
            self.acknowledge();
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Stream for FakeSource {
    type Item = Result<u64, SourceEnded>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut core = self.lock();
        if core.ended.is_none() {
            core.pull();
        }
        if let Some(cause) = core.ended.clone() {
            if core.told && core.bug != Some(Bug::RepeatsItsError) {
                return Poll::Ready(None);
            }
            core.told = true;
            return Poll::Ready(Some(Err(SourceEnded(cause))));
        }
        match core.hand_out() {
            Some(number) => Poll::Ready(Some(Ok(number))),
            None if core.service.is_finished() => Poll::Ready(None),
            None => {
                core.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Checkpoint for FakeSource {
    type State = State;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<State> {
        let mut core = self.lock();
        if let Some(closed) = core.closed()
            && core.bug != Some(Bug::ForgetsItsEnd)
        {
            return Receipt::failed(closed);
        }
        if core.bug == Some(Bug::CutsTheBuffer) {
            let Core { buffer, ledger, .. } = &mut *core;
            for buffered in buffer {
                buffered
                    .place
                    .get_or_insert_with(|| ledger.add(buffered.id));
            }
        }
        if let Err(error) = core.ledger.seal(epoch) {
            if core.bug == Some(Bug::AcceptsOldEpochs) {
                return Receipt::ready(core.state());
            }
            return Receipt::failed(error);
        }
        let state = core.state();
        if core.bug == Some(Bug::SettlesAtSnapshot) && core.ledger.commit(epoch).is_ok() {
            core.acknowledge();
        }
        if core.bug == Some(Bug::SnapshotWaits) {
            let (resolver, receipt) = Receipt::channel();
            core.snapshots.push((resolver, state));
            return receipt;
        }
        Receipt::ready(state)
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        let mut core = self.lock();
        if let Some(closed) = core.closed() {
            return Receipt::failed(closed);
        }
        match core.ledger.commit(epoch) {
            Ok(commit) => {
                if core.bug == Some(Bug::SweepsNewestOnly)
                    && let Some((_, older)) = commit.released.split_last()
                {
                    for (_, id) in older.iter().flat_map(|segment| segment.iter()) {
                        core.held.remove(id);
                    }
                }
                let receipt = core.release(&commit);
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
        if !core.ledger.is_sealed(epoch) {
            return;
        }
        let of_the_epoch: Vec<(u64, Place, Option<u64>)> = core
            .held
            .iter()
            .filter(|(_, held)| core.ledger.standing(held.place) == Standing::Sealed(epoch))
            .map(|(id, held)| (*id, held.place, held.ack))
            .collect();
        for (id, place, ack) in of_the_epoch {
            match core.bug {
                Some(Bug::AbortDrops) => {}
                Some(Bug::AbortReleases) => ack.iter().for_each(|ack| core.service.release(*ack)),
                _ => continue,
            }
            core.ledger.settle(place, Outcome::Lapsed);
            core.held.remove(&id);
        }
        core.ledger.abort(epoch);
    }
}
