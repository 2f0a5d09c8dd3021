//! The outcome of one record.

use connector_core::{Cause, RejectedReason};

/// What became of a record given to [`submit`](crate::CloudTasksSink::submit).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Submitted {
    /// The task was created.
    #[non_exhaustive]
    Created {
        /// The full name of the task.
        name: String,
    },
    /// A task of this name exists already, or existed recently; no second one was created.
    #[non_exhaustive]
    Duplicate {
        /// The full name of the task.
        name: String,
    },
    /// The task was committed, and was not confirmed before its recovery deadline. It is kept aside
    /// for an operator, and may exist or not.
    Expired,
    /// The encoder skipped the record: there is no task.
    Skipped,
    /// The sink had no room and did not accept the record: wait for
    /// [`ready`](crate::CloudTasksSink::ready) before each one.
    NotAccepted,
    /// The record was rejected and the failure handler dealt with it: there is no task.
    #[non_exhaustive]
    Rejected {
        /// Which rule it broke.
        reason: RejectedReason,
        /// What the serializer, the check or the service said.
        cause: Option<Cause>,
    },
}
