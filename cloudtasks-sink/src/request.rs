//! The bytes of a CreateTask request.

use bytes::{Bytes, BytesMut};
use gcp_wire::{QueueName, proto};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, string};

/// `parent` of `CreateTaskRequest`.
const PARENT: u32 = 1;
/// `task` of `CreateTaskRequest`.
const TASK: u32 = 2;

/// An encoded CreateTask request.
///
/// Encoded once: every attempt sends the same bytes, and a rejected record is handed on as the
/// encoded task that lies inside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The whole message.
    pub(crate) bytes: Bytes,
    /// The `Task` inside it; shares its memory.
    pub(crate) task: Bytes,
}

impl Request {
    pub(crate) fn new(queue: &QueueName, task: &proto::tasks::Task) -> Self {
        let parent = queue.as_str().to_owned();
        let task_len = task.encoded_len();
        // Two keys of one byte and two lengths of at most ten.
        let mut bytes = BytesMut::with_capacity(parent.len() + task_len + 22);
        string::encode(PARENT, &parent, &mut bytes);
        encode_key(TASK, WireType::LengthDelimited, &mut bytes);
        encode_varint(task_len as u64, &mut bytes);
        let task_at = bytes.len();
        task.encode_raw(&mut bytes);
        let bytes = bytes.freeze();
        let task = bytes.slice(task_at..);
        Self { bytes, task }
    }
}

#[cfg(test)]
mod tests;
