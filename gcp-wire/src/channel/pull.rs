use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout_at};

use super::call::{Answer, decode_error, read_error, send};
use super::connect::Link;
use super::{Kind, Shared};
use crate::clock;
use crate::grpc::{EncodedBody, Event, Reader, RequestBody, frame};
use crate::method::STREAMING_PULL;
use crate::proto::pubsub::StreamingPullRequest;
use crate::pulled::PulledResponse;
use crate::rpc_metrics;
use crate::status::{Cause, Phase, Refusal, RpcError};

const METHOD: &str = "StreamingPull";

/// The longest time that opening a stream waits for credentials, beyond the connect timeout. A
/// token endpoint answers within a few seconds, or is retried by its library for some more.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(20);

/// Requests that wait to be written. A stream sends a ping every half minute and rarely a changed
/// deadline, so a full queue means that the connection does not take anything any more.
const QUEUED_REQUESTS: usize = 16;

/// Why a request could not be queued on a pull stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PullSendError {
    /// The connection takes nothing: earlier requests still wait. Treat it like silence.
    #[error("the pull stream takes no more requests at the moment; nothing was sent")]
    Full,
    /// The stream has ended, or was half-closed.
    #[error("the pull stream is closed; nothing was sent")]
    Closed,
}

/// One open streaming pull. Dropping it resets the stream.
pub struct PullStream {
    shared: Arc<Shared>,
    slot: usize,
    first: StreamingPullRequest,
    link: Link,
    requests: Option<mpsc::Sender<crate::grpc::Outgoing>>,
    state: State,
    opened: bool,
    /// Whether a response has come, after which the stream is not opened again by itself.
    answered: bool,
    /// Whether the credentials were renewed for this stream already.
    renewed: bool,
    begun: Instant,
    _place: OwnedSemaphorePermit,
}

