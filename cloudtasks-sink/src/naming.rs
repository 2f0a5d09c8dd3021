//! The names of tasks.

use std::fmt::Write;

use connector_core::{BoxError, Cause};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// What a [`task_id`](crate::SinkBuilder::task_id) closure answers for a record.
///
/// A closure may answer text, an `Option` of it, or a `Result`: they all convert.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TaskKey {
    /// The record's key. An empty one ends the sink, like [`Missing`](Self::Missing).
    Key(String),
    /// The record has no key. That ends the sink: once tasks are named by key, a task without
    /// one would silently lose its protection against repetition.
    Missing,
    /// The key could not be read from this record. That is the record's own failure, and goes to
    /// the failure handler.
    Failed(Cause),
}

impl From<String> for TaskKey {
    fn from(key: String) -> Self {
        Self::Key(key)
    }
}

impl From<&str> for TaskKey {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl<K: Into<Self>> From<Option<K>> for TaskKey {
    fn from(key: Option<K>) -> Self {
        key.map_or(Self::Missing, Into::into)
    }
}

impl<K: Into<Self>, E: Into<BoxError>> From<Result<K, E>> for TaskKey {
    fn from(key: Result<K, E>) -> Self {
        match key {
            Ok(key) => key.into(),
            Err(error) => Self::Failed(Cause::from(error.into())),
        }
    }
}

/// Where a task's name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Named {
    /// From the service, which gives every task another one.
    ByService,
    /// Minted at random for this record.
    Minted,
    /// From the record's key.
    ByKey,
}

/// Reads a record's key.
pub(crate) type KeyOf<R> = Box<dyn FnMut(&R) -> TaskKey + Send>;

/// How the names of all tasks are made.
pub(crate) enum Naming<R> {
    ByService,
    Minted,
    ByKey(KeyOf<R>),
}

impl<R> std::fmt::Debug for Naming<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ByService => "ByService",
            Self::Minted => "Minted",
            Self::ByKey(_) => "ByKey",
        })
    }
}

/// The task id of a key: its SHA-256 in lower-case hexadecimal.
///
/// Hashed always: any text becomes 64 characters that the service accepts, different keys stay
/// different, and the ids are spread evenly, which the service asks for because sequential ones
/// raise the latency and the error rate of every task command.
pub(crate) fn hashed(key: &str) -> String {
    let digest = Sha256::digest(key.as_bytes());
    digest
        .iter()
        .fold(String::with_capacity(64), |mut id, byte| {
            // Writing to a string cannot fail.
            let _written = write!(id, "{byte:02x}");
            id
        })
}

/// A random task id: 128 bits in 32 hexadecimal characters.
///
/// Each byte of a version 4 UUID but the two that hold its version and variant is random; of two
/// UUIDs enough are.
pub(crate) fn minted() -> String {
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    let mut bytes = *first.as_bytes();
    bytes[6] = second.as_bytes()[0];
    bytes[8] = second.as_bytes()[1];
    Uuid::from_bytes(bytes).simple().to_string()
}

#[cfg(test)]
mod tests;
