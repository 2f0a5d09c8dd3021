//! Performs what the machine wants, and tells it what happened.

mod calls;
pub(crate) mod clock;
#[cfg(feature = "metrics")]
mod published;
mod receipts;
mod shared;
mod skew;

pub(crate) use shared::Shared;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use connector_core::{CheckpointError, FailureHandler, Verdict};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use gcp_wire::proto::longrunning::Operation;
use gcp_wire::proto::tasks::Queue;
use gcp_wire::{Connection, QueueName, RpcError};
use tokio::time::Sleep;

use crate::SinkError;
use crate::event;
use crate::machine::{Answer, CallId, Effect, JobId, RecordId, Report};

/// Effects performed and answers taken in before the driver looks at everything else again.
const PER_TURN: usize = 128;

/// Where the answers of calls and of the failure handler arrive.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    connection: Connection,
    handler: Box<dyn FailureHandler>,
    attempt_deadline: Duration,
    calls: FuturesUnordered<BoxFuture<'static, Answered>>,
    handled: FuturesUnordered<BoxFuture<'static, Handled>>,
    #[cfg(feature = "metrics")]
    published: published::Published,
}

/// An answer of the service. A duration says that its clock is so far from ours that it matters.
enum Answered {
    Create(RecordId, Answer, Option<Duration>),
    /// The call was not made: it had become too late.
    Late(RecordId),
    LateBatch(CallId),
    Batch(CallId, Result<Operation, RpcError>, Option<Duration>),
    Operation(CallId, Result<Operation, RpcError>),
    Queue(QueueName, Result<Box<Queue>, RpcError>),
}

