//! The conformance suite: one test per clause of the checkpoint contract, for anyone's connector.

mod clause;
mod handler;
mod harness;
mod violation;

pub use clause::Clause;
pub use handler::{FlakyHandler, FlushRefused};
pub use harness::{Harness, Hold, SinkHarness, SourceHarness, StateOf};
pub use violation::Violation;

/// Makes one test per clause of the checkpoint contract.
///
/// ```text
/// connector_core::conformance_tests! {
///     #[tokio::test(start_paused = true)]
///     source: MyHarness::new().await
/// }
/// ```
///
/// The kind is `source`, `flush_sink` or `staged_sink`. The expression makes a fresh harness and is
/// evaluated inside an `async` test function, once per clause.
#[macro_export]
macro_rules! conformance_tests {
    ($(#[$test:meta])* $kind:ident: $harness:expr) => {
        $crate::__conformance_tests!($kind [$(#[$test])*] $harness;
            c1_the_cut_is_made_at_the_call c1,
            c2_epochs_strictly_increase c2,
            c3_a_snapshot_receipt_that_is_ok_covers_everything_before_its_cut c3,
            c4_a_commit_sweeps_every_sealed_epoch_up_to_it c4,
            c5_nothing_gets_out_before_its_commit c5,
            c6_the_work_belongs_to_the_call_and_not_to_the_receipt c6,
            c7_an_abort_folds_the_epoch_into_the_next c7,
            c8_the_state_names_everything_sealed_or_committed_without_a_verdict c8,
            c9_a_restore_commits_what_the_state_names c9,
            c10_close_finishes_what_was_committed_and_releases_the_rest c10,
            c11_a_failed_commit_receipt_takes_nothing_back c11,
            c12_a_terminal_error_is_the_last_word c12,
            c13_a_connector_that_is_dropped_without_a_commit_settles_nothing c13,
        );
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ($kind:ident $attributes:tt $harness:expr; $($name:ident $clause:ident,)+) => {
        $($crate::__conformance_test!($kind $attributes $harness; $name $clause);)+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_test {
    ($kind:ident [$(#[$test:meta])*] $harness:expr; $name:ident $clause:ident) => {
        $(#[$test])*
        async fn $name() {
            let mut harness = $harness;
            if let Err(violation) = $crate::conformance::$kind::$clause(&mut harness).await {
                panic!("{violation}");
            }
        }
    };
}
