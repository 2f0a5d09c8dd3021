//! One machine, one behaviour, scripted; and the laws of the machine under random histories.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names the variant it means; any other fails it"
)]

mod laws;
mod retrying;
mod script;

use std::time::Duration;

use connector_core::{RejectedReason, Verdict};
use gcp_wire::Code;
use gcp_wire::proto::tasks::Task;
use prost::Message;

use super::*;
use crate::naming::Named;
use script::{Script, created, failed};

const SECOND: Duration = Duration::from_secs(1);

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

#[test]
fn a_refused_task_goes_to_the_handler_with_its_bytes_and_the_rest_goes_on() {
    let mut script = Script::new();
    let bad = script.accept("bad", Named::ByKey);
    let good = script.accept("good", Named::ByKey);
    assert_eq!(script.sent(), [bad, good]);
    script.answer(bad, failed(Code::InvalidArgument));
    script.answer(good, created("n"));
    let (job, rejected) = script.handled().remove(0);
    assert_eq!(rejected.destination, "projects/demo/locations/l/queues/q");
    assert_eq!(rejected.reason, RejectedReason::Refused);
    assert_eq!(rejected.connector, "cloudtasks-sink");
    let task = Task::decode(rejected.payload.unwrap()).unwrap();
    assert_eq!(task.name, "bad");
    assert!(
        rejected
            .source
            .unwrap()
            .to_string()
            .contains("INVALID_ARGUMENT")
    );
    assert_eq!(rejected.epoch, None, "the epoch is still open");
    assert_eq!(
        script.stats().pending,
        1,
        "its permit returns with the verdict"
    );
    script.verdict(job, Ok(Verdict::Drop));
    let stats = script.stats();
    assert_eq!(
        (stats.rejected, stats.created, stats.pending, stats.attempts),
        (1, 1, 0, 2)
    );
}

#[test]
fn a_rejection_names_its_epoch_once_that_is_sealed() {
    let mut script = Script::new();
    let bad = script.accept("bad", Named::ByKey);
    assert_eq!(script.sent(), [bad]);
    script.snapshot(7).unwrap();
    script.answer(bad, failed(Code::InvalidArgument));
    assert_eq!(script.handled().remove(0).1.epoch, Some(Epoch::new(7)));
}

#[test]
fn a_handler_that_says_fail_or_cannot_take_a_record_ends_the_sink() {
    let mut script = Script::new();
    script.reject("h1");
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Fail));
    match script.error() {
        SinkError::Rejected {
            destination,
            reason,
            source,
        } => {
            assert_eq!(destination, "h1");
            assert_eq!(reason, RejectedReason::Encoding);
            assert!(source.is_some());
        }
        other => panic!("{other:?}"),
    }

    let mut script = Script::new();
    script.reject("h2");
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Err(CheckpointError::driver_gone()));
    assert!(matches!(script.error(), SinkError::Handler { .. }));
}

#[test]
fn an_outage_never_reaches_the_handler() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByKey);
    for code in [Code::Unavailable, Code::NotFound, Code::ResourceExhausted] {
        assert_eq!(script.sent(), [record]);
        script.answer(record, failed(code));
        script.advance(Duration::from_secs(13));
    }
    assert!(script.handled().is_empty());
    assert_eq!(script.stats().rejected, 0);
}

#[test]
fn the_handler_has_at_most_a_hundred_records_without_a_verdict() {
    let mut script = Script::new();
    for n in 0..150 {
        script.reject(&n.to_string());
    }
    let first = script.handled();
    assert_eq!(first.len(), 100);
    assert!(script.handled().is_empty());
    assert_eq!(
        script.stats().with_handler,
        150,
        "those that wait keep their permits"
    );
    for (job, _) in first.into_iter().take(30) {
        script.verdict(job, Ok(Verdict::Drop));
    }
    assert_eq!(script.handled().len(), 30);
}

#[test]
fn a_snapshot_waits_for_what_lies_before_it_and_for_nothing_else() {
    let mut script = Script::new();
    let before = script.accept("before", Named::ByKey);
    script.snapshot(1).unwrap();
    let after = script.accept("after", Named::ByKey);
    assert_eq!(script.sent(), [before, after]);
    script.answer(after, created("n"));
    assert_eq!(script.snapshots(), []);
    script.answer(before, created("n"));
    assert_eq!(script.snapshots(), [(1, true)]);
    script.snapshot(2).unwrap();
    assert_eq!(
        script.snapshots(),
        [(2, true)],
        "an idle sink needs no answer of anybody"
    );
}