/// An answer of the failure handler.
enum Handled {
    Verdict(JobId, Result<Verdict, CheckpointError>),
    Flushed(JobId, Result<(), CheckpointError>),
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Idle,
    More,
    Ended,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        connection: Connection,
        handler: Box<dyn FailureHandler>,
        attempt_deadline: Duration,
    ) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            published: published::Published::new(shared.instance()),
            shared,
            connection,
            handler,
            attempt_deadline,
            calls: FuturesUnordered::new(),
            handled: FuturesUnordered::new(),
        }
    }

    /// The driver as a future. It ends when the sink has ended; dropped earlier, it ends the sink.
    pub(crate) fn into_future(self) -> impl Future<Output = ()> + Send + 'static {
        let guard = Guard {
            shared: Arc::clone(&self.shared),
        };
        async move {
            let guarded = guard;
            if let Err(panic) = AssertUnwindSafe(self.run()).catch_unwind().await {
                guarded.shared.end(SinkError::Panicked {
                    message: message_of(&*panic),
                });
            }
        }
    }

    async fn run(mut self) {
        let mut timer: Pin<Box<Sleep>> = Box::pin(tokio::time::sleep(Duration::ZERO));
        let mut armed: Option<Instant> = None;
        loop {
            let turn = self.turn();
            if turn == Turn::Ended {
                return;
            }
            let deadline = self.shared.lock().machine.poll_timeout();
            if deadline != armed {
                armed = deadline;
                if let Some(deadline) = deadline {
                    timer
                        .as_mut()
                        .reset(tokio::time::Instant::from_std(deadline));
                }
            }
            tokio::select! {
                biased;
                Some(answer) = self.calls.next() => self.take_answers(answer),
                Some(handled) = self.handled.next() => self.take_handled(handled),
                () = self.shared.woken() => {}
                // A timer that has run out is armed anew even for the same deadline.
                () = timer.as_mut(), if armed.is_some() => armed = None,
                () = tokio::task::yield_now(), if turn == Turn::More => {}
            }
            // The clock decides what is due: the timer may be late, or not have been polled.
            let now = clock::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.shared.lock().machine.handle_timeout(now);
            }
        }
    }

    /// Performs what is to be done, a bounded number of things.
    fn turn(&mut self) -> Turn {
        let now = clock::now();
        let mut effects = Vec::new();
        {
            let mut inner = self.shared.lock();
            inner.machine.handle_time_of_day(self.shared.wall().now());
            while effects.len() < PER_TURN
                && let Some(effect) = inner.machine.poll_effect(now)
            {
                effects.push(effect);
            }
        }
        let mut turn = if effects.len() == PER_TURN {
            Turn::More
        } else {
            Turn::Idle
        };
        for effect in effects {
            if matches!(effect, Effect::Ended) {
                turn = Turn::Ended;
            }
            self.perform(effect);
        }
        #[cfg(feature = "metrics")]
        self.published.publish(&mut self.shared.lock().machine);
        turn
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Create {
                record,
                queue,
                request,
                not_after,
            } => self.create(record, &queue, request, not_after),
            Effect::CreateBatch {
                call,
                queue,
                request,
                not_after,
            } => self.create_batch(call, &queue, request, not_after),
            Effect::ReadOperation { call, operation } => self.read_operation(call, operation),
            Effect::ReadQueue { queue } => self.read_queue(queue),
            Effect::Handle { job, rejected } => {
                let verdict = self.handler.handle(*rejected);
                self.handled
                    .push(async move { Handled::Verdict(job, verdict.await) }.boxed());
            }
            Effect::FlushHandler { job } => {
                let flush = self.handler.flush();
                self.handled
                    .push(async move { Handled::Flushed(job, flush.await) }.boxed());
            }
            Effect::Release(amount) => self.shared.member().release(amount),
            Effect::Snapshot { epoch, outcome } => self.shared.resolve_snapshot(epoch, outcome),
            Effect::Committed { commit, committed } => {
                self.shared.resolve_commit(commit, Ok(committed));
            }
            Effect::Unconfirmed { commit, error } => {
                self.shared.resolve_commit(commit, Err(error));
            }
            Effect::Submitted { record, outcome } => {
                self.shared.resolve_submitted(record, outcome);
            }
            Effect::Wake => self.shared.wake_host(),
            Effect::Report(report) => self.report(report),
            Effect::Ended => self.shared.resolve_end(),
        }
    }

    fn take_answers(&mut self, first: Answered) {
        let mut answers = vec![first];
        while answers.len() < PER_TURN
            && let Some(Some(answer)) = self.calls.next().now_or_never()
        {
            answers.push(answer);
        }
        let now = clock::now();
        let mut inner = self.shared.lock();
        inner.machine.handle_time_of_day(self.shared.wall().now());
        for answer in answers {
            let mut too_far = None;
            match answer {
                Answered::Create(record, answer, apart) => {
                    too_far = apart;
                    inner
                        .machine
                        .handle_answer(now, record, answer, fastrand::f64());
                }
                Answered::Late(record) => inner.machine.handle_late(now, record),
                Answered::LateBatch(call) => inner.machine.handle_late_batch(now, call),
                Answered::Batch(call, answer, apart) => {
                    too_far = apart;
                    inner
                        .machine
                        .handle_batch_created(now, call, answer, fastrand::f64);
                }
                Answered::Queue(queue, answer) => {
                    inner
                        .machine
                        .handle_queue(now, queue, answer.map(|queue| *queue));
                }
                Answered::Operation(call, answer) => {
                    inner
                        .machine
                        .handle_operation(now, call, answer, fastrand::f64);
                }
            }
            // What was made was made; what is not is no longer bounded by a clock.
            if let Some(apart) = too_far {
                inner.machine.fail(SinkError::ClockApart { apart });
            }
        }
    }

    fn take_handled(&self, handled: Handled) {
        let now = clock::now();
        let mut inner = self.shared.lock();
        match handled {
            Handled::Verdict(job, verdict) => inner.machine.handle_verdict(now, job, verdict),
            Handled::Flushed(job, outcome) => {
                inner.machine.handle_handler_flushed(now, job, outcome);
            }
        }
    }

    fn report(&self, report: Report) {
        let instance = self.shared.instance();
        match report {
            Report::Retrying {
                queue,
                failures,
                error,
            } => {
                event::retrying(instance, &queue, failures, &error);
            }
            Report::Holding {
                queue,
                waiting,
                error,
            } => event::holding(instance, &queue, waiting, &error),
            Report::Kept {
                queue,
                why,
                times,
                cause,
            } => event::kept(instance, &queue, why, times, cause.as_deref()),
            Report::WaitingForRoom { after } => {
                event::waiting_for_room(instance, after, &self.shared.member().budget().holders());
            }
            Report::UnexpectedDuplicate { queue, times } => {
                event::unexpected_duplicate(instance, &queue, times);
            }
            Report::QueueStopped { queue, state } => event::queue_stopped(instance, &queue, state),
            Report::QueueRuns { queue } => event::queue_runs(instance, &queue),
            Report::QueueUnseen { queue, error } => event::queue_unseen(instance, &queue, &error),
            Report::FewStreams { streams, waiting } => {
                event::few_streams(instance, streams, waiting);
            }
        }
    }
}

/// Ends the sink when the driver is dropped before it has.
struct Guard {
    shared: Arc<Shared>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let CheckpointError::Closed { cause } = CheckpointError::driver_gone() {
            self.shared.end(SinkError::Closed { cause });
        }
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
