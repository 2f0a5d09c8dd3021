//! Snapshots, commits and flushes.

use super::*;

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
