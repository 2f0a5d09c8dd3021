//! Attempts, and what their answers mean.

use super::*;

#[test]
fn a_record_is_sent_once_and_settled_by_its_answer() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    assert_eq!(script.sent(), [record]);
    assert_eq!(script.sent(), []);
    script.answer(record, created("n"));
    assert_eq!(script.released(), Limits::new(1, script.size("a")));
    let stats = script.stats();
    assert_eq!(
        (stats.accepted, stats.created, stats.attempts, stats.pending),
        (1, 1, 1, 0)
    );
    assert_eq!(stats.bytes, script.size("a") as u64);
    assert_eq!(script.machine.poll_timeout(), None, "nothing waits");
}

#[test]
fn no_more_creates_are_under_way_than_there_are_streams() {
    let mut script = Script::with(|settings| settings.streams = 2);
    let records: Vec<RecordId> = (0..5)
        .map(|n| script.accept(&n.to_string(), Named::ByService))
        .collect();
    assert_eq!(script.sent(), records[..2]);
    assert_eq!(script.stats().waiting, 3);
    script.answer(records[1], created("n"));
    assert_eq!(script.sent(), [records[2]]);
    script.answer(records[0], failed(Code::Unavailable));
    assert_eq!(
        script.sent(),
        [records[3]],
        "a parked record holds no stream"
    );
    assert_eq!(script.stats().parked, 1);
}

#[test]
fn a_transient_failure_is_tried_again_on_its_own_timer_with_the_same_bytes() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    let first = script.requests();
    script.answer(record, failed(Code::Unavailable));
    let due = script.machine.poll_timeout().unwrap();
    assert_eq!(
        due - script.now,
        Duration::from_millis(100),
        "the middle of ±25 %"
    );
    script.advance(Duration::from_millis(99));
    assert_eq!(script.sent(), []);
    script.advance(Duration::from_millis(1));
    let second = script.requests();
    assert_eq!(first, second);
    script.answer(record, failed(Code::ResourceExhausted));
    assert_eq!(
        script.machine.poll_timeout().unwrap() - script.now,
        Duration::from_millis(200)
    );
    script.advance(SECOND);
    assert_eq!(script.sent(), [record]);
    script.answer(record, created("n"));
    let stats = script.stats();
    assert_eq!((stats.attempts, stats.retries, stats.created), (3, 2, 1));
    assert_eq!(
        stats.bytes,
        script.size("a") as u64,
        "bytes count once for a record"
    );
}

#[test]
fn a_retry_goes_ahead_of_records_that_were_never_sent() {
    let mut script = Script::with(|settings| settings.streams = 1);
    let old = script.accept("old", Named::ByService);
    assert_eq!(script.sent(), [old]);
    script.answer(old, failed(Code::Unavailable));
    let busy = script.accept("busy", Named::ByService);
    assert_eq!(script.sent(), [busy]);
    let new = script.accept("new", Named::ByService);
    script.advance(SECOND);
    script.answer(busy, created("n"));
    assert_eq!(script.sent(), [old]);
    script.answer(old, created("n"));
    assert_eq!(script.sent(), [new]);
}

#[test]
fn spent_retries_end_the_sink_and_name_the_queue_the_attempts_and_what_is_owed() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    let other = script.accept("b", Named::ByService);
    for attempt in 1..=8 {
        assert!(script.sent().contains(&record), "attempt {attempt}");
        script.answer(record, failed(Code::DeadlineExceeded));
        script.advance(Duration::from_secs(13));
    }
    let error = script.error();
    let text = error.to_string();
    assert!(
        matches!(
            error,
            SinkError::RetriesSpent {
                attempts: 8,
                pending: 2,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(
        text.contains("projects/demo/locations/l/queues/q"),
        "{text}"
    );
    assert!(text.contains("8 attempts"), "{text}");
    assert!(script.ended());
    script.answer(other, created("late"));
    assert_eq!(script.stats().created, 0, "after the end nothing counts");
}

#[test]
fn a_missing_queue_has_its_own_short_budget_whichever_of_the_two_codes_says_so() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    let codes = [Code::NotFound, Code::FailedPrecondition, Code::NotFound];
    let mut waited = Duration::ZERO;
    for code in codes {
        assert_eq!(script.sent(), [record]);
        script.answer(record, failed(code));
        if let Some(due) = script.machine.poll_timeout()
            && script.stats().parked == 1
        {
            waited += due - script.now;
            script.advance(due - script.now);
        }
    }
    assert_eq!(waited, Duration::from_millis(1_500));
    let error = script.error();
    assert!(
        matches!(error, SinkError::QueueMissing { attempts: 3, .. }),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("projects/demo/locations/l/queues/q"),
        "{error}"
    );
}

#[test]
fn the_two_budgets_count_apart() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    let mut sends = 0;
    for code in [Code::NotFound, Code::Unavailable].into_iter().cycle() {
        if script.ended_silently() {
            break;
        }
        sends += script.sent().len();
        script.answer(record, failed(code));
        script.advance(Duration::from_secs(13));
    }
    assert_eq!(sends, 5, "the third NOT_FOUND is the fifth answer");
    let mut script = Script::with(|settings| settings.missing.attempts = 100);
    let record = script.accept("a", Named::ByService);
    for _ in 0..7 {
        for code in [Code::NotFound, Code::Unavailable] {
            assert_eq!(script.sent(), [record]);
            script.answer(record, failed(code));
            script.advance(Duration::from_secs(13));
        }
    }
    assert!(
        !script.ended(),
        "seven failures of each kind are within both budgets"
    );
}

#[test]
fn a_budget_of_one_attempt_means_no_retry() {
    let mut script = Script::with(|settings| settings.transient.attempts = 1);
    let record = script.accept("a", Named::ByService);
    assert_eq!(script.sent(), [record]);
    script.answer(record, failed(Code::Unavailable));
    assert!(matches!(
        script.error(),
        SinkError::RetriesSpent { attempts: 1, .. }
    ));
}

#[test]
fn a_permission_that_is_denied_ends_the_sink_at_once() {
    for code in [Code::PermissionDenied, Code::Internal, Code::Unimplemented] {
        let mut script = Script::new();
        let record = script.accept("a", Named::ByService);
        assert_eq!(script.sent(), [record]);
        script.answer(record, failed(code));
        let error = script.error();
        assert!(
            matches!(error, SinkError::Refused { pending: 1, .. }),
            "{error:?}"
        );
        assert!(
            matches!(script.error(), SinkError::Closed { .. }),
            "later ones are told why"
        );
    }
}
