//! The task that performs the machine's effects and feeds the answers back.

mod classify;
mod exit;

pub use exit::SinkDriver;

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use connector_core::{CheckpointError, FailureHandler, Receipt, Verdict};
use futures::{
    FutureExt,
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt},
};
use gcp_wire::{
    Code, Connection, EncodedBody, PublishedIds, RpcError, TopicName,
    method::{CREATE_TOPIC, PUBLISH},
    proto::pubsub::Topic,
};
use tokio::time::Sleep;
use tracing::{Instrument, Span};

use crate::{
    SinkError, TopicCreation, clock, events,
    machine::{Answer, RejectionId, RequestId},
    shared::{Shared, Task},
};

/// Effects performed before answers are looked at again, so that a flood of records does not keep
/// an answer, and with it room, from being taken in.
const EFFECTS_PER_TURN: usize = 128;

/// Requests sent before others have their turn. While a host on the same thread has more records,
/// those of many topics thereby gather into larger requests; when it has none, the next turn comes at
/// once. A request costs as much as some hundred small messages in it.
const REQUESTS_PER_TURN: usize = 8;

/// How long others may take for their turn before the driver sends as much as it can in its own: a
/// thread that is busy with something else would otherwise decide how many requests leave.
const LONG_TURN: Duration = Duration::from_millis(5);

/// Answers taken in before the machine is asked what to send.
const ANSWERS_PER_TURN: usize = 128;

/// The time that creating a topic may take before it is tried again: such calls take seconds.
const CREATION_DEADLINE: Duration = Duration::from_secs(30);

/// The time to the next look while no timer is set. Any; the wake-up comes first.
const NO_TIMER: Duration = Duration::from_secs(3600);

type Answered = (RequestId, Result<PublishedIds, RpcError>);
type Created = (TopicName, Result<Topic, RpcError>);
type Decided = (RejectionId, Result<Verdict, CheckpointError>);

