//! One test function per clause.

/// Makes one test per clause of the checkpoint contract.
///
/// First the attribute that makes an `async fn` a test, then the kind (`source`, `flush_sink` or
/// `staged_sink`) and an expression that makes a fresh harness. The expression is evaluated once
/// per clause, inside the test, and may `.await`.
///
/// ```text
/// mod conformance {
///     connector_core::conformance_tests! {
///         #[tokio::test(start_paused = true)]
///         source: super::Harness::new().await
///     }
/// }
/// ```
///
/// Use a module per kind: the functions are named after the clauses, so that a failing test names
/// what is broken. A complete example stands in the documentation of
/// [`conformance`](crate::conformance).
#[macro_export]
macro_rules! conformance_tests {
    ($(#[$test:meta])* source: $harness:expr) => {
        $crate::__conformance_tests!(source [$(#[$test])*] $harness;
            c1_the_cut_is_made_at_the_call c1,
            c2_epochs_strictly_increase c2,
            c3_a_snapshot_receipt_is_ready_at_once c3,
            c4_a_commit_sweeps_every_sealed_epoch_up_to_it c4,
            c5_nothing_is_acknowledged_before_its_commit c5,
            c6_the_work_belongs_to_the_call_and_not_to_the_receipt c6,
            c7_an_abort_folds_the_epoch_into_the_next c7,
            c8_the_state_names_everything_sealed_or_committed_without_a_verdict c8,
            c9_a_restore_commits_what_the_states_name c9,
            c10_close_finishes_what_was_committed_and_releases_the_rest c10,
            c11_a_failed_commit_receipt_takes_nothing_back c11,
            c12_a_terminal_error_is_the_last_word c12,
            c13_a_source_that_is_dropped_without_a_commit_settles_nothing c13,
        );
    };
    ($(#[$test:meta])* flush_sink: $harness:expr) => {
        $crate::__conformance_tests!(flush_sink [$(#[$test])*] $harness;
            c1_the_cut_is_made_at_the_call c1,
            c2_epochs_strictly_increase c2,
            c3_a_snapshot_receipt_that_is_ok_covers_everything_before_its_cut c3,
            c4_a_commit_sweeps_every_sealed_epoch_up_to_it c4,
            c6_the_work_belongs_to_the_call_and_not_to_the_receipt c6,
            c7_an_abort_folds_the_epoch_into_the_next c7,
            c8_a_snapshot_vouches_for_every_earlier_epoch c8,
            c9_what_a_state_vouches_for_is_not_sent_again c9,
            c10_close_delivers_what_was_accepted c10,
            c12_a_terminal_error_is_the_last_word c12,
        );
    };
    ($(#[$test:meta])* staged_sink: $harness:expr) => {
        $crate::__conformance_tests!(staged_sink [$(#[$test])*] $harness;
            c1_the_cut_is_made_at_the_call c1,
            c2_epochs_strictly_increase c2,
            c3_a_snapshot_receipt_that_is_ok_covers_everything_before_its_cut c3,
            c4_a_commit_sweeps_every_sealed_epoch_up_to_it c4,
            c5_nothing_leaves_before_its_commit c5,
            c6_the_work_belongs_to_the_call_and_not_to_the_receipt c6,
            c7_an_abort_folds_the_epoch_into_the_next c7,
            c8_the_state_names_everything_sealed_or_committed_without_a_verdict c8,
            c9_a_restore_commits_what_the_state_names c9,
            c10_close_finishes_what_was_committed_and_lets_nothing_else_out c10,
            c11_a_failed_commit_receipt_takes_nothing_back c11,
            c12_a_terminal_error_is_the_last_word c12,
            c13_a_sink_that_is_dropped_without_a_commit_lets_nothing_out c13,
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
