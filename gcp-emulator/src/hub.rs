//! The state machines, the lock around them, and everything that waits for them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tokio::sync::Notify;

use crate::call::{Body, Call};
use crate::clock::Clock;
use crate::cloudtasks::state::TasksState;
use crate::fault::{End, Faults};
use crate::method::Method;
use crate::observation::Observation;
use crate::pubsub::state::{PubsubState, Settings, StreamId};
use crate::time::Time;

/// Settings of the shell.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) require_routing_header: bool,
    pub(crate) cloud_tasks: bool,
    pub(crate) request_history: usize,
    pub(crate) task_names_kept: Option<Duration>,
    pub(crate) operations_take: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            require_routing_header: false,
            cloud_tasks: true,
            request_history: 100_000,
            task_names_kept: None,
            operations_take: Duration::ZERO,
        }
    }
}

/// Encoded bytes of the requests kept for assertions: they hold on to payloads.
const REQUEST_BYTES: usize = 256 << 20;

/// One lock around both machines: the order in which requests take it is the order in which they
/// happened.
pub(crate) struct Hub {
    clock: Clock,
    core: Mutex<Core>,
    changed: Notify,
    timer: Notify,
    faults: Faults,
    options: Options,
}

/// What the lock guards.
pub(crate) struct Core {
    pub(crate) pubsub: PubsubState,
    pub(crate) tasks: TasksState,
    /// The tasks that wait for something to send on their pull stream.
    waiting: BTreeMap<StreamId, Waker>,
    /// Faults that end running pull streams.
    scripts: BTreeMap<StreamId, End>,
    nudged: BTreeSet<StreamId>,
    requests: Arc<VecDeque<Arc<Call>>>,
    calls: Arc<BTreeMap<Method, u64>>,
    requests_forgotten: u64,
    request_bytes: usize,
    connections: usize,
    connections_opened: u64,
    armed: Option<Time>,
}

/// What is known of a request before it is decoded.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) connection: u64,
}

impl Hub {
    pub(crate) fn new(clock: Clock, settings: Settings, options: Options, faults: Faults) -> Self {
        let mut tasks = TasksState::new(settings.history).operations_take(options.operations_take);
        if let Some(span) = options.task_names_kept {
            tasks = tasks.names_kept(span);
        }
        Self {
            clock,
            core: Mutex::new(Core {
                pubsub: PubsubState::new(settings),
                tasks,
                waiting: BTreeMap::new(),
                scripts: BTreeMap::new(),
                nudged: BTreeSet::new(),
                requests: Arc::default(),
                calls: Arc::default(),
                requests_forgotten: 0,
                request_bytes: 0,
                connections: 0,
                connections_opened: 0,
                armed: None,
            }),
            changed: Notify::new(),
            timer: Notify::new(),
            faults,
            options,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) const fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// Does something to the machines and wakes whatever that concerns.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Core, Time) -> R) -> R {
        let (result, wakers) = {
            let mut core = self.lock();
            // The clock is read under the lock, so that time and order of the calls agree.
            let now = self.clock.now();
            if core.pubsub.poll_timeout().is_some_and(|due| due <= now) {
                core.pubsub.handle_timeout(now);
            }
            let result = act(&mut core, now);
            let due = core.pubsub.poll_timeout();
            if due.is_some_and(|due| core.armed.is_none_or(|armed| due < armed)) {
                core.armed = due;
                self.timer.notify_one();
            }
            (result, core.woken())
        };
        for waker in wakers {
            waker.wake();
        }
        self.changed.notify_waiters();
        result
    }

