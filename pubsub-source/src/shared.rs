//! What the handle, the driver and the streams' tasks share.

use std::{
    any::Any,
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
    time::Instant,
};

use connector_core::{Budget, Cause, Committed, Resolver, ledger::CommitId};
use tokio::sync::{Notify, watch};

use crate::{
    driver,
    error::{DriverPanicked, SourceError},
    machine::{Machine, SettleId},
    source::{Pool, Standing},
};

/// The machine, and who waits for what it says.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) machine: Machine,
    pub(crate) commits: BTreeMap<CommitId, Resolver<Committed>>,
    pub(crate) settles: BTreeMap<SettleId, Resolver<Committed>>,
    pub(crate) restores: Vec<Resolver<Committed>>,
    /// Wakes the task that waits for a message.
    pub(crate) reader: Option<Waker>,
    /// What the other splits of the source were last told.
    told: Option<Standing>,
    /// The deadline that the driver's timer is armed for.
    pub(crate) armed: Option<Instant>,
}

/// A split's place among those of its source.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    pub(crate) pool: Arc<Pool>,
    pub(crate) split: usize,
}

impl Seat {
    /// Tells the other splits of the source how this one stands, and the machine what room it has.
    /// Answers how it stands then, and whether that changes anything for it.
    pub(crate) fn share(&self, now: Instant, machine: &mut Machine) -> (Standing, bool) {
        let mut standing = machine.standing();
        let mut order = self.pool.report(self.split, standing);
        let park = order.park;
        if park {
            machine.park(now);
            standing = machine.standing();
            order = self.pool.report(self.split, standing);
        }
        (standing, machine.handle_room(now, order.room) || park)
    }
}

/// One machine under one mutex, which is never held across an await.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The machine's count of revocations, readable without the mutex.
    revoked: AtomicU64,
    /// Whether the task that waited for a message was woken since it last asked.
    woken: AtomicBool,
    /// Whether the streams may be read.
    reads: watch::Sender<bool>,
    /// Wakes the driver.
    driver: Arc<Notify>,
    seat: Seat,
    /// Whether the driver has ended.
    ended: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn new(machine: Machine, seat: Seat) -> Arc<Self> {
        let reads = watch::Sender::new(machine.reads());
        Arc::new(Self {
            revoked: AtomicU64::new(machine.revoked()),
            state: Mutex::new(State {
                machine,
                commits: BTreeMap::new(),
                settles: BTreeMap::new(),
                restores: Vec::new(),
                reader: None,
                told: None,
                armed: None,
            }),
            woken: AtomicBool::new(false),
            reads,
            driver: seat.pool.bell(seat.split),
            seat,
            ended: watch::Sender::new(false),
        })
    }

    /// Does something with the machine, and lets everybody know what follows from it.
    ///
    /// # Errors
    ///
    /// Why the machine cannot be used any more: something panicked while it was locked.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, Cause> {
        let mut state = self.state.lock().map_err(panicked)?;
        let result = act(&mut state);
        // What others do is told to the driver, which asks in any case.
        if state.told != Some(state.machine.standing()) {
            self.share(&mut state);
        }
        if self.publish(state) {
            self.driver.notify_one();
        }
        Ok(result)
    }

    /// As [`with`](Self::with), for the driver, which does not have to be told what there is to do.
    ///
    /// # Errors
    ///
    /// Why the machine cannot be used any more.
    pub(crate) fn drive<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, Cause> {
        let mut state = self.state.lock().map_err(panicked)?;
        let result = act(&mut state);
        let news = self.share(&mut state);
        self.publish(state);
        if news {
            // What follows from it is for the next turn.
            self.driver.notify_one();
        }
        Ok(result)
    }

    /// Shares the source's room with its other splits. Answers whether that changes anything here.
    fn share(&self, state: &mut State) -> bool {
        let (standing, news) = self.seat.share(driver::now(), &mut state.machine);
        state.told = Some(standing);
        news
    }

    /// Answers whether the driver has something to do.
    fn publish(&self, mut state: MutexGuard<'_, State>) -> bool {
        let machine = &state.machine;
        self.revoked.store(machine.revoked(), Ordering::Release);
        let reads = machine.reads();
        let overdue = match (machine.poll_timeout(), state.armed) {
            (Some(wanted), Some(armed)) => wanted < armed,
            (wanted, None) => wanted.is_some(),
            (None, Some(_)) => false,
        };
        let busy = overdue || machine.has_work() || machine.is_closed();
        let reader = if machine.has_news() {
            self.rouse(&mut state)
        } else {
            None
        };
        drop(state);
        self.reads
            .send_if_modified(|before| std::mem::replace(before, reads) != reads);
        if let Some(reader) = reader {
            reader.wake();
        }
        busy
    }

    /// The task that waits for a message, to be woken without the lock.
    pub(crate) fn rouse(&self, state: &mut State) -> Option<Waker> {
        let reader = state.reader.take();
        if reader.is_some() {
            self.woken.store(true, Ordering::Release);
        }
        reader
    }

    /// A task waits for a message.
    pub(crate) fn await_message(&self, state: &mut State, reader: &Waker) {
        state.reader = Some(reader.clone());
        self.woken.store(false, Ordering::Release);
    }

    /// Whether the task that waited for a message was woken since it last asked.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// The budget that the source shares with other connectors, and its name there.
    pub(crate) fn budget(&self) -> Option<&(Budget, Arc<str>)> {
        self.seat.pool.budget()
    }

    /// The machine's count of revocations.
    pub(crate) fn revoked(&self) -> u64 {
        self.revoked.load(Ordering::Acquire)
    }

    /// Follows whether the streams may be read.
    pub(crate) fn reads(&self) -> watch::Receiver<bool> {
        self.reads.subscribe()
    }

    /// Follows whether the driver has ended.
    pub(crate) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Waits until there is something for the driver to do.
    pub(crate) async fn work(&self) {
        self.driver.notified().await;
    }

    /// The driver has ended: whoever still waits learns it. Answers what the machine died of, if
    /// that was not in good order.
    pub(crate) fn end(&self, now: Instant, cause: Cause) -> Option<Cause> {
        let mut state = match self.state.lock() {
            Ok(state) => state,
            // The resolvers are plain maps, whole whatever happened to the machine.
            Err(poisoned) => poisoned.into_inner(),
        };
        let poisoned = self.state.is_poisoned();
        if !poisoned && !state.machine.is_closed() {
            state.machine.fail(
                now,
                SourceError::DriverGone {
                    cause: cause.clone(),
                },
            );
        }
        let fallen = match state.machine.fallen() {
            None if poisoned => Some(cause.clone()),
            fallen => fallen.cloned(),
        };
        let cause = match state.machine.closed() {
            Some(cause) => cause.clone(),
            None => cause,
        };
        let commits = std::mem::take(&mut state.commits).into_values();
        let settles = std::mem::take(&mut state.settles).into_values();
        let waiting: Vec<Resolver<Committed>> = commits
            .chain(settles)
            .chain(std::mem::take(&mut state.restores))
            .collect();
        let reader = self.rouse(&mut state);
        // Nobody waits for room here any more.
        let _ = self.seat.pool.report(self.seat.split, Standing::default());
        self.revoked.store(u64::MAX, Ordering::Release);
        drop(state);
        for resolver in waiting {
            resolver.resolve(Err(connector_core::CheckpointError::Closed {
                cause: cause.clone(),
            }));
        }
        self.reads.send_replace(false);
        self.ended.send_replace(true);
        if let Some(reader) = reader {
            reader.wake();
        }
        fallen
    }
}

