//! The matrix of faults: every method that a connector calls, with everything that a service can
//! answer, or not answer, for half a minute.
//!
//! A cell is one test, `<connector>::<column>::<row>` by the tables of
//! `docs/delivery-guarantees.md`. It asserts four things: whether the connector ends and with which
//! error, that nothing is lost, that nothing is settled early, and how long it takes to recover, or to
//! end. Time is virtual. `expected` is the law, and the document is printed from it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    clippy::disallowed_methods,
    clippy::future_not_send,
    reason = "a host has a clock, virtual here, and one thread; trouble ends beside it"
)]

/// One test for every trouble of a column.
macro_rules! column {
    ($name:ident, $scenario:path) => {
        mod $name {
            use crate::trouble::Trouble;

            column! { @cells $scenario, stringify!($name),
                unavailable Unavailable,
                deadline_exceeded DeadlineExceeded,
                resource_exhausted ResourceExhausted,
                internal Internal,
                unknown Unknown,
                cancelled Cancelled,
                aborted Aborted,
                not_found NotFound,
                permission_denied PermissionDenied,
                unauthenticated Unauthenticated,
                invalid_argument InvalidArgument,
                failed_precondition FailedPrecondition,
                answer_lost AnswerLost,
                never_answered NeverAnswered,
                slow Slow,
            }
        }
    };
    (@cells $scenario:path, $column:expr, $($test:ident $trouble:ident,)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                $scenario($column, Trouble::$trouble).await;
            }
        )*
    };
}

mod document;
mod expected;
mod pubsub_sink;
mod sinks;
mod sockets;
mod source;
mod tasks_sink;
mod trouble;