    /// Lets deadlines pass when they are due. Runs as long as the server.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        loop {
            let due = {
                let mut core = self.lock();
                core.armed = core.pubsub.poll_timeout();
                core.armed
            };
            match due {
                Some(due) => {
                    let sleep = tokio::time::sleep_until(self.clock.instant(due));
                    tokio::select! {
                        biased;
                        () = self.timer.notified() => {}
                        () = sleep => self.with(|_, _| ()),
                    }
                }
                None => self.timer.notified().await,
            }
        }
    }

    /// Tries something after each change until it gives a result, at most for `limit`.
    pub(crate) async fn wait_for<R>(
        &self,
        limit: Duration,
        mut attempt: impl FnMut(&mut Core, Time) -> Option<R> + Send,
    ) -> Option<R> {
        let trying = async {
            loop {
                // Enabled before the attempt, so that no change between the two is missed. The
                // attempt itself is no change worth waking for unless it succeeded.
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(result) = self.quietly(&mut attempt) {
                    return result;
                }
                changed.await;
            }
        };
        tokio::time::timeout(limit, trying).await.ok()
    }

    /// As [`with`](Self::with), but a fruitless attempt wakes nobody: two waiting pulls would wake
    /// each other for ever.
    fn quietly<R>(
        &self,
        attempt: &mut (dyn FnMut(&mut Core, Time) -> Option<R> + Send),
    ) -> Option<R> {
        let result = {
            let mut core = self.lock();
            let now = self.clock.now();
            attempt(&mut core, now)
        }?;
        self.with(|_, _| ());
        Some(result)
    }

    pub(crate) async fn wait_until(
        &self,
        holds: &mut (dyn FnMut(&Observation) -> bool + Send),
        limit: Duration,
    ) -> bool {
        let waiting = async {
            loop {
                // Enabled before the look, so that no change between the two is missed.
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let held = {
                    let core = self.lock();
                    let seen = core.observe();
                    // Looked at under the lock: the parts go back before the next change would
                    // have to copy them.
                    holds(&seen)
                };
                if held {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(limit, waiting).await.is_ok()
    }

    pub(crate) fn observe(&self) -> Observation {
        self.lock().observe()
    }

    /// Records a request and returns it, counted.
    pub(crate) fn arrive(
        &self,
        method: Method,
        envelope: Envelope,
        encoded_len: usize,
        body: Body,
        place: Option<(StreamId, u64)>,
    ) -> Arc<Call> {
        self.with(|core, at| {
            let nth = place.map_or_else(|| core.count(method), |(_, nth)| nth);
            let call = Arc::new(Call {
                method,
                nth,
                at,
                metadata: envelope.metadata,
                encoded_len,
                body,
                connection: envelope.connection,
                stream: place.map(|(stream, _)| stream.number()),
            });
            core.keep(&call, self.options.request_history);
            call
        })
    }

    pub(crate) fn connection_opened(&self) -> u64 {
        self.with(|core, _| {
            core.connections += 1;
            core.connections_opened += 1;
            core.connections_opened
        })
    }

    pub(crate) fn connection_closed(&self) {
        self.with(|core, _| core.connections -= 1);
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic under the lock is a bug that its own caller has seen; tests that follow it
        // should still be able to look at the server.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    pub(crate) fn count(&mut self, method: Method) -> u64 {
        let calls = Arc::make_mut(&mut self.calls);
        let count = calls.entry(method).or_default();
        *count += 1;
        *count - 1
    }

    fn keep(&mut self, call: &Arc<Call>, most: usize) {
        let requests = Arc::make_mut(&mut self.requests);
        requests.push_back(Arc::clone(call));
        self.request_bytes += call.encoded_len;
        while requests.len() > most || self.request_bytes > REQUEST_BYTES {
            let Some(oldest) = requests.pop_front() else {
                break;
            };
            self.request_bytes -= oldest.encoded_len;
            self.requests_forgotten += 1;
        }
    }

    /// Ends a running pull stream by a fault.
    pub(crate) fn script(&mut self, stream: StreamId, end: End) {
        self.scripts.insert(stream, end);
        self.nudged.insert(stream);
    }

    pub(crate) fn take_script(&mut self, stream: StreamId) -> Option<End> {
        self.scripts.remove(&stream)
    }

    /// Wakes a task when its pull stream has something to send.
    pub(crate) fn wait(&mut self, stream: StreamId, waker: &Waker) {
        self.waiting.insert(stream, waker.clone());
    }

    /// Forgets what was kept for a pull stream that is gone.
    pub(crate) fn forget(&mut self, stream: StreamId) {
        self.waiting.remove(&stream);
        self.scripts.remove(&stream);
        self.nudged.remove(&stream);
    }

    fn woken(&mut self) -> Vec<Waker> {
        let mut woken = self.pubsub.take_woken();
        woken.append(&mut self.nudged);
        woken
            .iter()
            .filter_map(|stream| self.waiting.remove(stream))
            .collect()
    }

    fn observe(&self) -> Observation {
        let record = self.pubsub.record();
        Observation {
            topics: Arc::clone(&record.topics),
            subscriptions: Arc::clone(&record.subscriptions),
            queues: Arc::clone(self.tasks.record()),
            requests: Arc::clone(&self.requests),
            calls: Arc::clone(&self.calls),
            requests_forgotten: self.requests_forgotten,
            connections: self.connections,
            connections_opened: self.connections_opened,
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
