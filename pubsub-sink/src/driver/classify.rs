//! What a failed publish request means.

use connector_core::Cause;
use gcp_wire::{Code, Fault, RpcError, proto::pubsub::Topic};

use crate::machine::{Class, Creation, Failure};

/// Only INVALID_ARGUMENT speaks of a message. Anything else speaks of a condition, and giving
/// messages to the failure handler for a condition would empty a stream under a healthy-looking
/// job.
pub(super) fn failure(error: RpcError) -> Failure {
    let class = if error.code() == Code::InvalidArgument {
        Class::Invalid
    } else if error.is_exhausted() {
        Class::Exhausted
    } else if error.fault() == Fault::Transient {
        Class::Transient
    } else if error.fault() == Fault::Missing {
        Class::Missing
    } else {
        Class::Fatal
    };
    Failure {
        class,
        code: error.code(),
        retry_after: error.retry_after(),
        cause: Cause::new(error),
    }
}

/// What came of creating a topic. That it exists already is what was wanted: several sinks may
/// miss it at the same time.
pub(super) fn creation(answer: Result<Topic, RpcError>) -> Creation {
    match answer {
        Ok(_) => Creation::Made,
        Err(error) if error.code() == Code::AlreadyExists => Creation::Existed,
        Err(error) if error.fault() == Fault::Transient => Creation::Failed(Cause::new(error)),
        Err(error) => Creation::Refused(Cause::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_class() {
        use Class::{Exhausted, Fatal, Invalid, Missing, Transient};
        let table = [
            (Code::Cancelled, Transient),
            (Code::Unknown, Transient),
            (Code::InvalidArgument, Invalid),
            (Code::DeadlineExceeded, Transient),
            (Code::NotFound, Missing),
            (Code::AlreadyExists, Fatal),
            (Code::PermissionDenied, Fatal),
            (Code::ResourceExhausted, Exhausted),
            (Code::FailedPrecondition, Fatal),
            (Code::Aborted, Transient),
            (Code::OutOfRange, Fatal),
            (Code::Unimplemented, Fatal),
            (Code::Internal, Transient),
            (Code::Unavailable, Transient),
            (Code::DataLoss, Fatal),
            (Code::Unauthenticated, Fatal),
        ];
        for (code, class) in table {
            let error = RpcError::status("Publish", code, "");
            assert_eq!(failure(error).class, class, "{code}");
        }
    }
}
