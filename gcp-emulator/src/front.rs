//! What every call passes before its service: recording, routing header, faults.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::runtime::Handle;
use tonic::metadata::{KeyAndValueRef, MetadataMap};
use tonic::{Request, Response, Status};

use crate::call::{Call, Recorded};
use crate::connection::{ConnectionNumber, Docket};
use crate::fault::{After, Answer, Course, End, Sentence};
use crate::hub::{Core, Envelope, Hub};
use crate::method::Method;
use crate::pubsub::state::StreamId;
use crate::routing;
use crate::time::Time;

/// What a machine refuses, as a status.
pub(crate) trait Refused {
    fn status(self) -> Status;
}

/// The way into the machines.
#[derive(Clone)]
pub(crate) struct Front {
    hub: Arc<Hub>,
    runtime: Handle,
}

impl Front {
    pub(crate) const fn new(hub: Arc<Hub>, runtime: Handle) -> Self {
        Self { hub, runtime }
    }

    pub(crate) const fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(crate) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Serves a unary call: records it, and does it unless the plan has other ideas.
    pub(crate) async fn unary<M, R, E>(
        &self,
        method: Method,
        request: Request<M>,
        serve: impl FnOnce(&mut Core, Time, M) -> Result<R, E> + Send + 'static,
    ) -> Result<Response<R>, Status>
    where
        M: Message + Recorded + 'static,
        R: Default + Send + 'static,
        E: Refused,
    {
        let docket = docket(&request);
        let envelope = envelope(&request);
        let message = request.into_inner();
        let call = self.arrive(method, envelope, &message)?;
        let hub = Arc::clone(&self.hub);
        let act = move || {
            hub.with(|core, now| serve(core, now, message))
                .map_err(E::status)
        };
        let course = self.hub.faults().decide(&call);
        self.go(course, &docket, act).await.map(Response::new)
    }

    /// Records a call and checks its routing header.
    pub(crate) fn arrive<M: Message + Recorded>(
        &self,
        method: Method,
        envelope: Envelope,
        message: &M,
    ) -> Result<Arc<Call>, Status> {
        let call = self.hub.arrive(
            method,
            envelope,
            message.encoded_len(),
            message.body(),
            None,
        );
        if self.hub.options().require_routing_header {
            routing::check(&call)?;
        }
        Ok(call)
    }

    /// Records a later request on a pull stream.
    pub(crate) fn arrive_on_stream<M: Message + Recorded>(
        &self,
        connection: u64,
        stream: StreamId,
        nth: u64,
        message: &M,
    ) -> Arc<Call> {
        let envelope = Envelope {
            metadata: BTreeMap::new(),
            connection,
        };
        let (size, body) = (message.encoded_len(), message.body());
        self.hub.arrive(
            Method::StreamingPull,
            envelope,
            size,
            body,
            Some((stream, nth)),
        )
    }

    /// Takes a unary call through its course; `act` is what it does.
    pub(crate) async fn go<R>(
        &self,
        course: Course,
        docket: &Docket,
        act: impl FnOnce() -> Result<R, Status> + Send + 'static,
    ) -> Result<R, Status>
    where
        R: Default + Send + 'static,
    {
        match course {
            // How many requests of a unary call are read makes no difference.
            Course::Serve | Course::StopReading(_) => act(),
            Course::Delay(span) => self.later(span, act).await,
            Course::OkWithoutEffect => Ok(R::default()),
            Course::End(end) => finish(end, docket).await,
            Course::AfterResponses(0, end) => finish(end, docket).await,
            // The only response of a unary call is its last.
            Course::AfterResponses(..) => act(),
            Course::AfterEffect(after) => {
                let answer = act();
                match after {
                    After::Answer => answer,
                    After::Delay(span) => {
                        tokio::time::sleep(span).await;
                        answer
                    }
                    After::OkWithoutEffect => Ok(R::default()),
                    After::End(end) => finish(end, docket).await,
                }
            }
        }
    }

    /// Acts after a while, also when the client has given up by then: a server that works on a
    /// request does not notice.
    async fn later<R: Send + 'static>(
        &self,
        span: Duration,
        act: impl FnOnce() -> Result<R, Status> + Send + 'static,
    ) -> Result<R, Status> {
        let acting = self.runtime.spawn(async move {
            tokio::time::sleep(span).await;
            act()
        });
        acting
            .await
            .unwrap_or_else(|_| Err(Status::internal("the delayed call panicked")))
    }
}

/// Ends a unary call without its own answer.
pub(crate) async fn finish<R>(end: End, docket: &Docket) -> Result<R, Status> {
    match end {
        End::Status(answer) => Err(status(&answer)),
        End::Sentence(sentence) => Err(sentenced(sentence, docket)),
        End::Never => std::future::pending().await,
        End::Clean => Err(Status::internal("only a stream can end with OK")),
    }
}

/// Leaves a sentence to the transport. The status is never seen by a client.
pub(crate) fn sentenced(sentence: Sentence, docket: &Docket) -> Status {
    docket.pass(sentence);
    Status::unavailable("sentenced")
}

/// A scripted answer on the wire.
pub(crate) fn status(answer: &Answer) -> Status {
    let code = tonic::Code::from_i32(answer.code.number());
    Status::with_details(code, &answer.message, answer.details.clone())
}

/// What the connection left for the services.
pub(crate) fn docket<M>(request: &Request<M>) -> Docket {
    request
        .extensions()
        .get::<Docket>()
        .cloned()
        .unwrap_or_default()
}

pub(crate) fn envelope<M>(request: &Request<M>) -> Envelope {
    let connection = request
        .extensions()
        .get::<ConnectionNumber>()
        .map_or(0, |number| number.0);
    Envelope {
        metadata: ascii(request.metadata()),
        connection,
    }
}

fn ascii(metadata: &MetadataMap) -> BTreeMap<String, String> {
    metadata
        .iter()
        .filter_map(|entry| match entry {
            KeyAndValueRef::Ascii(key, value) => {
                Some((key.as_str().to_owned(), value.to_str().ok()?.to_owned()))
            }
            KeyAndValueRef::Binary(..) => None,
        })
        .collect()
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}