fn panicked<T>(_: PoisonError<T>) -> Cause {
    Cause::new(DriverPanicked {
        text: "the source's state was left half-changed".to_owned(),
    })
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use connector_core::{CheckpointError, Epoch, Receipt};

    use super::*;
    use crate::{machine::Restoration, settings::Settings};

    fn shared() -> Arc<Shared> {
        let settings = Settings::default();
        let pool = Pool::new(settings.buffer, settings.paused_limit(), 1);
        let machine = Machine::new(
            driver::now(),
            "projects/demo-project/subscriptions/s11".parse().unwrap(),
            "a-source".into(),
            settings,
            Restoration::default(),
        );
        Shared::new(machine, Seat { pool, split: 0 })
    }

    #[test]
    fn a_panic_in_the_middle_is_an_error_from_then_on_and_receipts_resolve() {
        let shared = shared();
        let mut receipt = shared
            .with(|state| {
                let now = driver::now();
                state.machine.snapshot(now, Epoch::new(1)).unwrap();
                let commit = state.machine.commit(now, Epoch::new(1)).unwrap();
                let (resolver, receipt) = Receipt::channel();
                state.commits.insert(commit, resolver);
                receipt
            })
            .unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            shared.with(|_| panic!("in the middle of things"))
        }));
        assert!(panic.is_err());
        let cause = shared.with(|_| ()).unwrap_err();
        assert!(receipt.try_now().is_none());
        shared.end(driver::now(), cause);
        let resolved = receipt.try_now();
        assert!(
            matches!(resolved, Some(Err(CheckpointError::Closed { .. }))),
            "{resolved:?}"
        );
        assert!(*shared.ended().borrow());
    }

    #[test]
    fn a_driver_that_ends_early_ends_the_source_with_its_reason() {
        let shared = shared();
        let text = "lost its balance".to_owned();
        shared.end(driver::now(), Cause::new(DriverPanicked { text }));
        let error = shared
            .with(|state| state.machine.take_error())
            .unwrap()
            .unwrap();
        let SourceError::DriverGone { cause } = error else {
            panic!("{error:?}")
        };
        assert!(cause.to_string().contains("lost its balance"));
    }
}
