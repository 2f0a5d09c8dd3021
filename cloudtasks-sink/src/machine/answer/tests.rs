use super::*;

fn answered(code: Code) -> Meaning {
    meaning(&RpcError::status("CreateTask", code, "text"))
}

#[test]
fn only_invalid_argument_is_the_records_own_failure() {
    use Meaning::{Exists, Hopeless, QueueMissing, Refused, Transient};
    let table = [
        (Code::AlreadyExists, Exists),
        (Code::Unavailable, Transient),
        (Code::DeadlineExceeded, Transient),
        (Code::ResourceExhausted, Transient),
        (Code::NotFound, QueueMissing),
        (Code::FailedPrecondition, QueueMissing),
        (Code::InvalidArgument, Refused),
        (Code::PermissionDenied, Hopeless),
        (Code::Unauthenticated, Hopeless),
        (Code::OutOfRange, Hopeless),
        (Code::Aborted, Hopeless),
        (Code::Cancelled, Hopeless),
        (Code::Internal, Hopeless),
        (Code::Unknown, Hopeless),
        (Code::Unimplemented, Hopeless),
        (Code::DataLoss, Hopeless),
    ];
    for (code, expected) in table {
        assert_eq!(answered(code), expected, "{code}");
    }
}
