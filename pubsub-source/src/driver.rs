//! Performs what the machine wants done, and tells it what came of it.

mod clock;
mod fate;
#[cfg(feature = "metrics")]
mod figures;
mod freshness;
mod notices;
mod performance;
mod pull;
mod request;
mod response;
mod verdict;

pub(crate) use clock::now;
use fate::Farewell;
pub(crate) use fate::Fate;
pub(crate) use notices::tell_unread;
#[cfg(any(test, fuzzing, feature = "bench"))]
pub(crate) use response::take_apart;

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use connector_core::Cause;
use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};
use gcp_wire::{Connection, SubscriptionName};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use crate::{
    error::{DriverPanicked, driver_gone},
    machine::{Answer, CallId, Effect, StreamEnd, StreamId},
    shared::{Shared, panic_text},
};
use notices::Journal;
use performance::Performance;
use pull::{Command, Pull};
use verdict::CallVerdict;

/// Effects performed in one turn. The rest waits for the next, after answers and wake-ups had
/// their turn too.
const EFFECTS_PER_TURN: usize = 64;

/// Requests queued for a stream's task. One ping or change per 30 s goes in: a full queue means
/// that the task is stuck.
const COMMANDS: usize = 8;

/// The work of a source: polls its connections and timers, of all its subscriptions. Ends when the
/// source is closed.
///
/// Returned by [`SourceBuilder::build_with_driver`](crate::SourceBuilder::build_with_driver) for
/// hosts that place it themselves: spawn it, and never poll it in the same `select!` as an inline
/// await, which would keep leases from being extended.
///
/// # Cancel safety
///
/// Dropping it before the source is closed ends the source: every later call answers `Closed`, and
/// what is leased comes again when its lease ends.
#[must_use = "a source does nothing without its driver"]
pub struct Driver(BoxFuture<'static, ()>);

impl Driver {
    pub(crate) fn new(splits: impl IntoIterator<Item = Parts>) -> Self {
        let runs = splits.into_iter().map(|parts| {
            // Made here and not inside: a driver that is dropped before its first poll says so too.
            let farewell = Farewell {
                shared: Arc::clone(&parts.shared),
                fate: parts.fate.clone(),
                cause: driver_gone(),
            };
            run(parts, farewell)
        });
        Self(Box::pin(join_all(runs.collect::<Vec<_>>()).map(drop)))
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// What the work of one split is done with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) fate: Fate,
    pub(crate) subscription: SubscriptionName,
    /// For the log.
    pub(crate) endpoint: String,
    pub(crate) pulls: Connection,
    pub(crate) calls: Connection,
    /// One per slot, kept over reconnects: the service recognises a stream that comes back.
    pub(crate) client_ids: Vec<String>,
}

async fn run(parts: Parts, mut farewell: Farewell) {
    let work = AssertUnwindSafe(Work::new(parts).run()).catch_unwind();
    if let Err(panic) = work.await {
        let text = panic_text(&*panic);
        tracing::error!(%text, "The source's driver panicked; the source ends.");
        farewell.cause = Cause::new(DriverPanicked { text });
    }
}

/// One open pull stream.
struct Stream {
    commands: mpsc::Sender<Command>,
    task: AbortHandle,
}

struct Work {
    parts: Parts,
    journal: Journal,
    streams: BTreeMap<StreamId, Stream>,
    tasks: JoinSet<StreamId>,
    calls: FuturesUnordered<BoxFuture<'static, (CallId, CallVerdict)>>,
    #[cfg(feature = "metrics")]
    figures: figures::Figures,
}

/// How a turn leaves things.
enum Turn {
    /// Nothing to do before this time, or before something happens.
    Idle(Option<Instant>),
    /// There is more to do.
    Busy,
    /// The source is closed.
    Over,
}

impl Work {
    fn new(parts: Parts) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            figures: figures::Figures::new(&parts.subscription),
            journal: Journal::new(
                parts.subscription.clone(),
                parts.endpoint.clone(),
                parts.shared.budget().cloned(),
            ),
            parts,
            streams: BTreeMap::new(),
            tasks: JoinSet::new(),
            calls: FuturesUnordered::new(),
        }
    }

    async fn run(mut self) {
        let shared = Arc::clone(&self.parts.shared);
        let fate = self.parts.fate.clone();
        let mut fallen = pin!(fate.fallen().fuse());
        let mut timer = pin!(tokio::time::sleep(std::time::Duration::ZERO));
        let mut armed = None;
        loop {
            let (deadline, busy) = match self.turn() {
                Ok(Turn::Idle(deadline)) => (deadline, false),
                Ok(Turn::Busy) => (None, true),
                // A poisoned machine: `end` tells everybody.
                Ok(Turn::Over) | Err(_) => return,
            };
            // Resetting a timer costs more than looking at the deadline.
            if let Some(deadline) = deadline
                && armed != Some(deadline)
            {
                timer.as_mut().reset(deadline.into());
                armed = Some(deadline);
            }
            tokio::select! {
                biased;
                Some((call, verdict)) = self.calls.next() => self.answered(call, verdict),
                Some(ended) = self.tasks.join_next() => self.stream_task_ended(ended),
                cause = &mut fallen => self.follow(cause),
                () = shared.work() => {}
                () = timer.as_mut(), if deadline.is_some() => armed = None,
                () = tokio::task::yield_now(), if busy => {}
            }
        }
    }

    /// Lets the machine catch up with the clock, and does what it wants done, up to a bound.
    fn turn(&mut self) -> Result<Turn, Cause> {
        let now = now();
        let mut effects = Vec::new();
        let turn = self.parts.shared.drive(|state| {
            // The clock decides what is due, not whether the timer has fired.
            if state.machine.poll_timeout().is_some_and(|due| due <= now) {
                state.machine.handle_timeout(now);
            }
            while effects.len() < EFFECTS_PER_TURN {
                let Some(effect) = state.machine.poll_effect(now) else {
                    break;
                };
                effects.push(match effect {
                    Effect::Committed { commit, committed } => {
                        let resolver = state.commits.remove(&commit);
                        Performance::Resolve(resolver.into_iter().collect(), Ok(committed))
                    }
                    Effect::Unconfirmed { commit, error } => {
                        let resolver = state.commits.remove(&commit);
                        Performance::Resolve(resolver.into_iter().collect(), Err(error))
                    }
                    Effect::Settled { settle, committed } => {
                        let resolver = state.settles.remove(&settle);
                        Performance::Resolve(resolver.into_iter().collect(), Ok(committed))
                    }
                    Effect::Restored { committed } => {
                        let resolvers = std::mem::take(&mut state.restores);
                        Performance::Resolve(resolvers, Ok(committed))
                    }
                    Effect::Open { .. }
                    | Effect::Ping { .. }
                    | Effect::ChangeLease { .. }
                    | Effect::HalfClose { .. }
                    | Effect::GiveUp { .. }
                    | Effect::Drop { .. }
                    | Effect::Call { .. }
                    | Effect::Tell(_) => Performance::Perform(effect),
                });
            }
            let turn = if effects.len() >= EFFECTS_PER_TURN {
                Turn::Busy
            } else if state.machine.is_closed() {
                Turn::Over
            } else {
                Turn::Idle(state.machine.poll_timeout())
            };
            state.armed = match turn {
                Turn::Idle(deadline) => deadline,
                Turn::Busy | Turn::Over => Some(now),
            };
            if let Some(cause) = state.machine.fallen() {
                self.parts.fate.tell(cause);
            }
            #[cfg(feature = "metrics")]
            self.figures.publish(now, || state.machine.stats(now));
            turn
        })?;
        for performance in effects {
            match performance {
                Performance::Resolve(resolvers, verdict) => {
                    for resolver in resolvers {
                        resolver.resolve(verdict.clone());
                    }
                }
                Performance::Perform(effect) => self.perform(effect),
            }
        }
        Ok(turn)
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Open {
                stream,
                slot,
                lease_seconds,
                max_messages,
                max_bytes,
            } => {
                let limits = (max_messages, max_bytes);
                self.open(stream, slot, lease_seconds, limits);
            }
            Effect::Ping { stream } => self.command(stream, Command::Ping),
            Effect::ChangeLease {
                stream,
                lease_seconds,
            } => self.command(stream, Command::ChangeLease(lease_seconds)),
            Effect::HalfClose { stream } => self.command(stream, Command::HalfClose),
            Effect::GiveUp { stream } => self.command(stream, Command::GiveUp),
            Effect::Drop { stream } => {
                if let Some(stream) = self.streams.remove(&stream) {
                    stream.task.abort();
                }
            }
            Effect::Call { call, method, body } => {
                let request = request::send(
                    self.parts.calls.clone(),
                    self.parts.subscription.clone(),
                    self.journal.clone(),
                    call,
                    method,
                    body,
                );
                self.calls.push(Box::pin(request));
            }
            Effect::Tell(notice) => self.journal.tell(&notice),
            // Taken out in `turn`, where the resolvers are.
            Effect::Committed { .. }
            | Effect::Unconfirmed { .. }
            | Effect::Restored { .. }
            | Effect::Settled { .. } => {}
        }
    }

    fn open(&mut self, stream: StreamId, slot: usize, lease_seconds: u32, limits: (u64, u64)) {
        let (commands, queue) = mpsc::channel(COMMANDS);
        let pull = Pull {
            shared: Arc::clone(&self.parts.shared),
            connection: self.parts.pulls.clone(),
            subscription: self.parts.subscription.clone(),
            journal: self.journal.clone(),
            stream,
            commands: queue,
        };
        let client_id = self.parts.client_ids.get(slot).cloned().unwrap_or_default();
        let first = pull.first_request(client_id, lease_seconds, limits);
        let task = self.tasks.spawn(async move {
            pull.run(first).await;
            stream
        });
        self.streams.insert(stream, Stream { commands, task });
    }

    fn command(&mut self, stream: StreamId, command: Command) {
        let Some(open) = self.streams.get(&stream) else {
            return;
        };
        if open.commands.try_send(command).is_err() {
            // Full: its task is stuck in something that only dropping the stream gets over with.
            open.task.abort();
            self.streams.remove(&stream);
            let (now, random) = (now(), fastrand::f64());
            let told = self.parts.shared.with(|state| {
                let end = StreamEnd::Again;
                state
                    .machine
                    .handle_stream_ended(now, random, stream, end, None);
            });
            // A poisoned machine is noticed by the next turn.
            drop(told);
        }
    }

    fn answered(&self, call: CallId, verdict: CallVerdict) {
        let now = now();
        let random = fastrand::f64();
        let outcome = self.parts.shared.with(|state| match verdict {
            CallVerdict::Answer(answer) => state.machine.handle_answer(now, random, call, answer),
            CallVerdict::Final(error) => {
                state.machine.fail(now, error);
                // It stays unconfirmed: a closing source tries until its budget is over.
                state
                    .machine
                    .handle_answer(now, random, call, Answer::Again(None));
            }
        });
        // A poisoned machine is noticed by the next turn.
        drop(outcome);
    }

    /// Another split of the source died.
    fn follow(&self, cause: Cause) {
        let told = self
            .parts
            .shared
            .with(|state| state.machine.fall(now(), cause));
        // A poisoned machine is noticed by the next turn.
        drop(told);
    }

    fn stream_task_ended(&mut self, ended: Result<StreamId, tokio::task::JoinError>) {
        match ended {
            Ok(stream) => drop(self.streams.remove(&stream)),
            Err(error) if error.is_panic() => {
                std::panic::resume_unwind(error.into_panic());
            }
            // Dropped by the machine.
            Err(_) => {}
        }
    }
}
