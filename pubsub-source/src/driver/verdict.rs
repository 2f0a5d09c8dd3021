//! What the service's errors mean for a source.

use gcp_wire::{AckFailure, Code, Fault, RpcError, SubscriptionName};

use crate::{
    error::SourceError,
    machine::{Answer, IdVerdict, StreamEnd},
};

/// What an answered request means.
#[derive(Debug)]
pub(super) enum CallVerdict {
    Answer(Answer),
    /// The source has to end.
    Final(SourceError),
}

/// What the end of a pull stream means.
#[derive(Debug)]
pub(super) enum StreamVerdict {
    /// With what it failed, if it did not just end.
    Ended(StreamEnd, Option<RpcError>),
    /// A response could not be read.
    Undecodable(RpcError),
    /// The source has to end.
    Final(SourceError),
}

/// How a failure is to be met, whichever method it came from.
enum Class {
    Again,
    Refused,
    Final(SourceError),
}

pub(super) fn of_call<T>(
    subscription: &SubscriptionName,
    outcome: Result<T, RpcError>,
) -> CallVerdict {
    let error = match outcome {
        Ok(_) => return CallVerdict::Answer(Answer::Done),
        Err(error) => error,
    };
    let class = class(subscription, &error);
    let failures = error.ack_failures();
    // What ends the source says nothing about the ids that its details do not name.
    let ends = matches!(class, Class::Final(_));
    if !failures.is_empty() && !ends {
        let verdict = |failure: &AckFailure| match failure {
            AckFailure::Transient(_) => IdVerdict::Again,
            AckFailure::Permanent(_) => IdVerdict::Worthless,
            // Whatever it is, trying again cannot lose anything.
            _ => IdVerdict::Again,
        };
        let verdicts = failures
            .iter()
            .map(|(id, failure)| (id.clone(), verdict(failure)));
        return CallVerdict::Answer(Answer::Mixed {
            verdicts: verdicts.collect(),
            // The call as a whole was evaluated: what is not named was done. After a transient
            // failure of the call that is not so sure.
            others_done: !matches!(class, Class::Again),
        });
    }
    match class {
        Class::Again => CallVerdict::Answer(Answer::Again(error.retry_after())),
        Class::Refused => CallVerdict::Answer(Answer::Refused),
        Class::Final(error) => CallVerdict::Final(error),
    }
}

pub(super) fn of_stream(subscription: &SubscriptionName, error: RpcError) -> StreamVerdict {
    // A response that made the decoder panic comes back as INTERNAL without the server's say.
    let panicked = error.fault() == Fault::Fatal && error.code() == Code::Internal;
    if error.decode_fault().is_some() || panicked {
        return StreamVerdict::Undecodable(error);
    }
    match class(subscription, &error) {
        Class::Again => {
            let end = match error.retry_after() {
                Some(pause) => StreamEnd::After(pause),
                None => StreamEnd::Again,
            };
            StreamVerdict::Ended(end, Some(error))
        }
        Class::Refused => StreamVerdict::Final(SourceError::Refused {
            subscription: subscription.clone(),
            cause: error,
        }),
        Class::Final(error) => StreamVerdict::Final(error),
    }
}

fn class(subscription: &SubscriptionName, error: &RpcError) -> Class {
    // Transport faults and our own time-outs carry codes that nobody sent: they come first.
    if error.is_transport() || error.is_timeout() {
        return Class::Again;
    }
    let (subscription, cause) = (subscription.clone(), error.clone());
    if error.credentials_error().is_some() {
        return if error.fault() == Fault::Transient {
            Class::Again
        } else {
            Class::Final(SourceError::Credentials {
                subscription,
                cause,
            })
        };
    }
    match error.code() {
        // CANCELLED is what a proxy or a closing connection says; our own shutdown is not told by
        // a status.
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable => Class::Again,
        Code::NotFound => Class::Final(SourceError::Missing {
            subscription,
            cause,
        }),
        Code::PermissionDenied | Code::Unauthenticated => Class::Final(SourceError::Denied {
            subscription,
            cause,
        }),
        Code::Unimplemented => Class::Final(SourceError::Refused {
            subscription,
            cause,
        }),
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::AlreadyExists
        | Code::OutOfRange
        | Code::DataLoss => Class::Refused,
        // A code that this version does not know may be anything: trying again loses nothing.
        _ => Class::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription() -> SubscriptionName {
        "projects/demo-project/subscriptions/s11".parse().unwrap()
    }

    fn of(code: Code) -> StreamVerdict {
        of_stream(&subscription(), RpcError::status("StreamingPull", code, ""))
    }

    #[test]
    fn streams_open_again_after_everything_that_may_pass() {
        for code in [
            Code::Cancelled,
            Code::Unknown,
            Code::DeadlineExceeded,
            Code::ResourceExhausted,
            Code::Aborted,
            Code::Internal,
            Code::Unavailable,
        ] {
            assert!(
                matches!(of(code), StreamVerdict::Ended(_, Some(_))),
                "{code:?}"
            );
        }
    }

    #[test]
    fn what_does_not_pass_ends_the_source_with_the_subscriptions_name() {
        for code in [
            Code::NotFound,
            Code::PermissionDenied,
            Code::Unauthenticated,
            Code::InvalidArgument,
            Code::FailedPrecondition,
            Code::Unimplemented,
            Code::DataLoss,
            Code::AlreadyExists,
        ] {
            let StreamVerdict::Final(error) = of(code) else {
                panic!("{code:?} does not end the source");
            };
            assert!(
                error.to_string().contains(subscription().as_str()),
                "{error}"
            );
        }
    }

    #[test]
    fn a_refused_request_is_not_the_end_of_the_source() {
        let error = RpcError::status("Acknowledge", Code::InvalidArgument, "");
        let verdict = of_call::<()>(&subscription(), Err(error));
        assert!(matches!(verdict, CallVerdict::Answer(Answer::Refused)));
    }
}
