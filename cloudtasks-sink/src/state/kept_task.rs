//! A task that is kept aside.

use std::time::SystemTime;

use bytes::Bytes;
use gcp_wire::QueueName;
use serde::Serialize;

use super::StagedTask;

/// Why a committed task was not created and is kept aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum KeptReason {
    /// The service refused this one task, and the failure handler did not take it.
    Refused,
    /// Its recovery deadline passed: the service may have forgotten its name, so that asking again
    /// could make a second task. It may exist, or have run, or never have been created.
    Expired,
}

/// A committed task that waits for an operator.
///
/// It is part of every state until it is resolved. Serialize it to export it: the `task` is an
/// encoded `google.cloud.tasks.v2.Task`, as a dead letter's payload is, and may hold credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptTask {
    #[serde(flatten)]
    pub(crate) task: StagedTask,
    pub(crate) why: KeptReason,
    pub(crate) cause: Option<String>,
}

impl KeptTask {
    /// The queue it is for.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        self.task.queue()
    }

    /// Its full name, `projects/P/locations/L/queues/Q/tasks/T`.
    #[must_use]
    pub fn name(&self) -> String {
        self.task.name()
    }

    /// The encoded `google.cloud.tasks.v2.Task`, its name included. It may hold credentials.
    #[must_use]
    pub const fn task(&self) -> &Bytes {
        self.task.task()
    }

    /// Why it is kept aside.
    #[must_use]
    pub const fn why(&self) -> KeptReason {
        self.why
    }

    /// What the service or the failure handler said, if anything.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The time from which its recovery window counted: no attempt to create it was made before.
    #[must_use]
    pub const fn since(&self) -> SystemTime {
        self.task.since()
    }
}
