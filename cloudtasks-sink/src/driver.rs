//! Performs what the machine wants, and tells it what happened.

pub(crate) mod clock;
#[cfg(feature = "metrics")]
mod published;
mod receipts;
mod shared;

pub(crate) use shared::Shared;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use connector_core::{CheckpointError, FailureHandler, Verdict};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use gcp_wire::proto::longrunning::{GetOperationRequest, Operation};
use gcp_wire::proto::tasks::{GetQueueRequest, Queue};
use gcp_wire::{Connection, EncodedBody, QueueName, RpcError, method};
use tokio::time::Sleep;

use crate::SinkError;
use crate::event;
use crate::machine::{Answer, CallId, Effect, JobId, RecordId, Report};

/// How long the first look at a queue may hold up the queue's records.
const LOOK_DEADLINE: Duration = Duration::from_secs(5);

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

/// An answer of the service.
enum Answered {
    Create(RecordId, Answer),
    Batch(CallId, Result<Operation, RpcError>),
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
            } => self.create(record, &queue, request),
            Effect::CreateBatch {
                call,
                queue,
                request,
            } => self.create_batch(call, &queue, request),
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
                self.shared.resolve_commit(commit, committed);
            }
            Effect::Submitted { record, outcome } => {
                self.shared.resolve_submitted(record, outcome);
            }
            Effect::Wake => self.shared.wake_host(),
            Effect::Report(report) => self.report(report),
            Effect::Ended => self.shared.resolve_end(),
        }
    }

    fn create(&self, record: RecordId, queue: &QueueName, request: Bytes) {
        let connection = self.connection.clone();
        let (queue, deadline) = (queue.clone(), self.attempt_deadline);
        let span = event::creating(self.shared.instance(), &queue, record);
        let call = async move {
            let body = EncodedBody::from(request);
            let call =
                connection.call_encoded(&method::CREATE_TASK, queue.as_str(), body, deadline);
            let outcome = event::within(span, call).await;
            let answer = match outcome {
                Ok(task) => Answer::Created(task.name),
                Err(error) => Answer::Failed(error),
            };
            Answered::Create(record, answer)
        };
        self.calls.push(call.boxed());
    }

    fn create_batch(&self, id: CallId, queue: &QueueName, request: Bytes) {
        let connection = self.connection.clone();
        let (queue, deadline) = (queue.clone(), self.attempt_deadline);
        let span = event::creating_batch(self.shared.instance(), &queue, id);
        let call = async move {
            let body = EncodedBody::from(request);
            let method = &method::BATCH_CREATE_TASKS;
            let call = connection.call_encoded(method, queue.as_str(), body, deadline);
            let outcome = event::within(span, call).await;
            Answered::Batch(id, outcome)
        };
        self.calls.push(call.boxed());
    }

    fn read_operation(&self, id: CallId, operation: String) {
        let connection = self.connection.clone();
        let deadline = self.attempt_deadline;
        let call = async move {
            let request = GetOperationRequest {
                name: operation.clone(),
            };
            let outcome = connection
                .call(&method::GET_OPERATION, &operation, request, deadline)
                .await;
            Answered::Operation(id, outcome)
        };
        self.calls.push(call.boxed());
    }

    fn read_queue(&self, queue: QueueName) {
        let connection = self.connection.clone();
        let deadline = self.attempt_deadline.min(LOOK_DEADLINE);
        let call = async move {
            let request = GetQueueRequest {
                name: queue.as_str().to_owned(),
            };
            let outcome = connection
                .call(&method::GET_QUEUE, queue.as_str(), request, deadline)
                .await;
            Answered::Queue(queue, outcome.map(Box::new))
        };
        self.calls.push(call.boxed());
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
        for answer in answers {
            match answer {
                Answered::Create(record, answer) => {
                    inner
                        .machine
                        .handle_answer(now, record, answer, fastrand::f64());
                }
                Answered::Batch(call, answer) => {
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