#[test]
fn a_snapshot_waits_for_a_flush_of_the_handler_that_begins_after_the_last_verdict() {
    let mut script = Script::new();
    script.reject("a");
    let good = script.accept("good", Named::ByKey);
    assert_eq!(script.sent(), [good]);
    script.snapshot(1).unwrap();
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Drop));
    assert!(
        script.flushes().is_empty(),
        "not while a record of the cut is on its way"
    );
    script.answer(good, created("n"));
    let flush = script.flushes().remove(0);
    assert_eq!(script.snapshots(), []);
    script.flushed(flush, true);
    assert_eq!(script.snapshots(), [(1, true)]);
    script.snapshot(2).unwrap();
    assert_eq!(script.snapshots(), [(2, true)]);
    assert!(script.flushes().is_empty(), "everything handled is durable");
}

#[test]
fn a_failed_flush_of_the_handler_fails_the_snapshot_and_stays_owed_to_the_next() {
    let mut script = Script::new();
    script.reject("a");
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Drop));
    script.snapshot(1).unwrap();
    let flush = script.flushes().remove(0);
    script.flushed(flush, false);
    assert_eq!(script.snapshots(), [(1, false)]);
    assert!(!script.ended(), "the sink goes on");
    script.machine.abort(Epoch::new(1));
    script.snapshot(2).unwrap();
    assert_eq!(
        script.snapshots(),
        [],
        "the rejected record is still not durable"
    );
    let flush = script.flushes().remove(0);
    script.flushed(flush, true);
    assert_eq!(script.snapshots(), [(2, true)]);
}

#[test]
fn snapshots_that_wait_for_the_same_flush_share_it() {
    let mut script = Script::new();
    script.reject("a");
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Drop));
    script.snapshot(1).unwrap();
    script.snapshot(2).unwrap();
    let mut flushes = script.flushes();
    assert_eq!(flushes.len(), 1);
    script.flushed(flushes.remove(0), true);
    assert_eq!(script.snapshots(), [(1, true), (2, true)]);
}

#[test]
fn an_abort_resolves_the_snapshot_and_leaves_its_records_to_the_next() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByKey);
    assert_eq!(script.sent(), [record]);
    script.snapshot(1).unwrap();
    script.machine.abort(Epoch::new(1));
    match script.effects().remove(0) {
        Effect::Snapshot {
            epoch,
            outcome: Err(CheckpointError::Aborted { epoch: named }),
        } => {
            assert_eq!((epoch, named), (Epoch::new(1), Epoch::new(1)));
        }
        other => panic!("{other:?}"),
    }
    script.snapshot(2).unwrap();
    assert_eq!(script.snapshots(), []);
    script.answer(record, created("n"));
    assert_eq!(script.snapshots(), [(2, true)]);
    let commit = script.machine.commit(Epoch::new(2)).unwrap();
    assert_eq!(script.commits(), [(commit, 1, 0)]);
}

#[test]
fn a_commit_counts_what_was_settled_and_what_the_handler_took() {
    let mut script = Script::new();
    let good = script.accept("a", Named::ByKey);
    script.reject("b");
    assert_eq!(script.sent(), [good]);
    script.answer(good, created("n"));
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Drop));
    script.snapshot(1).unwrap();
    let commit = script.machine.commit(Epoch::new(1)).unwrap();
    assert_eq!(script.commits(), [(commit, 1, 1)]);
}

#[test]
fn a_commit_before_the_snapshot_is_complete_waits_for_its_records() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByKey);
    assert_eq!(script.sent(), [record]);
    script.snapshot(1).unwrap();
    let commit = script.machine.commit(Epoch::new(1)).unwrap();
    assert_eq!(script.commits(), []);
    script.answer(record, created("n"));
    assert_eq!(script.commits(), [(commit, 1, 0)]);
}

#[test]
fn epochs_go_on_above_a_restored_one() {
    let mut script = Script::restored(5);
    let refused = script.snapshot(5).unwrap_err();
    assert!(
        matches!(refused, CheckpointError::OutOfOrder { .. }),
        "{refused}"
    );
    script.snapshot(6).unwrap();
    assert_eq!(script.snapshots(), [(6, true)]);
    let unknown = script.machine.commit(Epoch::new(7)).unwrap_err();
    assert!(
        matches!(unknown, CheckpointError::Unknown { .. }),
        "{unknown}"
    );
    let commit = script.machine.commit(Epoch::new(5)).unwrap();
    assert_eq!(
        script.commits(),
        [(commit, 0, 0)],
        "the restored epoch is committed"
    );
}

#[test]
fn a_flush_is_done_when_everything_accepted_before_it_has_its_verdict() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByKey);
    assert_eq!(script.sent(), [record]);
    script.machine.start_flush(script.now);
    assert!(script.machine.poll_flushed().is_none());
    script.answer(record, created("n"));
    assert!(script.woke_host());
    assert!(matches!(script.machine.poll_flushed(), Some(Ok(()))));
    assert!(
        script.machine.poll_flushed().is_none(),
        "the outcome is given once"
    );
}

