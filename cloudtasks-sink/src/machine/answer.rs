//! What an answer of the service means.

use gcp_wire::{Code, RpcError};

/// The answer to one CreateTask.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The task was created under this name.
    Created(String),
    /// Anything else.
    Failed(RpcError),
    /// It was tried as part of a call as often as the retry budget allows.
    Spent { attempts: u32, error: RpcError },
    /// What became of it cannot be learned: its call's operation cannot be read.
    Unknown(RpcError),
}

/// What a failed CreateTask means for its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A task of this name exists or existed recently.
    Exists,
    /// It may go better next time.
    Transient,
    /// The queue does not exist. The service says NOT_FOUND today; older reports have
    /// FAILED_PRECONDITION, so both count.
    QueueMissing,
    /// This one task is wrong, whatever the state of the service.
    Refused,
    /// No attempt and no other task of this queue will fare better.
    Hopeless,
}

/// Reads a failure.
///
/// Only INVALID_ARGUMENT is the record's own failure: it alone says that the request is wrong
/// whatever the state of the system. The wire reads transport faults and time-outs ahead of any
/// code, so an INVALID_ARGUMENT seen here came from the service and not from a broken connection.
pub(super) fn meaning(error: &RpcError) -> Meaning {
    // A request that this side does not send for its size is wrong for itself alone.
    if error.code() == Code::OutOfRange && error.never_sent() {
        return Meaning::Refused;
    }
    if let Some(credentials) = error.credentials_error() {
        // A token endpoint that is down for a moment is an outage like any other.
        return if credentials.is_transient() {
            Meaning::Transient
        } else {
            Meaning::Hopeless
        };
    }
    match error.code() {
        Code::AlreadyExists => Meaning::Exists,
        Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted => Meaning::Transient,
        Code::NotFound | Code::FailedPrecondition => Meaning::QueueMissing,
        Code::InvalidArgument => Meaning::Refused,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::PermissionDenied
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => Meaning::Hopeless,
        // A code that gRPC may yet get.
        _ => Meaning::Hopeless,
    }
}

#[cfg(test)]
mod tests;