pub(crate) struct Driver {
    shared: Arc<Shared>,
    connection: Connection,
    handler: Box<dyn FailureHandler>,
    publishing: FuturesUnordered<BoxFuture<'static, Answered>>,
    creating: FuturesUnordered<BoxFuture<'static, Created>>,
    /// How topics are created.
    creation: TopicCreation,
    verdicts: FuturesUnordered<BoxFuture<'static, Decided>>,
    flushing: Option<Receipt<()>>,
    rng: fastrand::Rng,
    /// When the driver had last performed what was to be done.
    last_turn: Instant,
    #[cfg(feature = "metrics")]
    instruments: crate::metrics::Instruments,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        connection: Connection,
        handler: Box<dyn FailureHandler>,
        creation: TopicCreation,
    ) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            instruments: crate::metrics::Instruments::new(&shared.instance),
            shared,
            connection,
            handler,
            publishing: FuturesUnordered::new(),
            creating: FuturesUnordered::new(),
            creation,
            verdicts: FuturesUnordered::new(),
            flushing: None,
            rng: fastrand::Rng::new(),
            last_turn: clock::now(),
        }
    }

    /// Runs until the sink has ended.
    async fn run(&mut self) -> Result<(), SinkError> {
        let mut timer = Timer::new();
        loop {
            let more = self.perform()?;
            self.last_turn = clock::now();
            let (ended, deadline) = self
                .shared
                .look(|state| (state.machine.is_ended(), state.machine.poll_timeout()))?;
            if ended && !more {
                return Ok(());
            }
            timer.set(deadline);
            self.shared.rest();
            tokio::select! {
                biased;
                Some(first) = self.publishing.next(), if !self.publishing.is_empty() => {
                    self.answered(first)?;
                }
                Some((topic, answer)) = self.creating.next(), if !self.creating.is_empty() => {
                    let (creation, random) = (classify::creation(answer), self.rng.f64());
                    self.shared.look(|state| {
                        let now = clock::now();
                        state.machine.handle_created(now, &topic, creation, random);
                    })?;
                }
                Some((id, verdict)) = self.verdicts.next(), if !self.verdicts.is_empty() => {
                    self.shared.look(|state| {
                        state.machine.handle_verdict(clock::now(), id, verdict);
                    })?;
                }
                outcome = flushed(&mut self.flushing), if self.flushing.is_some() => {
                    self.flushing = None;
                    let random = self.rng.f64();
                    self.shared.look(|state| {
                        state.machine.handle_flushed(clock::now(), outcome, random);
                    })?;
                }
                () = tokio::task::yield_now(), if more => {}
                () = self.shared.woken() => {}
                () = timer.elapsed() => {}
            }
            // The clock decides what is due, whichever branch it was that woke.
            let now = clock::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.shared
                    .look(|state| state.machine.handle_timeout(now))?;
            }
        }
    }

    /// Performs what the machine wants done. True when there is more.
    fn perform(&mut self) -> Result<bool, SinkError> {
        let released = self.shared.look(|state| state.machine.take_released())?;
        if released.items > 0 || released.bytes > 0 {
            self.shared.member.release(released);
        }
        #[cfg(feature = "metrics")]
        {
            let (stats, destinations, failures) = self.shared.look(|state| {
                let destinations = state.machine.take_changed_destinations();
                let failures = state.machine.take_changed_failures();
                (state.machine.stats(), destinations, failures)
            })?;
            self.instruments.publish(&stats);
            crate::metrics::publish_destinations(&self.shared.instance, destinations);
            crate::metrics::publish_failures(&self.shared.instance, failures);
        }
        let now = clock::now();
        let others = now.saturating_duration_since(self.last_turn);
        let requests = if others < LONG_TURN {
            REQUESTS_PER_TURN
        } else {
            EFFECTS_PER_TURN
        };
        let mut sent = 0;
        for _ in 0..EFFECTS_PER_TURN {
            if sent == requests {
                break;
            }
            match self.shared.look(|state| state.next_task(now))? {
                None => return Ok(false),
                Some(Task::Publish {
                    id,
                    topic,
                    header,
                    frames,
                    deadline,
                }) => {
                    let span = tracing::debug_span!(
                        "publish",
                        instance = &*self.shared.instance,
                        %topic,
                        bytes = header.len() + frames.len(),
                        code = tracing::field::Empty,
                    );
                    sent += 1;
                    let body = EncodedBody::new([header, frames]);
                    self.publish(id, topic, body, deadline, span);
                }
                Some(Task::Handle { id, rejected }) => {
                    let verdict = self.handler.handle(rejected);
                    let decided = async move { (id, verdict.await) };
                    self.verdicts.push(decided.boxed());
                }
                Some(Task::CreateTopic(topic)) => self.create(topic),
                Some(Task::FlushHandler) => self.flushing = Some(self.handler.flush()),
                Some(Task::Resolve(outcome)) => outcome.resolve(&self.shared.instance),
                Some(Task::Tell(notice)) => {
                    events::tell(&self.shared.instance, &self.shared.member, notice);
                }
            }
        }
        Ok(true)
    }

    fn publish(
        &self,
        id: RequestId,
        topic: TopicName,
        body: EncodedBody,
        deadline: Duration,
        span: Span,
    ) {
        let connection = self.connection.clone();
        let call = async move {
            let answer = connection
                .call_encoded(&PUBLISH, topic.as_str(), body, deadline)
                .instrument(span.clone())
                .await;
            let code = answer.as_ref().map_or_else(RpcError::code, |_| Code::Ok);
            span.record("code", code.name());
            (id, answer)
        };
        self.publishing.push(call.boxed());
    }

    fn create(&self, topic: TopicName) {
        let connection = self.connection.clone();
        let request = self.creation.topic(&topic);
        let call = async move {
            let answer = connection
                .call(&CREATE_TOPIC, topic.as_str(), request, CREATION_DEADLINE)
                .await;
            (topic, answer)
        };
        self.creating.push(call.boxed());
    }

    /// Takes in an answer, and those that have come with it.
    fn answered(&mut self, first: Answered) -> Result<(), SinkError> {
        let mut answers = vec![first];
        while answers.len() < ANSWERS_PER_TURN
            && let Some(Some(answer)) = self.publishing.next().now_or_never()
        {
            answers.push(answer);
        }
        let (now, rng) = (clock::now(), &mut self.rng);
        self.shared.look(|state| {
            for (id, answer) in answers {
                let answer = match answer {
                    Ok(ids) => Answer::Stored(ids),
                    Err(error) => Answer::Failed(classify::failure(error)),
                };
                state.machine.handle_answer(now, id, answer, rng.f64());
            }
        })
    }
}

/// The outcome of the handler's flush that is running.
async fn flushed(flushing: &mut Option<Receipt<()>>) -> Result<(), CheckpointError> {
    match flushing {
        Some(receipt) => receipt.await,
        None => std::future::pending().await,
    }
}

/// One timer, set anew only when its time changed.
struct Timer {
    sleep: Pin<Box<Sleep>>,
    at: Option<Instant>,
}

impl Timer {
    fn new() -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep(NO_TIMER)),
            at: None,
        }
    }

    fn set(&mut self, at: Option<Instant>) {
        if let Some(at) = at
            && self.at != Some(at)
        {
            self.sleep
                .as_mut()
                .reset(tokio::time::Instant::from_std(at));
        }
        self.at = at;
    }

    async fn elapsed(&mut self) {
        if self.at.is_none() {
            return std::future::pending().await;
        }
        self.sleep.as_mut().await;
        // A timer that has fired is set anew even to the same time.
        self.at = None;
    }
}
