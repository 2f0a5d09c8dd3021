//! Whole tasks, encoded by somebody else.

use std::time::SystemTime;

use bytes::{Buf, Bytes, BytesMut};
use gcp_wire::proto::tasks::{Task, task::MessageType};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};

use super::dispatch::Dispatch;
use super::hosts::AllowedHosts;
use super::{AppEngineTask, HttpTask, TaskError};

/// `name` of `Task`.
const NAME: u32 = 1;

/// A whole `google.cloud.tasks.v2.Task`, already encoded as protobuf: for what the other kinds of
/// task have no method for, and for the payloads of rejected records.
///
/// It is sent as it is, byte for byte, with fields that this crate does not know. What it does know
/// is checked by the rules of [`HttpTask`] and [`AppEngineTask`]. Nothing is merged and no
/// Content-Type is added.
///
/// A task must leave its name unset, since a name contains the queue and is the sink's to give:
/// with a name it is a rejection. [`unnamed`](Self::unnamed) takes it off a task that had one.
///
/// ```
/// # use cloudtasks_sink::TaskError;
/// use cloudtasks_sink::FullTask;
///
/// // http_request { url: "http://h/" }
/// let task = FullTask::decode(&b"\x1a\x0b\x0a\x09http://h/"[..])?;
/// # let _: FullTask = task;
/// # Ok::<(), TaskError>(())
/// ```
#[derive(Clone)]
#[must_use = "a task does nothing until an encoder returns it to the sink"]
pub struct FullTask {
    /// The message without its name.
    rest: Bytes,
    is_named: bool,
    target: Target,
}

/// What the message says, as far as it is known.
#[derive(Debug, Clone)]
enum Target {
    Http(Box<HttpTask>),
    AppEngine(Box<AppEngineTask>),
}

impl FullTask {
    /// Reads an encoded task.
    ///
    /// # Errors
    ///
    /// [`TaskError::Unreadable`] when the bytes are no task or hold a time that no task has,
    /// [`TaskError::NoTarget`] when it calls nothing, [`TaskError::Url`] when it calls no URL.
    pub fn decode(task: impl Into<Bytes>) -> Result<Self, TaskError> {
        let bytes = task.into();
        let unreadable = |_| TaskError::Unreadable { part: "message" };
        let task = Task::decode(bytes.clone()).map_err(unreadable)?;
        let is_named = !task.name.is_empty();
        let rest = without_name(bytes).map_err(unreadable)?;
        let dispatch = Dispatch::of_message(&task)?;
        let target = match task.message_type {
            None => return Err(TaskError::NoTarget),
            Some(MessageType::HttpRequest(request)) => {
                Target::Http(Box::new(HttpTask::of_message(request, dispatch)?))
            }
            Some(MessageType::AppEngineHttpRequest(request)) => {
                Target::AppEngine(Box::new(AppEngineTask::of_message(request, dispatch)))
            }
        };
        Ok(Self {
            rest,
            is_named,
            target,
        })
    }

    /// Takes the name off, so that the sink names the task by its own setting.
    pub const fn unnamed(mut self) -> Self {
        self.is_named = false;
        self
    }

    pub(super) fn check(
        &self,
        now: SystemTime,
        allowed: Option<&AllowedHosts>,
    ) -> Result<(), TaskError> {
        if self.is_named {
            return Err(TaskError::Named);
        }
        match &self.target {
            Target::Http(task) => task.check(now, allowed),
            Target::AppEngine(task) => task.check(now),
        }
    }

    /// The message without its name.
    pub(super) fn into_rest(self) -> Bytes {
        self.rest
    }
}

/// The fields of an encoded task but its name, in their order.
fn without_name(mut bytes: Bytes) -> Result<Bytes, prost::DecodeError> {
    let mut rest = BytesMut::with_capacity(bytes.len());
    while bytes.has_remaining() {
        let mut ahead = bytes.clone();
        let (tag, wire_type): (u32, WireType) = decode_key(&mut ahead)?;
        skip_field(wire_type, tag, &mut ahead, DecodeContext::default())?;
        let field = bytes.split_to(bytes.len() - ahead.len());
        if tag != NAME {
            rest.extend_from_slice(&field);
        }
    }
    Ok(rest.freeze())
}

impl std::fmt::Debug for FullTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FullTask")
            .field("target", &self.target)
            .field("is_named", &self.is_named)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
