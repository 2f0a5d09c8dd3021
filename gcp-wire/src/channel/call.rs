use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::Request;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use super::connect::Link;
use super::{Kind, Shared};
use crate::clock;
use crate::grpc::{EncodedBody, Event, ReadFault, Reader, RequestBody, frame, head_status};
use crate::headers;
use crate::method::{FromAnswer, Method};
use crate::rpc_metrics;
use crate::status::{Cause, Code, DecodeFault, Phase, Refusal, RpcError, TransportFault};

/// Requests below this many bytes are not worth compressing: a gzip stream has some twenty bytes of
/// its own, and one packet holds them either way. The value is the Java client's default.
const GZIP_FROM: usize = 240;

/// What is the same in all attempts at one call.
struct Call<'a> {
    shared: &'a Shared,
    method: &'static str,
    path: &'static str,
    routing: Option<http::HeaderValue>,
    body: EncodedBody,
    compressed: bool,
    given: Duration,
    deadline: Instant,
}

pub(super) async fn unary<Req, Res>(
    shared: &Shared,
    method: &Method<Req, Res>,
    routing: &str,
    body: EncodedBody,
    given: Duration,
) -> Result<Res, RpcError>
where
    Res: FromAnswer,
{
    let begun = clock::now();
    let name = method.name();
    // The barrier: whatever an answer contains, it must not take the driver down with it.
    let outcome = AssertUnwindSafe(async {
        let key = method.routing_key();
        let call = Call::new(
            shared,
            name,
            method.path(),
            key,
            routing,
            body,
            (begun, given),
        )?;
        decode(name, call.run().await?)
    })
    .catch_unwind()
    .await
    .unwrap_or_else(|_| Err(RpcError::new(name, Cause::Panicked)));
    rpc_metrics::rpc(name, &outcome, clock::now() - begun);
    outcome
}

/// Reads an answer. The text of an error names the field, and holds nothing of its value.
pub(super) fn decode<M: FromAnswer>(method: &'static str, bytes: Bytes) -> Result<M, RpcError> {
    M::from_answer(bytes).map_err(|fault| decode_error(method, fault))
}

/// An answer that cannot be read, which no code of the service says.
pub(super) fn decode_error(method: &'static str, fault: DecodeFault) -> RpcError {
    RpcError::new(
        method,
        Cause::Decode {
            fault,
            code: Code::Internal,
        },
    )
}

impl<'a> Call<'a> {
    fn new(
        shared: &'a Shared,
        method: &'static str,
        path: &'static str,
        key: &'static str,
        routing: &str,
        body: EncodedBody,
        (begun, given): (Instant, Duration),
    ) -> Result<Self, RpcError> {
        shared.expect_kind(Kind::Unary, method)?;
        let refused = |refusal| RpcError::new(method, Cause::Refused(refusal));
        let limit = shared.options.request_limit;
        if body.len() > limit {
            return Err(refused(Refusal::TooLarge {
                bytes: body.len(),
                limit,
            }));
        }
        let routing = match routing {
            "" => None,
            value => {
                let header = shared.head.routing(key, value);
                Some(header.ok_or_else(|| refused(Refusal::Header))?)
            }
        };
        let compressed = shared.options.gzip && body.len() >= GZIP_FROM;
        let body = if compressed { body.gzipped() } else { body };
        // A time that far away is none; a century keeps the arithmetic of the clock in range.
        let bounded = given.min(Duration::from_secs(100 * 365 * 86_400));
        let deadline = begun + bounded;
        Ok(Self {
            shared,
            method,
            path,
            routing,
            body,
            compressed,
            given,
            deadline,
        })
    }

    async fn run(&self) -> Result<Bytes, RpcError> {
        match self.attempt().await {
            Err(error)
                if error.is_server_unauthenticated() && self.shared.credentials.invalidate() =>
            {
                self.attempt().await
            }
            outcome => outcome,
        }
    }

    async fn attempt(&self) -> Result<Bytes, RpcError> {
        let slot = self.shared.slot();
        // One timer for all phases, which is only set where one of them has to wait.
        let mut timer = pin!(sleep_until(self.deadline));
        let place = match slot.free_place() {
            free @ Some(_) => free,
            None => {
                let turn = pin!(slot.place());
                self.within(Phase::Turn, timer.as_mut(), turn).await?
            }
        };
        let mut fresh = false;
        loop {
            // Asked for again in each round: the wait may have been long.
            let auth = pin!(self.shared.credentials.headers());
            let auth = self
                .within(Phase::Credentials, timer.as_mut(), auth)
                .await?
                .map_err(|error| RpcError::new(self.method, Cause::Credentials(error)))?;
            let link = match slot.ready_link() {
                Some(link) => link,
                None => {
                    let making = pin!(slot.link(&self.shared.connector));
                    self.within(Phase::Connection, timer.as_mut(), making)
                        .await?
                        .map_err(|error| RpcError::new(self.method, Cause::Connect(error)))?
                }
            };
            let received = link.meter.received();
            let answer = pin!(send(self.method, &link, self.request(&auth)?));
            let exchange = pin!(self.exchange(answer));
            let outcome = self.within(Phase::Answer, timer.as_mut(), exchange).await;
            match outcome {
                Ok(Err(error)) if error.is_not_taken() => {
                    slot.retire(&link);
                    if fresh {
                        return Err(error);
                    }
                    fresh = true;
                }
                Ok(outcome) => {
                    drop(place);
                    return outcome;
                }
                Err(error) => {
                    slot.handle_timeout(&link, received);
                    return Err(error);
                }
            }
        }
    }

