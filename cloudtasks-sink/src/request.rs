//! The bytes of a CreateTask request.

use bytes::Bytes;
use gcp_wire::{QueueName, proto};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len, string};

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
    /// Where the `Task` begins, which goes to the end.
    task_at: usize,
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

    /// The `Task` inside; shares the memory of the request.
    pub(crate) fn task(&self) -> Bytes {
        self.bytes.slice(self.task_at..)
    }

    /// The length of the `Task` in bytes.
    pub(crate) fn task_len(&self) -> usize {
        self.bytes.len() - self.task_at
    }

    /// A request whose task is written by `task`, `task_len` bytes of it.
    pub(crate) fn encode(
        queue: &QueueName,
        task_len: usize,
        task: impl FnOnce(&mut Vec<u8>),
    ) -> Self {
        let parent = queue.as_str().as_bytes();
        // Exactly as much as is needed: what is not filled would cost a second allocation.
        let mut bytes = Vec::with_capacity(
            key_len(PARENT)
                + encoded_len_varint(parent.len() as u64)
                + parent.len()
                + key_len(TASK)
                + encoded_len_varint(task_len as u64)
                + task_len,
        );
        encode_key(PARENT, WireType::LengthDelimited, &mut bytes);
        encode_varint(parent.len() as u64, &mut bytes);
        bytes.extend_from_slice(parent);
        encode_key(TASK, WireType::LengthDelimited, &mut bytes);
        encode_varint(task_len as u64, &mut bytes);
        let task_at = bytes.len();
        task(&mut bytes);
        Self {
            bytes: bytes.into(),
            task_at,
        }
    }
}

#[cfg(test)]
mod tests;
