//! A task as a state holds it.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use gcp_wire::QueueName;
use prost::Message;
use serde::Serialize;

use crate::naming::Named;

/// A task with its name, exactly as it is sent, however often.
#[derive(Clone, PartialEq, Eq)]
pub struct StagedTask {
    pub(crate) queue: QueueName,
    /// The encoded task, its name included.
    pub(crate) task: Bytes,
    pub(crate) named: Named,
    /// No attempt was made before this time.
    pub(crate) since: SystemTime,
    /// Whether it was committed when the state was taken.
    pub(crate) released: bool,
}

/// The one field of a task that is read back.
#[derive(Clone, PartialEq, Message)]
struct OnlyName {
    #[prost(string, tag = "1")]
    name: String,
}

/// The full name in an encoded task; empty when it has none.
pub(crate) fn name_in(task: &Bytes) -> String {
    OnlyName::decode(task.clone())
        .map(|task| task.name)
        .unwrap_or_default()
}

impl StagedTask {
    /// The queue it is for.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// Its full name, `projects/P/locations/L/queues/Q/tasks/T`.
    #[must_use]
    pub fn name(&self) -> String {
        name_in(&self.task)
    }

    /// The encoded `google.cloud.tasks.v2.Task`, its name included. It may hold credentials.
    #[must_use]
    pub const fn task(&self) -> &Bytes {
        &self.task
    }

    /// The time from which its recovery window counts: no attempt to create it was made before.
    #[must_use]
    pub const fn since(&self) -> SystemTime {
        self.since
    }
}

// The body and the headers may be secret: the length only.
impl fmt::Debug for StagedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedTask")
            .field("name", &self.name())
            .field("task_bytes", &self.task.len())
            .field("since", &self.since)
            .field("released", &self.released)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Exported<'a> {
    queue: &'a QueueName,
    name: String,
    since: SystemTime,
    task: &'a Bytes,
}

impl Serialize for StagedTask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Exported {
            queue: &self.queue,
            name: self.name(),
            since: self.since,
            task: &self.task,
        }
        .serialize(serializer)
    }
}