enum State {
    /// The request is sent, the headers of the answer have not come.
    Opening(BoxFuture<'static, Result<Answer, RpcError>>),
    Reading(Box<Reader<Incoming>>),
    /// The server refused the credentials; the stream is opened again with fresh ones.
    Renewing(BoxFuture<'static, Result<Begun, RpcError>>),
    Ended,
}

/// A stream on its connection.
struct Begun {
    link: Link,
    requests: mpsc::Sender<crate::grpc::Outgoing>,
    answer: BoxFuture<'static, Result<Answer, RpcError>>,
}

pub(super) async fn open(
    shared: &Arc<Shared>,
    first: StreamingPullRequest,
) -> Result<PullStream, RpcError> {
    shared.expect_kind(Kind::Pull, METHOD)?;
    let begun = clock::now();
    let given = shared
        .options
        .connect_timeout
        .saturating_add(CREDENTIALS_TIMEOUT);
    let deadline = begun + given;
    let slot = shared.slot();
    let index = shared
        .slots
        .iter()
        .position(|other| std::ptr::eq(other, slot))
        .unwrap_or_default();
    let opening = async {
        let place = within(deadline, given, Phase::Turn, slot.place()).await?;
        // Never closed, so always a place.
        let place = place.ok_or_else(|| timeout(given, Phase::Turn))?;
        let begun = begin(shared, index, &first, deadline, given).await?;
        Ok((place, begun))
    };
    let (
        place,
        Begun {
            link,
            requests,
            answer,
        },
    ) = match opening.await {
        Ok(opened) => opened,
        Err(error) => {
            let outcome = Err(error);
            rpc_metrics::rpc(METHOD, &outcome, clock::now() - begun);
            return outcome;
        }
    };
    Ok(PullStream {
        shared: Arc::clone(shared),
        slot: index,
        first,
        link,
        requests: Some(requests),
        state: State::Opening(answer),
        opened: false,
        answered: false,
        renewed: false,
        begun,
        _place: place,
    })
}

async fn begin(
    shared: &Shared,
    slot: usize,
    first: &StreamingPullRequest,
    deadline: Instant,
    given: Duration,
) -> Result<Begun, RpcError> {
    // The barrier: a source of credentials that panics must not take the stream's task with it.
    AssertUnwindSafe(begin_within(shared, slot, first, deadline, given))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(RpcError::new(METHOD, Cause::Panicked)))
}

async fn begin_within(
    shared: &Shared,
    slot: usize,
    first: &StreamingPullRequest,
    deadline: Instant,
    given: Duration,
) -> Result<Begun, RpcError> {
    let failed = |cause| RpcError::new(METHOD, cause);
    let auth = within(
        deadline,
        given,
        Phase::Credentials,
        shared.credentials.headers(),
    )
    .await?
    .map_err(|error| failed(Cause::Credentials(error)))?;
    let making = shared.slots[slot].link(&shared.connector);
    let link = within(deadline, given, Phase::Connection, making)
        .await?
        .map_err(|error| failed(Cause::Connect(error)))?;
    let (requests, queue) = mpsc::channel(QUEUED_REQUESTS);
    // Queued before the headers are sent, or an idle server and we would wait for each other.
    enqueue(&requests, first).map_err(|_| failed(Cause::Refused(Refusal::Header)))?;
    let (head, path) = (&shared.head, STREAMING_PULL.path());
    let routing = head.routing(STREAMING_PULL.routing_key(), &first.subscription);
    let mut request = head
        .request(path, routing, None, RequestBody::Queue(queue))
        .ok_or_else(|| failed(Cause::Refused(Refusal::Header)))?;
    auth.add_to(request.headers_mut());
    let answer = Box::pin(send(METHOD, &link, request));
    Ok(Begun {
        link,
        requests,
        answer,
    })
}

async fn within<F: Future>(
    deadline: Instant,
    given: Duration,
    phase: Phase,
    future: F,
) -> Result<F::Output, RpcError> {
    timeout_at(deadline, future)
        .await
        .map_err(|_| timeout(given, phase))
}

fn timeout(after: Duration, phase: Phase) -> RpcError {
    RpcError::new(METHOD, Cause::Timeout { after, phase })
}

fn enqueue(
    requests: &mpsc::Sender<crate::grpc::Outgoing>,
    request: &StreamingPullRequest,
) -> Result<(), PullSendError> {
    let message = frame(&EncodedBody::encode(request), false).ok_or(PullSendError::Full)?;
    requests.try_send(message).map_err(|error| match error {
        mpsc::error::TrySendError::Full(_) => PullSendError::Full,
        mpsc::error::TrySendError::Closed(_) => PullSendError::Closed,
    })
}

impl PullStream {
    /// The next response; `None` when the server ended the stream without an error.
    ///
    /// Waits without a limit: an idle subscription sends nothing. Watch for silence with a ping.
    /// When the server refuses the credentials before its first response, they are invalidated and
    /// the stream is opened once more with the same first request.
    ///
    /// # Errors
    ///
    /// An [`RpcError`], once; `None` from then on. A response that cannot be decoded ends the
    /// stream, and [`RpcError::decode_fault`] says why.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing; call again to go on.
    pub async fn next(&mut self) -> Result<Option<PulledResponse>, RpcError> {
        poll_fn(|context| self.poll_response(context)).await
    }

    /// As [`next`](Self::next), for callers that poll.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub fn poll_response(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<PulledResponse>, RpcError>> {
        loop {
            match &mut self.state {
                State::Opening(answer) => match ready!(answer.as_mut().poll(context)) {
                    Ok(Answer::Body(body)) => {
                        self.opened = true;
                        let limit = self.shared.options.response_limit;
                        self.state = State::Reading(Box::new(Reader::new(body, limit)));
                    }
                    Ok(Answer::End(Ok(()))) => return Poll::Ready(self.end(Ok(None))),
                    Ok(Answer::End(Err(cause))) => {
                        let error = RpcError::new(METHOD, cause);
                        if let Some(error) = self.try_renew(error) {
                            return Poll::Ready(self.end(Err(error)));
                        }
                    }
                    Err(error) => return Poll::Ready(self.end(Err(error))),
                },
                State::Renewing(begun) => match ready!(begun.as_mut().poll(context)) {
                    Ok(Begun {
                        link,
                        requests,
                        answer,
                    }) => {
                        self.link = link;
                        // A half-close meanwhile holds for the new stream as well.
                        self.requests = self.requests.take().map(|_| requests);
                        self.state = State::Opening(answer);
                    }
                    Err(error) => return Poll::Ready(self.end(Err(error))),
                },
                State::Reading(reader) => match ready!(reader.poll_event(context)) {
                    Ok(Event::Message(pieces)) => {
                        self.answered = true;
                        // The barrier: whatever a response contains, it must not take the
                        // stream's task down with it.
                        return Poll::Ready(match catch_unwind(|| PulledResponse::read(pieces)) {
                            Ok(Ok(response)) => Ok(Some(response)),
                            Ok(Err(fault)) => self.end(Err(decode_error(METHOD, fault))),
                            Err(_) => self.end(Err(RpcError::new(METHOD, Cause::Panicked))),
                        });
                    }
                    Ok(Event::End(Ok(()))) => return Poll::Ready(self.end(Ok(None))),
                    Ok(Event::End(Err(cause))) => {
                        let error = RpcError::new(METHOD, cause);
                        if let Some(error) = self.try_renew(error) {
                            return Poll::Ready(self.end(Err(error)));
                        }
                    }
                    Err(fault) => return Poll::Ready(self.end(Err(read_error(METHOD, fault)))),
                },
                State::Ended => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Whether the server has begun to answer: its headers came.
    ///
    /// An idle subscription may send none for long; a stream that is not open yet is no fault.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.opened
    }

    /// Whether everything had been read that had arrived on the stream's connection, when the
    /// connection last looked. While it says no, a stream that has no response at the moment may
    /// have one waiting.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.link.meter.is_dry()
    }

