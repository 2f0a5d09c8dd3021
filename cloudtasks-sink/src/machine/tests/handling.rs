//! Rejected records and the failure handler.

use super::*;

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
