//! The bytes of a CreateTask request.

use bytes::{Bytes, BytesMut};
use gcp_wire::{QueueName, proto};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, string};

/// `parent` of `CreateTaskRequest`.
const PARENT: u32 = 1;
/// `task` of `CreateTaskRequest`.
const TASK: u32 = 2;
/// `name` of `Task`.
const NAME: u32 = 1;

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
        Self::encode(queue, task.encoded_len(), |bytes| task.encode_raw(bytes))
    }

    /// A task that is encoded already, without a name, and the name it gets.
    pub(crate) fn of_encoded(queue: &QueueName, name: &str, rest: &Bytes) -> Self {
        let mut named = Vec::new();
        if !name.is_empty() {
            string::encode(NAME, &name.to_owned(), &mut named);
        }
        Self::encode(queue, named.len() + rest.len(), |bytes| {
            bytes.extend_from_slice(&named);
            bytes.extend_from_slice(rest);
        })
    }

    /// A task that is encoded already, name and all.
    pub(crate) fn of_named(queue: &QueueName, task: &Bytes) -> Self {
        Self::of_encoded(queue, "", task)
    }

    fn encode(queue: &QueueName, task_len: usize, task: impl FnOnce(&mut BytesMut)) -> Self {
        let parent = queue.as_str().as_bytes();
        // Two keys of one byte and two lengths of at most ten.
        let mut bytes = BytesMut::with_capacity(parent.len() + task_len + 22);
        encode_key(PARENT, WireType::LengthDelimited, &mut bytes);
        encode_varint(parent.len() as u64, &mut bytes);
        bytes.extend_from_slice(parent);
        encode_key(TASK, WireType::LengthDelimited, &mut bytes);
        encode_varint(task_len as u64, &mut bytes);
        let task_at = bytes.len();
        task(&mut bytes);
        let bytes = bytes.freeze();
        let task = bytes.slice(task_at..);
        Self { bytes, task }
    }
}

#[cfg(test)]
mod tests;
