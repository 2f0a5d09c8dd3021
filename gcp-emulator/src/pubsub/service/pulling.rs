//! Streaming pull: one task reads the requests, the response body polls the machine.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::task::AbortHandle;
use tonic::{Request, Status, Streaming};

use crate::connection::Docket;
use crate::fault::{After, Course, End};
use crate::front::{self, Front, Refused};
use crate::hub::{Core, Hub};
use crate::method::Method;
use crate::pubsub::proto::{ReceivedMessage, StreamingPullRequest, StreamingPullResponse};
use crate::pubsub::state::{StreamId, StreamPoll};
use crate::time::Time;

/// The responses of a pull stream. Dropping it closes the stream.
#[derive(Debug)]
pub(crate) struct Pulling {
    hub: Arc<Hub>,
    id: StreamId,
    subscription: String,
    docket: Docket,
    reader: AbortHandle,
    /// How many responses may still leave, and what happens then.
    script: Option<(u64, End)>,
    /// The first response with messages does not leave, and this happens instead.
    lost: Option<End>,
    over: bool,
}

/// Opens a stream, unless the plan has other ideas.
pub(super) async fn open(
    front: &Front,
    request: Request<Streaming<StreamingPullRequest>>,
) -> Result<Pulling, Status> {
    let docket = front::docket(&request);
    let envelope = front::envelope(&request);
    let connection = envelope.connection;
    let mut requests = request.into_inner();
    let Some(first) = requests.message().await? else {
        return Err(Status::invalid_argument(
            "The stream ended before its first request.",
        ));
    };
    let call = front.arrive(Method::StreamingPull, envelope, &first)?;
    let mut script = None;
    let mut lost = None;
    let mut reads = u64::MAX;
    match front.hub().faults().decide(&call) {
        Course::Serve | Course::AfterEffect(After::Answer) => {}
        // Served late, or with its first responses held back: for a stream that is the same.
        Course::Delay(span) | Course::AfterEffect(After::Delay(span)) => {
            tokio::time::sleep(span).await;
        }
        Course::OkWithoutEffect | Course::AfterEffect(After::OkWithoutEffect) => {
            script = Some((0, End::Clean));
        }
        Course::AfterResponses(responses, end) => script = Some((responses, end)),
        Course::AfterEffect(After::End(end)) => lost = Some(end),
        Course::StopReading(requests) => reads = requests.max(1),
        Course::End(End::Clean) => script = Some((0, End::Clean)),
        Course::End(end) => return front::finish(end, &docket).await,
    }
    let hub = Arc::clone(front.hub());
    let id = hub
        .with(|core, now| core.pubsub.open_stream(now, &first))
        .map_err(Refused::status)?;
    let reader = Reader {
        front: front.clone(),
        id,
        connection,
        reads,
    };
    let reader = front.runtime().spawn(reader.read(requests)).abort_handle();
    Ok(Pulling {
        hub,
        id,
        subscription: first.subscription,
        docket,
        reader,
        script,
        lost,
        over: false,
    })
}

/// Reads the later requests of a stream.
struct Reader {
    front: Front,
    id: StreamId,
    connection: u64,
    reads: u64,
}

impl Reader {
    async fn read(self, mut requests: Streaming<StreamingPullRequest>) {
        let hub = self.front.hub();
        for nth in 1.. {
            if nth >= self.reads {
                // The window of the client fills up; only the end of the stream frees this task.
                std::future::pending::<()>().await;
            }
            match requests.message().await {
                Ok(Some(request)) => self.take(nth, &request),
                Ok(None) => {
                    hub.with(|core, now| core.pubsub.handle_half_close(now, self.id));
                    return;
                }
                // Reset or cut: the response side ends by itself and closes the stream.
                Err(error) => {
                    tracing::debug!(stream = self.id.number(), %error, "pull stream broke");
                    return;
                }
            }
        }
    }

    fn take(&self, nth: u64, request: &StreamingPullRequest) {
        let hub = self.front.hub();
        let call = self
            .front
            .arrive_on_stream(self.connection, self.id, nth, request);
        let serve = || {
            hub.with(|core, now| {
                // What is wrong with it is told to the client by the stream's end.
                drop(core.pubsub.handle_stream_request(now, self.id, request));
            });
        };
        match hub.faults().decide(&call) {
            // A pause would hold up the requests behind it: later requests are never late.
            Course::Serve
            | Course::Delay(_)
            | Course::StopReading(_)
            | Course::AfterResponses(..)
            | Course::AfterEffect(After::Answer | After::Delay(_) | After::OkWithoutEffect) => {
                serve();
            }
            Course::OkWithoutEffect => {}
            Course::AfterEffect(After::End(end)) => {
                serve();
                hub.with(|core, _| core.script(self.id, end));
            }
            Course::End(end) => hub.with(|core, _| core.script(self.id, end)),
        }
    }
}

impl Stream for Pulling {
    type Item = Result<StreamingPullResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.over {
            return Poll::Ready(None);
        }
        let scripted = this.hub.with(|core, _| core.take_script(this.id));
        let exhausted = this
            .script
            .take_if(|(left, _)| *left == 0)
            .map(|(_, end)| end);
        if let Some(end) = scripted.or(exhausted) {
            return this.finish(end);
        }
        let polled = this.hub.with(|core, now| {
            let polled = core.pubsub.poll_stream(now, this.id);
            match &polled {
                StreamPoll::Response(response) => {
                    let messages = &response.received_messages;
                    plan_redeliveries(&this.hub, core, now, &this.subscription, messages);
                }
                StreamPoll::Idle => core.wait(this.id, cx.waker()),
                StreamPoll::End(_) => {}
            }
            polled
        });
        match polled {
            StreamPoll::Response(response) => {
                let carries = !response.received_messages.is_empty();
                if let Some(end) = this.lost.take_if(|_| carries) {
                    return this.finish(end);
                }
                if let Some((left, _)) = &mut this.script {
                    *left -= 1;
                }
                Poll::Ready(Some(Ok(*response)))
            }
            StreamPoll::Idle => Poll::Pending,
            StreamPoll::End(refusal) => {
                this.over = true;
                Poll::Ready(refusal.map(|refusal| Err(refusal.status())))
            }
        }
    }
}

impl Pulling {
    fn finish(&mut self, end: End) -> Poll<Option<Result<StreamingPullResponse, Status>>> {
        self.over = true;
        match end {
            End::Status(answer) => Poll::Ready(Some(Err(front::status(&answer)))),
            End::Sentence(sentence) => {
                Poll::Ready(Some(Err(front::sentenced(sentence, &self.docket))))
            }
            End::Clean => Poll::Ready(None),
            End::Never => {
                // Nothing wakes it again: only the client can end the stream.
                self.over = false;
                self.script = Some((0, End::Never));
                Poll::Pending
            }
        }
    }
}

impl Drop for Pulling {
    fn drop(&mut self) {
        self.reader.abort();
        self.hub.with(|core, now| {
            core.forget(self.id);
            core.pubsub.close_stream(now, self.id);
        });
    }
}

/// Carries out the plan's rules about deliveries.
pub(super) fn plan_redeliveries(
    hub: &Hub,
    core: &mut Core,
    now: Time,
    subscription: &str,
    messages: &[ReceivedMessage],
) {
    if messages.is_empty() || !hub.faults().watches_deliveries() {
        return;
    }
    for got in messages {
        let Some(after) = hub.faults().redelivery(subscription, got) else {
            continue;
        };
        if let Some(message) = &got.message {
            core.pubsub
                .plan_early_redelivery(now, subscription, &message.message_id, after);
        }
    }
}
