//! What the handle and the driver share: the machine, and who waits for it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
    time::Instant,
};

use bytes::Bytes;
use connector_core::{
    Cause, CheckpointError, Committed, Member, Rejected, Resolver, ledger::CommitId,
};
use futures::task::AtomicWaker;
use gcp_wire::TopicName;
use tokio::sync::Notify;

use crate::{
    Delivery, Published, SinkError, SinkState,
    machine::{CutId, Effect, Machine, Notice, RejectionId, ReplyId, RequestId},
    state::Named,
};

/// The machine behind its mutex, which is never held across an await.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Told when the driver has something to do.
    wake: Notify,
    /// Whether the machine has ended, for a look without the lock.
    ended: AtomicBool,
    /// Whoever found room and now waits for something else, to be woken when the sink ends.
    end: AtomicWaker,
    /// Whether the machine admits no record whatever the budget says, for the same.
    crowded: AtomicBool,
    /// Whether the machine wants a checkpoint and the host was not told, for the same.
    wants_checkpoint: AtomicBool,
    pub(crate) member: Member,
    pub(crate) instance: Arc<str>,
}

/// The machine, and the receipts that wait for its outcomes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) machine: Machine,
    pub(crate) receipts: Receipts,
    /// Whoever waits for room. The budget wakes for its part; this is for the rest.
    pub(crate) room: Option<Waker>,
    /// The handle was dropped, so nobody waits for anything any more.
    pub(crate) orphaned: bool,
    /// Whether the driver was told and has not looked yet.
    told: bool,
}

/// The other ends of the receipts that were given out.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    cuts: BTreeMap<CutId, CutReceipt>,
    commits: BTreeMap<CommitId, Resolver<Committed>>,
    replies: BTreeMap<ReplyId, Resolver<Published>>,
}

/// Who waits for a cut.
#[derive(Debug)]
pub(crate) enum CutReceipt {
    Snapshot(Resolver<SinkState>, Delivery),
    Flush(Resolver<()>),
}

/// An effect of the machine, with whom it concerns.
#[derive(Debug)]
pub(crate) enum Task {
    Publish {
        id: RequestId,
        topic: TopicName,
        header: Bytes,
        frames: Bytes,
        deadline: std::time::Duration,
    },
    Handle {
        id: RejectionId,
        rejected: Rejected,
    },
    CreateTopic(TopicName),
    FlushHandler,
    Resolve(Outcome),
    Tell(Notice),
}

/// A receipt and what it resolves to. Resolved outside the lock: it wakes whoever waits.
#[derive(Debug)]
pub(crate) enum Outcome {
    Cut(CutReceipt, Result<Named, CheckpointError>),
    Commit(Resolver<Committed>, Result<Committed, CheckpointError>),
    Reply(Resolver<Published>, Result<Published, CheckpointError>),
}

impl Outcome {
    pub(crate) fn resolve(self, instance: &Arc<str>) {
        match self {
            Self::Cut(CutReceipt::Snapshot(resolver, delivery), outcome) => {
                resolver.resolve(outcome.map(|named| match delivery {
                    Delivery::Flush => SinkState::flushed(&**instance),
                    Delivery::Staged => SinkState::staged(&**instance, named),
                }));
            }
            Self::Cut(CutReceipt::Flush(resolver), outcome) => {
                resolver.resolve(outcome.map(drop));
            }
            Self::Commit(resolver, outcome) => resolver.resolve(outcome),
            Self::Reply(resolver, outcome) => resolver.resolve(outcome),
        }
    }
}

impl Receipts {
    pub(crate) fn cut(&mut self, id: CutId, receipt: CutReceipt) {
        self.cuts.insert(id, receipt);
    }

    pub(crate) fn commit(&mut self, id: CommitId, resolver: Resolver<Committed>) {
        self.commits.insert(id, resolver);
    }

    pub(crate) fn reply(&mut self, id: ReplyId, resolver: Resolver<Published>) {
        self.replies.insert(id, resolver);
    }

    /// Everything that waits, to be told that the sink ended.
    fn close(&mut self, error: &SinkError) -> Vec<Outcome> {
        let closed = || CheckpointError::Closed {
            cause: Cause::new(error.clone()),
        };
        let cuts = std::mem::take(&mut self.cuts).into_values();
        let commits = std::mem::take(&mut self.commits).into_values();
        let replies = std::mem::take(&mut self.replies).into_values();
        cuts.map(|receipt| Outcome::Cut(receipt, Err(closed())))
            .chain(commits.map(|resolver| Outcome::Commit(resolver, Err(closed()))))
            .chain(replies.map(|resolver| Outcome::Reply(resolver, Err(closed()))))
            .collect()
    }
}

impl State {
    /// The next thing to do, and whom it concerns.
    pub(crate) fn next_task(&mut self, now: Instant) -> Option<Task> {
        loop {
            let outcome = match self.machine.poll_effect(now)? {
                Effect::Publish {
                    id,
                    topic,
                    header,
                    frames,
                    deadline,
                } => {
                    return Some(Task::Publish {
                        id,
                        topic,
                        header,
                        frames,
                        deadline,
                    });
                }
                Effect::Handle { id, rejected } => return Some(Task::Handle { id, rejected }),
                Effect::CreateTopic(topic) => return Some(Task::CreateTopic(topic)),
                Effect::FlushHandler => return Some(Task::FlushHandler),
                Effect::Tell(notice) => return Some(Task::Tell(notice)),
                Effect::Resolve(id, outcome) => {
                    let receipt = self.receipts.cuts.remove(&id);
                    receipt.map(|receipt| Outcome::Cut(receipt, outcome))
                }
                Effect::Committed(id, committed) => {
                    let resolver = self.receipts.commits.remove(&id);
                    resolver.map(|resolver| Outcome::Commit(resolver, committed))
                }
                Effect::Answer(id, published) => {
                    let resolver = self.receipts.replies.remove(&id);
                    resolver.map(|resolver| Outcome::Reply(resolver, Ok(published)))
                }
            };
            // A cut of the dropped handle has nobody who waits for it.
            if let Some(outcome) = outcome {
                return Some(Task::Resolve(outcome));
            }
        }
    }

