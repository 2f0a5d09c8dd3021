//! From a record to what the machine takes.

use std::time::SystemTime;

use connector_core::{Cause, DestinationResolver, Encode, Rejected, RejectedReason, Resolution};
use gcp_wire::QueueName;

use crate::error::SinkError;
use crate::machine::Create;
use crate::naming::{Named, Naming, TaskKey, hashed, minted};
use crate::request::Request;
use crate::state::CONNECTOR;
use crate::task::{AllowedHosts, Task, TaskError};

/// What makes a task of a record: the host's closures and checks, outside any lock.
pub(crate) struct Preparation<R> {
    pub(crate) encode: Box<dyn Encode<R, Task>>,
    pub(crate) resolve: Box<dyn DestinationResolver<R, QueueName>>,
    pub(crate) naming: Naming<R>,
    pub(crate) hosts: Option<AllowedHosts>,
    /// The largest encoded task in bytes.
    pub(crate) largest: Option<usize>,
}

/// What a record became.
#[derive(Debug)]
pub(super) enum Prepared {
    Create(Create),
    Reject(Box<Rejected>),
}

impl Prepared {
    /// The bytes it holds until its verdict.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Create(create) => create.request.bytes.len(),
            Self::Reject(rejected) => rejected.payload.as_ref().map_or(0, bytes::Bytes::len),
        }
    }
}

impl<R> Preparation<R> {
    /// Resolves, encodes, names and checks; answers nothing for a record to skip. An error is the
    /// configuration's, and ends the sink.
    pub(super) fn prepare(
        &mut self,
        record: &R,
        now: SystemTime,
    ) -> Result<Option<Prepared>, SinkError> {
        let queue = match self.resolve.resolve(record) {
            Resolution::To(queue) => queue,
            Resolution::Invalid(cause) => {
                return Ok(Some(reject(
                    "unresolved",
                    RejectedReason::Destination,
                    cause,
                )));
            }
            // Whatever else a resolver may come to say, it did not name a queue.
            Resolution::Nothing | _ => return Err(SinkError::NoDestination),
        };
        let task = match self.encode.encode(record) {
            Ok(Some(task)) => task,
            Ok(None) => return Ok(None),
            Err(error) => {
                let cause = Cause::from(error);
                return Ok(Some(reject(
                    queue.as_str(),
                    RejectedReason::Encoding,
                    cause,
                )));
            }
        };
        let (id, named) = match &mut self.naming {
            Naming::ByService => (None, Named::ByService),
            Naming::Minted => (Some(minted()), Named::Minted),
            Naming::ByKey(key) => match key(record) {
                TaskKey::Key(key) if !key.is_empty() => (Some(hashed(&key)), Named::ByKey),
                TaskKey::Key(_) | TaskKey::Missing => return Err(SinkError::NoKey { queue }),
                TaskKey::Failed(cause) => {
                    let unnamed = task.into_request(&queue, String::new());
                    return Ok(Some(reject_task(
                        &queue,
                        unnamed,
                        RejectedReason::Encoding,
                        cause,
                    )));
                }
            },
        };
        let checked = task.check(now, self.hosts.as_ref());
        // Ids of our own making are 32 or 64 hexadecimal characters, which need no check.
        let name = id.map_or_else(String::new, |id| format!("{}/tasks/{id}", queue.as_str()));
        let request = task.into_request(&queue, name);
        let bytes = request.task_len();
        let checked = checked.and_then(|()| match self.largest {
            Some(limit) if bytes > limit => Err(TaskError::TooLarge { bytes, limit }),
            Some(_) | None => Ok(()),
        });
        Ok(Some(match checked {
            Ok(()) => Prepared::Create(Create {
                queue,
                request,
                named,
            }),
            Err(error) => {
                let reason = if matches!(error, TaskError::HostNotAllowed { .. }) {
                    RejectedReason::Destination
                } else {
                    RejectedReason::Limit
                };
                reject_task(&queue, request, reason, Cause::new(error))
            }
        }))
    }
}

fn reject(destination: &str, reason: RejectedReason, cause: Cause) -> Prepared {
    Prepared::Reject(Box::new(
        Rejected::new(CONNECTOR, destination, reason).source(cause),
    ))
}

fn reject_task(
    queue: &QueueName,
    request: Request,
    reason: RejectedReason,
    cause: Cause,
) -> Prepared {
    let rejected = Rejected::new(CONNECTOR, queue.as_str(), reason)
        .payload(request.task())
        .source(cause);
    Prepared::Reject(Box::new(rejected))
}