#[test]
fn a_flush_tells_that_the_handler_could_not_flush_and_the_sink_goes_on() {
    let mut script = Script::new();
    script.reject("a");
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Drop));
    script.machine.start_flush(script.now);
    let flush = script.flushes().remove(0);
    script.flushed(flush, false);
    assert!(matches!(
        script.machine.poll_flushed(),
        Some(Err(SinkError::HandlerFlush { .. }))
    ));
    assert!(script.machine.check_open().is_ok());
}

#[test]
fn closing_gives_every_accepted_record_its_verdict_and_then_ends() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByKey);
    assert_eq!(script.sent(), [record]);
    script.snapshot(1).unwrap();
    assert!(script.machine.close(script.now));
    assert!(
        !script.machine.close(script.now),
        "asked twice, the first stands"
    );
    assert!(matches!(
        script.machine.check_open(),
        Err(SinkError::Closed { .. })
    ));
    script.answer(record, failed(Code::Unavailable));
    script.advance(SECOND);
    assert_eq!(script.sent(), [record], "closing goes on trying");
    assert!(script.machine.poll_closed().is_none());
    script.answer(record, created("n"));
    assert_eq!(script.snapshots(), [(1, true)]);
    assert!(script.ended());
    assert!(matches!(script.machine.poll_closed(), Some(Ok(()))));
    assert!(matches!(script.machine.poll_closed(), Some(Ok(()))));
    let late = script.snapshot(2).unwrap_err();
    assert!(matches!(late, CheckpointError::Closed { .. }), "{late}");
}

#[test]
fn an_end_waits_for_snapshots_that_still_wait_for_an_earlier_flush() {
    let mut script = Script::new();
    script.reject("a");
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Drop));
    script.snapshot(1).unwrap();
    let early = script.flushes().remove(0);
    script.reject("b");
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Drop));
    script.machine.close(script.now);
    let late = script.flushes().remove(0);
    script.flushed(late, true);
    assert!(!script.ended(), "the snapshot has no answer yet");
    script.flushed(early, true);
    assert_eq!(script.snapshots(), [(1, true)]);
    assert!(script.ended());
}

#[test]
fn a_handler_that_cannot_flush_at_the_end_makes_the_end_an_error() {
    let mut script = Script::new();
    script.reject("a");
    let (job, _) = script.handled().remove(0);
    script.verdict(job, Ok(Verdict::Drop));
    script.machine.close(script.now);
    let flush = script.flushes().remove(0);
    script.flushed(flush, false);
    let closed = script.machine.poll_closed();
    assert!(
        matches!(closed, Some(Err(SinkError::HandlerFlush { .. }))),
        "{closed:?}"
    );
    assert!(script.ended());
}

#[test]
fn closing_is_over_within_its_budget_and_tells_how_many_records_have_no_verdict() {
    let mut script = Script::new();
    script.accept("a", Named::ByKey);
    script.accept("b", Named::ByKey);
    script.machine.close(script.now);
    assert_eq!(script.sent().len(), 2);
    assert_eq!(
        script.machine.poll_timeout(),
        Some(script.now + 30 * SECOND)
    );
    script.advance(30 * SECOND);
    match script.machine.poll_closed() {
        Some(Err(SinkError::CloseExpired { pending: 2, after })) => assert_eq!(after, 30 * SECOND),
        other => panic!("{other:?}"),
    }
    assert!(script.ended());
}

