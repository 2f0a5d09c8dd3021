//! How a sink ends, and what it says before and after.

use super::*;

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
