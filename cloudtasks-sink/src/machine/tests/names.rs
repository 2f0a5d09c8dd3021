//! Names that exist, and tasks that may.

use super::*;

#[test]
fn a_name_that_exists_is_success_counted_apart() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByKey);
    assert_eq!(script.sent(), [record]);
    script.answer(record, failed(Code::AlreadyExists));
    let stats = script.stats();
    assert_eq!(
        (stats.created, stats.duplicates, stats.unexpected_duplicates),
        (0, 1, 0)
    );
    assert_eq!(stats.pending, 0);
    assert!(!script.ended());
}

#[test]
fn a_retry_that_meets_its_own_first_attempt_is_success() {
    for named in [Named::ByKey, Named::Minted] {
        let mut script = Script::new();
        let record = script.accept("a", named);
        assert_eq!(script.sent(), [record]);
        script.answer(record, failed(Code::DeadlineExceeded));
        script.advance(SECOND);
        assert_eq!(script.sent(), [record]);
        script.answer(record, failed(Code::AlreadyExists));
        let stats = script.stats();
        assert_eq!(
            (stats.duplicates, stats.unexpected_duplicates, stats.pending),
            (1, 0, 0)
        );
        assert_eq!(stats.ambiguous_retries, 0, "a name makes the retry safe");
    }
}

#[test]
fn a_minted_name_that_exists_before_it_was_sent_is_told() {
    let mut script = Script::new();
    let record = script.accept("a", Named::Minted);
    assert_eq!(script.sent(), [record]);
    script.answer(record, failed(Code::AlreadyExists));
    assert_eq!(script.stats().unexpected_duplicates, 1);
    let reports = script.reports();
    assert!(
        matches!(reports[..], [Report::UnexpectedDuplicate { times: 1, .. }]),
        "{reports:?}"
    );
}

#[test]
fn a_name_given_by_the_service_cannot_exist() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    assert_eq!(script.sent(), [record]);
    script.answer(record, failed(Code::AlreadyExists));
    assert!(matches!(script.error(), SinkError::Refused { .. }));
}

#[test]
fn a_retry_that_may_create_a_second_unnamed_task_is_counted() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    assert_eq!(script.sent(), [record]);
    script.answer(record, failed(Code::ResourceExhausted));
    script.advance(SECOND);
    assert_eq!(script.sent(), [record]);
    assert_eq!(
        script.stats().ambiguous_retries,
        0,
        "a quota refusal created nothing"
    );
    script.answer(record, failed(Code::Unavailable));
    script.advance(SECOND);
    assert_eq!(script.sent(), [record]);
    assert_eq!(script.stats().ambiguous_retries, 1);
}