#[test]
fn records_without_a_verdict_for_the_progress_timeout_end_the_sink() {
    let mut script = Script::new();
    let stuck = script.accept("a", Named::ByKey);
    let moving = script.accept("b", Named::ByKey);
    assert_eq!(script.sent(), [stuck, moving]);
    script.advance(400 * SECOND);
    script.answer(moving, created("n"));
    script.advance(400 * SECOND);
    assert!(!script.ended(), "a verdict is progress");
    script.advance(200 * SECOND);
    match script.error() {
        SinkError::Stalled {
            destination,
            pending: 1,
            after,
        } => {
            assert_eq!(destination, "projects/demo/locations/l/queues/q");
            assert_eq!(after, 600 * SECOND);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_handler_that_does_not_answer_ends_the_sink_although_tasks_are_created_meanwhile() {
    let mut script = Script::new();
    script.reject("a");
    assert_eq!(script.handled().len(), 1);
    for _ in 0..6 {
        let record = script.accept("b", Named::ByKey);
        assert_eq!(script.sent(), [record]);
        script.answer(record, created("n"));
        assert!(!script.ended());
        script.advance(100 * SECOND);
    }
    assert!(matches!(
        script.error(),
        SinkError::HandlerStalled { pending: 1, .. }
    ));
}

#[test]
fn an_outage_makes_one_report_in_ten_seconds() {
    let mut script = Script::new();
    let records: Vec<RecordId> = (0..50)
        .map(|n| script.accept(&n.to_string(), Named::ByKey))
        .collect();
    assert_eq!(script.sent().len(), 50);
    for record in &records {
        script.answer(*record, failed(Code::Unavailable));
    }
    let reports = script.reports();
    assert!(
        matches!(reports[..], [Report::Retrying { failures: 1, .. }]),
        "{reports:?}"
    );
    script.advance(10 * SECOND);
    assert_eq!(script.sent().len(), 50);
    for record in &records {
        script.answer(*record, failed(Code::Unavailable));
    }
    let reports = script.reports();
    assert!(
        matches!(reports[..], [Report::Retrying { failures: 50, .. }]),
        "{reports:?}"
    );
}

#[test]
fn a_long_wait_for_room_is_told_after_ten_seconds_and_then_once_a_minute() {
    let mut script = Script::new();
    script.machine.await_room(script.now);
    script.advance(9 * SECOND);
    script.machine.await_room(script.now);
    assert!(script.reports().is_empty());
    script.advance(SECOND);
    let reports = script.reports();
    assert!(
        matches!(reports[..], [Report::WaitingForRoom { after }] if after == 10 * SECOND),
        "{reports:?}"
    );
    script.advance(59 * SECOND);
    assert!(script.reports().is_empty());
    script.advance(SECOND);
    assert_eq!(script.reports().len(), 1);
    script.machine.get_room();
    assert_eq!(script.machine.poll_timeout(), None);
    script.advance(600 * SECOND);
    assert!(script.reports().is_empty());
}

#[test]
fn who_submits_a_record_learns_its_own_outcome() {
    let mut script = Script::new();
    let fresh = script.submit("fresh");
    let known = script.submit("known");
    let bad = script.submit("bad");
    assert_eq!(script.sent(), [fresh, known, bad]);
    script.answer(fresh, created("fresh-name"));
    script.answer(known, failed(Code::AlreadyExists));
    script.answer(bad, failed(Code::InvalidArgument));
    let mut outcomes = Vec::new();
    for effect in script.effects() {
        match effect {
            Effect::Submitted { record, outcome } => outcomes.push((record, outcome)),
            Effect::Handle { job, .. } => script.verdict(job, Ok(Verdict::Drop)),
            _ => {}
        }
    }
    for effect in script.effects() {
        if let Effect::Submitted { record, outcome } = effect {
            outcomes.push((record, outcome));
        }
    }
    let [
        (first, Submitted::Created { name: new }),
        (second, Submitted::Duplicate { name: old }),
        (third, Submitted::Rejected { reason, cause }),
    ] = &outcomes[..]
    else {
        panic!("{outcomes:?}");
    };
    assert_eq!((*first, *second, *third), (fresh, known, bad));
    assert_eq!((new.as_str(), old.as_str()), ("fresh-name", "known"));
    assert_eq!(*reason, RejectedReason::Refused);
    assert!(
        cause
            .as_ref()
            .unwrap()
            .to_string()
            .contains("INVALID_ARGUMENT")
    );
}

#[test]
fn after_the_end_every_call_is_refused_and_changes_nothing() {
    let mut script = Script::new();
    script.accept("a", Named::ByKey);
    script.snapshot(1).unwrap();
    script.machine.fail(SinkError::NoDestination);
    script.machine.fail(SinkError::NotReady);
    assert!(script.ended());
    assert_eq!(
        script.released(),
        Limits::new(1, script.size("a")),
        "nothing is held any more"
    );
    assert!(
        matches!(script.error(), SinkError::NoDestination),
        "the first end stands"
    );
    let closed = |error: &CheckpointError| match error {
        CheckpointError::Closed { cause } => cause.to_string().contains("no queue was resolved"),
        _ => false,
    };
    assert!(closed(&script.snapshot(2).unwrap_err()));
    assert!(closed(&script.machine.commit(Epoch::new(1)).unwrap_err()));
    script.machine.abort(Epoch::new(1));
    script.machine.start_flush(script.now);
    assert!(matches!(
        script.machine.poll_flushed(),
        Some(Err(SinkError::Closed { .. }))
    ));
    assert!(!script.machine.close(script.now));
    assert!(script.try_accept("b").is_err());
    assert!(script.woke_host());
    let left = script.effects();
    assert!(left.is_empty(), "{left:?}");
    script.machine.check_invariants();
}