    /// The bytes that the stream's connection has received so far, for all of its streams and below
    /// TLS. They begin anew with a new connection.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.link.meter.received()
    }

    /// The flow-control window of the stream's connection, in bytes: what the server may send on it,
    /// for all of its streams, before it is read.
    #[must_use]
    pub fn connection_window(&self) -> u32 {
        self.shared.connector.connection_window()
    }

    /// Sends an empty request, which keeps the stream from being closed as idle and is answered.
    ///
    /// # Errors
    ///
    /// A [`PullSendError`]; nothing was sent.
    pub fn ping(&self) -> Result<(), PullSendError> {
        self.send(&StreamingPullRequest::default())
    }

    /// Queues a request. After the first one the service allows nothing but an empty ping or a
    /// changed `stream_ack_deadline_seconds`.
    ///
    /// # Errors
    ///
    /// A [`PullSendError`]; nothing was sent.
    pub fn send(&self, request: &StreamingPullRequest) -> Result<(), PullSendError> {
        match &self.requests {
            Some(requests) => enqueue(requests, request),
            None => Err(PullSendError::Closed),
        }
    }

    /// Tells the server that no more requests come. It ends the stream; what it sends until then
    /// is still read with [`next`](Self::next).
    pub fn half_close(&mut self) {
        self.requests = None;
    }

    /// Keeps new streams off this stream's connection, which the caller takes for dead: its
    /// watchdog ran out. The next stream gets another connection.
    pub fn retire_connection(&self) {
        self.shared.slots[self.slot].retire(&self.link);
    }

    /// Opens the stream again with fresh credentials, if that is what `error` calls for.
    fn try_renew(&mut self, error: RpcError) -> Option<RpcError> {
        let renewable = error.is_server_unauthenticated() && !self.answered && !self.renewed;
        if !renewable || !self.shared.credentials.invalidate() {
            return Some(error);
        }
        self.renewed = true;
        let (shared, slot, first) = (Arc::clone(&self.shared), self.slot, self.first.clone());
        let given = shared
            .options
            .connect_timeout
            .saturating_add(CREDENTIALS_TIMEOUT);
        self.state = State::Renewing(Box::pin(async move {
            begin(&shared, slot, &first, clock::now() + given, given).await
        }));
        None
    }

    fn end(
        &mut self,
        outcome: Result<Option<PulledResponse>, RpcError>,
    ) -> Result<Option<PulledResponse>, RpcError> {
        self.state = State::Ended;
        self.requests = None;
        if let Err(error) = &outcome
            && error.is_server_unauthenticated()
        {
            self.shared.credentials.invalidate();
        }
        rpc_metrics::rpc(METHOD, &outcome, clock::now() - self.begun);
        outcome
    }
}

impl fmt::Debug for PullStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Opening(_) => "opening",
            State::Reading(_) => "reading",
            State::Renewing(_) => "renewing",
            State::Ended => "ended",
        };
        f.debug_struct("PullStream")
            .field("subscription", &self.first.subscription)
            .field("state", &state)
            .field("connection", &self.link.number)
            .finish_non_exhaustive()
    }
}