    /// The sink ended: what remains to be told.
    pub(crate) fn close_receipts(&mut self) -> Vec<Outcome> {
        match self.machine.ended() {
            Some(error) => self.receipts.close(error),
            None => Vec::new(),
        }
    }
}

impl Shared {
    pub(crate) fn new(machine: Machine, member: Member, instance: Arc<str>) -> Self {
        Self {
            state: Mutex::new(State {
                orphaned: false,
                machine,
                receipts: Receipts::default(),
                room: None,
                told: false,
            }),
            wake: Notify::new(),
            ended: AtomicBool::new(false),
            end: AtomicWaker::new(),
            crowded: AtomicBool::new(false),
            wants_checkpoint: AtomicBool::new(false),
            member,
            instance,
        }
    }

    /// Does something with the state, then wakes whoever it concerns.
    ///
    /// # Errors
    ///
    /// When a panic left the state unusable.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, SinkError> {
        let mut state = match self.state.lock() {
            Ok(state) => state,
            Err(poison) => return Err(self.break_off(poison.into_inner())),
        };
        let result = act(&mut state);
        let ended = state.machine.is_ended();
        let crowded = state.machine.is_crowded();
        let was_crowded = self.crowded.load(Ordering::Relaxed);
        if crowded != was_crowded {
            self.crowded.store(crowded, Ordering::Release);
        }
        if ended {
            self.ended.store(true, Ordering::Release);
        }
        let wants = state.machine.wants_checkpoint();
        let asks = wants && !self.wants_checkpoint.swap(wants, Ordering::AcqRel);
        if !wants {
            self.wants_checkpoint.store(false, Ordering::Release);
        }
        let room = if ended || asks || (was_crowded && !crowded) {
            state.room.take()
        } else {
            None
        };
        let tell = !state.told && state.machine.needs_driver();
        state.told |= tell;
        drop(state);
        if let Some(waker) = room {
            waker.wake();
        }
        if ended || asks {
            self.end.wake();
        }
        if tell {
            self.wake.notify_one();
        }
        Ok(result)
    }

    /// Does something with the machine that concerns nobody but it: that leaves nothing more to do
    /// and nothing to tell. Answers what `act` does; false when a panic left the state unusable.
    pub(crate) fn quietly(&self, act: impl FnOnce(&mut Machine) -> bool) -> bool {
        self.state
            .lock()
            .is_ok_and(|mut state| act(&mut state.machine))
    }

    /// A panic left the machine half changed: nothing is asked of it any more, and whoever waits is
    /// told, since nobody else would.
    fn break_off(&self, mut state: MutexGuard<'_, State>) -> SinkError {
        let error = poisoned();
        let outcomes = state.receipts.close(&error);
        let room = state.room.take();
        drop(state);
        self.ended.store(true, Ordering::Release);
        for outcome in outcomes {
            outcome.resolve(&self.instance);
        }
        if let Some(waker) = room {
            waker.wake();
        }
        self.end.wake();
        error
    }

    /// As [`with`](Self::with), by the driver: whatever it is told before, it looks now.
    pub(crate) fn look<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, SinkError> {
        self.with(|state| {
            state.told = true;
            act(state)
        })
    }

    /// The driver has looked at everything and goes to sleep: what comes from now on wakes it.
    pub(crate) fn rest(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.told = false;
            if state.machine.needs_driver() {
                state.told = true;
                self.wake.notify_one();
            }
        }
    }

    /// Waits until the driver is told.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// The task to wake when the sink ends. To be called before looking whether it has.
    pub(crate) const fn end(&self) -> &AtomicWaker {
        &self.end
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether the host is to be asked for a checkpoint.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        self.wants_checkpoint.load(Ordering::Acquire)
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Acquire)
    }

    /// Why the sink ended. Call it when it has.
    pub(crate) fn ended(&self) -> SinkError {
        self.with(|state| state.machine.ended().cloned())
            .map_or_else(
                |poisoned| poisoned,
                |ended| ended.unwrap_or(SinkError::DriverGone),
            )
    }
}

fn poisoned() -> SinkError {
    SinkError::Panicked {
        message: "a panic left the sink's state half changed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use connector_core::{Checkpoint, Epoch};
    use futures::{FutureExt, SinkExt};

    use super::*;
    use crate::{PublishMessage, PubsubSink};

    #[test]
    fn a_panic_under_the_lock_leaves_nobody_waiting() {
        let (mut sink, driver) =
            PubsubSink::builder(|n: &u8| Ok(Some(PublishMessage::new(vec![*n]))))
                .topic("projects/demo/topics/orders".parse().unwrap())
                .limits(connector_core::Limits::items(1))
                .build_with_driver()
                .unwrap();
        assert!(sink.feed(1).now_or_never().unwrap().is_ok());
        let mut snapshot = sink.snapshot(Epoch::new(1));
        assert!(snapshot.try_now().is_none());
        let shared = Arc::clone(sink.shared());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            shared.with::<()>(|_| panic!("a defect"))
        }));
        assert!(panicked.is_err());
        drop(driver);
        let error = snapshot.try_now().unwrap().unwrap_err();
        assert!(matches!(error, CheckpointError::Closed { .. }), "{error}");
        let error = sink.ready().now_or_never().unwrap().unwrap_err();
        assert!(matches!(error, SinkError::Panicked { .. }), "{error}");
    }
}