    /// What `future` comes to, unless the call's time ends before.
    async fn within<F: Future>(
        &self,
        phase: Phase,
        mut timer: Pin<&mut Sleep>,
        mut future: Pin<&mut F>,
    ) -> Result<F::Output, RpcError> {
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            ready!(timer.as_mut().poll(context));
            let after = self.given;
            let cause = Cause::Timeout { after, phase };
            Poll::Ready(Err(RpcError::new(self.method, cause)))
        })
        .await
    }

    fn request(
        &self,
        auth: &crate::credentials::AuthHeaders,
    ) -> Result<Request<RequestBody>, RpcError> {
        let refused = |refusal| RpcError::new(self.method, Cause::Refused(refusal));
        let message = frame(&self.body, self.compressed).ok_or_else(|| {
            refused(Refusal::TooLarge {
                bytes: self.body.len(),
                limit: u32::MAX as usize,
            })
        })?;
        let left = self.deadline.saturating_duration_since(clock::now());
        let (routing, body) = (self.routing.clone(), RequestBody::Single(Some(message)));
        let mut request = self
            .shared
            .head
            .request(self.path, routing, Some(left), body)
            .ok_or_else(|| refused(Refusal::Header))?;
        let map = request.headers_mut();
        if self.compressed {
            map.insert(&headers::ENCODING, http::HeaderValue::from_static("gzip"));
        }
        auth.add_to(map);
        Ok(request)
    }

    /// Reads the answer, once it begins.
    async fn exchange(
        &self,
        answer: Pin<&mut impl Future<Output = Result<Answer, RpcError>>>,
    ) -> Result<Bytes, RpcError> {
        let mut reader = match answer.await? {
            Answer::Body(body) => Reader::new(body, self.shared.options.response_limit),
            Answer::End(Ok(())) => return Err(malformed(self.method, "it has no message")),
            Answer::End(Err(cause)) => return Err(RpcError::new(self.method, cause)),
        };
        let mut message = None;
        loop {
            let event = poll_fn(|context| reader.poll_event(context)).await;
            match event.map_err(|fault| read_error(self.method, fault))? {
                Event::Message(_) if message.is_some() => {
                    return Err(malformed(self.method, "it has more than one message"));
                }
                Event::Message(pieces) => message = Some(pieces.into_bytes()),
                Event::End(Err(cause)) => return Err(RpcError::new(self.method, cause)),
                Event::End(Ok(())) => {
                    return message.ok_or_else(|| malformed(self.method, "it has no message"));
                }
            }
        }
    }
}

/// The beginning of an answer.
pub(super) enum Answer {
    /// Messages follow.
    Body(Incoming),
    /// The status came at once.
    End(Result<(), Cause>),
}

/// Sends a request and waits for the headers of its answer.
pub(super) fn send(
    method: &'static str,
    link: &Link,
    request: Request<RequestBody>,
) -> impl Future<Output = Result<Answer, RpcError>> + Send + use<> {
    // The request is on its way from here on; awaiting only waits for the answer.
    let answer = link.sender.clone().try_send_request(request);
    async move {
        let response = answer.await.map_err(|error| {
            if error.message().is_some() {
                // The transport hands the request back: it was never written.
                RpcError::new(method, Cause::Transport(TransportFault::NotTaken))
            } else {
                RpcError::from_transport(method, error.into_error())
            }
        })?;
        let (head, body) = response.into_parts();
        if let Some(verdict) = head_status(&head.headers) {
            return Ok(Answer::End(verdict));
        }
        let grpc = head
            .headers
            .get(http::header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        if head.status.as_u16() == 200 && grpc {
            Ok(Answer::Body(body))
        } else {
            Ok(Answer::End(Err(Cause::Http {
                status: head.status.as_u16(),
            })))
        }
    }
}

pub(super) fn read_error(method: &'static str, fault: ReadFault<hyper::Error>) -> RpcError {
    match fault {
        ReadFault::Transport(error) => RpcError::from_transport(method, error).after_answer_began(),
        ReadFault::Decode(fault) => decode_error(method, fault),
        ReadFault::NoStatus => RpcError::new(method, Cause::Transport(TransportFault::NoStatus)),
    }
}

fn malformed(method: &'static str, what: &str) -> RpcError {
    decode_error(method, DecodeFault::Malformed(what.to_owned()))
}
