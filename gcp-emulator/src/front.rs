//! What every call passes before its service: recording, routing header, faults.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::runtime::Handle;
use tonic::metadata::{KeyAndValueRef, MetadataMap};
use tonic::{Request, Response, Status};

use crate::call::{Body, Call};
use crate::connection::{ConnectionNumber, Docket, Sentence};
use crate::fault::{Answer, Decision, Fault};
use crate::hub::{Core, Envelope, Hub};
use crate::method::Method;
use crate::pubsub::state::StreamId;
use crate::routing;
use crate::time::Time;

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

    /// Serves a unary call: `describe` says what is recorded of it, `serve` does it.
    pub(crate) async fn unary<M, R>(
        &self,
        method: Method,
        request: Request<M>,
        describe: impl FnOnce(&M) -> Body,
        serve: impl FnOnce(&mut Core, Time, M) -> Result<R, Status> + Send + 'static,
    ) -> Result<Response<R>, Status>
    where
        M: Message + Send + 'static,
        R: Default + Send + 'static,
    {
        let docket = docket(&request);
        let envelope = envelope(&request);
        let message = request.into_inner();
        let body = describe(&message);
        let call = self.arrive(method, envelope, message.encoded_len(), body)?;
        match self.hub.faults().decide(&call) {
            Decision::Serve => self.hub.with(|core, now| serve(core, now, message)),
            Decision::Meet(fault) => {
                let hub = Arc::clone(&self.hub);
                let act = move || hub.with(|core, now| serve(core, now, message));
                self.meet(fault, &docket, act).await
            }
        }
        .map(Response::new)
    }

    /// Records a call that opens something, and checks its routing header.
    pub(crate) fn arrive(
        &self,
        method: Method,
        envelope: Envelope,
        encoded_len: usize,
        body: Body,
    ) -> Result<Arc<Call>, Status> {
        let call = self.hub.arrive(method, envelope, encoded_len, body, None);
        if self.hub.options().require_routing_header {
            routing::check(&call)?;
        }
        Ok(call)
    }

    /// Records a later request on a pull stream.
    pub(crate) fn arrive_on_stream(
        &self,
        connection: u64,
        stream: StreamId,
        nth: u64,
        encoded_len: usize,
        body: Body,
    ) -> Arc<Call> {
        let envelope = Envelope {
            metadata: BTreeMap::new(),
            connection,
        };
        let place = Some((stream, nth));
        self.hub
            .arrive(Method::StreamingPull, envelope, encoded_len, body, place)
    }

    /// Lets a call meet its fault; `act` is what it would have done.
    pub(crate) async fn meet<R>(
        &self,
        fault: Fault,
        docket: &Docket,
        act: impl FnOnce() -> Result<R, Status> + Send + 'static,
    ) -> Result<R, Status>
    where
        R: Default + Send + 'static,
    {
        match fault {
            Fault::Pass => act(),
            Fault::Delay(span) => self.later(span, act).await,
            Fault::OkWithoutEffect => Ok(R::default()),
            Fault::AfterEffect(after) => {
                let answer = act();
                match *after {
                    Fault::Pass => answer,
                    Fault::Delay(span) => {
                        tokio::time::sleep(span).await;
                        answer
                    }
                    Fault::OkWithoutEffect => Ok(R::default()),
                    other => refuse(other, docket).await,
                }
            }
            other => refuse(other, docket).await,
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

/// Carries out a fault that leaves a call without its own answer.
async fn refuse<R>(fault: Fault, docket: &Docket) -> Result<R, Status> {
    match verdict(&fault) {
        Verdict::Status(status) => Err(status),
        Verdict::Sentence(sentence) => {
            docket.pass(sentence);
            // Never seen by a client: the transport carries out the sentence instead.
            Err(Status::unavailable("sentenced"))
        }
        Verdict::Silence => std::future::pending().await,
        Verdict::End => Err(Status::internal(format!(
            "{fault:?} is for pull streams only"
        ))),
    }
}

/// How a call or a stream ends under a fault.
#[derive(Debug)]
pub(crate) enum Verdict {
    Status(Status),
    Sentence(Sentence),
    /// Not at all.
    Silence,
    /// With OK, which only a stream can.
    End,
}

pub(crate) fn verdict(fault: &Fault) -> Verdict {
    match fault {
        Fault::Answer(answer) => Verdict::Status(status(answer)),
        Fault::Never => Verdict::Silence,
        Fault::ResetStream(code) => Verdict::Sentence(Sentence::Reset(*code)),
        Fault::GoAway(code) => Verdict::Sentence(Sentence::GoAway(*code)),
        Fault::GoAwayUnseen(code) => Verdict::Sentence(Sentence::GoAwayUnseen(*code)),
        Fault::DropConnection => Verdict::Sentence(Sentence::Sever),
        Fault::Silence => Verdict::Sentence(Sentence::Silence),
        Fault::EndStream => Verdict::End,
        Fault::Pass
        | Fault::Delay(_)
        | Fault::AnswerWith(_)
        | Fault::OkWithoutEffect
        | Fault::AfterEffect(_)
        | Fault::AfterResponses(..)
        | Fault::StopReading(_)
        | Fault::Redeliver(_) => {
            Verdict::Status(Status::internal(format!("{fault:?} does not apply here")))
        }
    }
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
