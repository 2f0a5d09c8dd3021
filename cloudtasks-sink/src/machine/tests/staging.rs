//! Tasks that wait for their commit, and what waits for them.

use super::stage::{Sent, Stage, WINDOW};
use super::*;

/// The default, after which a host that stands still is told.
const PATIENCE: Duration = Duration::from_secs(600);

impl Stage {
    fn accept(&mut self, count: usize) {
        for number in 0..count {
            self.script.accept(&number.to_string(), Named::Minted);
        }
    }

    fn commit_epoch(&mut self, epoch: u64) {
        self.script.machine.commit(Epoch::new(epoch)).unwrap();
        self.script.machine.check_invariants();
    }

    fn records(&mut self) -> Vec<RecordId> {
        let sent = self.sent().into_iter();
        sent.map(|(sent, _)| match sent {
            Sent::One(record) => record,
            Sent::Many(call) => panic!("{call:?}"),
        })
        .collect()
    }

    fn wants(&mut self) -> bool {
        self.script.machine.wants_checkpoint()
    }

    fn stand(&mut self, time: Duration) {
        self.pass(time);
        self.script.advance(Duration::ZERO);
    }
}

#[test]
fn tasks_are_uncommitted_until_their_commit_and_held_until_their_verdict() {
    assert_eq!(Script::new().machine.uncommitted(), None, "none ever is");
    let mut stage = Stage::new(false);
    stage.accept(2);
    let size = stage.script.size("0");
    assert_eq!(stage.script.machine.uncommitted(), Some(2));
    assert_eq!(stage.script.machine.held(), Limits::new(2, 2 * size));
    stage.script.snapshot(1).unwrap();
    stage.commit_epoch(1);
    assert_eq!(stage.script.machine.uncommitted(), Some(0));
    for record in stage.records() {
        stage.script.answer(record, created("a task"));
    }
    assert_eq!(stage.script.machine.held(), Limits::new(0, 0));
}

#[test]
fn the_window_of_a_committed_task_begins_with_its_seal() {
    let mut stage = Stage::new(false);
    assert_eq!(stage.script.machine.next_deadline(), None);
    assert_eq!(stage.script.machine.window_used(), 0);
    stage.commit(1, &["task"]);
    assert!(stage.script.machine.next_deadline().is_some());
    stage.pass(WINDOW / 4);
    assert_eq!(stage.script.machine.window_used(), 25);
    stage.pass(WINDOW);
    assert_eq!(stage.script.machine.window_used(), 100);
}

#[test]
fn a_host_that_stands_before_a_stage_full_of_what_it_did_not_commit_ends_the_sink() {
    let full = Limits::items(3);
    let mut stage = Stage::limited(full, false);
    stage.accept(3);
    stage.script.machine.host_waits(stage.script.now);
    assert_eq!(
        stage.script.machine.poll_timeout(),
        Some(stage.script.now + PATIENCE)
    );
    stage.stand(PATIENCE - SECOND);
    assert!(!stage.script.ended());
    stage.stand(SECOND);
    let error = stage.script.error();
    assert!(
        matches!(error, SinkError::StageFull { items: 3, after, .. } if after == PATIENCE),
        "{error:?}"
    );
}

#[test]
fn a_host_that_waits_for_something_else_or_goes_on_ends_nothing() {
    let full = Limits::items(3);
    let mut room = Stage::limited(full, false);
    room.accept(2);
    room.script.machine.host_waits(room.script.now);
    let mut committed = Stage::limited(full, false);
    committed.commit(1, &["a", "b", "c"]);
    committed.script.machine.host_waits(committed.script.now);
    let mut goes_on = Stage::limited(full, false);
    goes_on.accept(3);
    goes_on.script.machine.host_waits(goes_on.script.now);
    goes_on.script.machine.host_goes_on();
    for stage in [&mut room, &mut committed, &mut goes_on] {
        stage.stand(PATIENCE);
        assert!(!stage.script.ended());
        stage.script.machine.check_open().unwrap();
    }
}

#[test]
fn a_verdict_gives_a_host_that_stands_its_time_again() {
    let mut stage = Stage::limited(Limits::items(3), false);
    stage.commit(1, &["committed"]);
    let record = stage.records()[0];
    stage.accept(2);
    stage.script.machine.host_waits(stage.script.now);
    stage.stand(PATIENCE - SECOND);
    stage.script.answer(record, created("committed"));
    stage.accept(1);
    stage.stand(SECOND);
    assert!(!stage.script.ended());
    stage.stand(PATIENCE);
    assert!(stage.script.ended());
}

#[test]
fn a_cut_waits_for_the_handlers_verdict_on_what_was_rejected_before_it_was_staged() {
    let mut stage = Stage::new(false);
    stage.script.reject("nowhere");
    stage.accept(1);
    stage.script.snapshot(1).unwrap();
    assert!(stage.script.snapshots().is_empty());
    let (job, _) = stage.script.handled().remove(0);
    stage.script.verdict(job, Ok(Verdict::Drop));
    for job in stage.script.flushes() {
        stage.script.flushed(job, true);
    }
    assert_eq!(stage.script.snapshots(), [(1, true)]);
}

#[test]
fn a_sink_that_closes_waits_for_what_was_committed_and_says_what_was_not() {
    let mut stage = Stage::new(false);
    stage.commit(1, &["committed"]);
    let record = stage.records()[0];
    stage.accept(1);
    stage.script.machine.close(stage.script.now);
    for job in stage.script.flushes() {
        stage.script.flushed(job, true);
    }
    assert!(!stage.script.ended());
    stage.script.answer(record, created("committed"));
    assert!(stage.script.ended());
    let error = stage.script.machine.poll_closed();
    assert!(
        matches!(error, Some(Err(SinkError::Uncommitted { staged: 1 }))),
        "{error:?}"
    );
}

#[test]
fn an_epoch_that_is_aborted_fills_the_open_one_again() {
    // By the number of tasks, and by their bytes.
    let size = Stage::new(false).script.size("0");
    for limit in [Limits::items(10), Limits::new(1_000, 10 * size)] {
        let mut stage = Stage::limited(limit, false);
        stage.accept(5);
        assert!(stage.wants());
        stage.script.machine.abort(Epoch::new(9));
        assert!(!stage.wants(), "it was told, and no epoch came back");
        stage.script.snapshot(1).unwrap();
        assert!(!stage.wants());
        stage.script.machine.abort(Epoch::new(1));
        assert!(stage.wants(), "{limit:?}");
    }
}

#[test]
fn an_epoch_that_is_folded_into_a_sealed_one_leaves_the_open_one_empty() {
    let mut stage = Stage::limited(Limits::items(10), false);
    for epoch in [1, 2] {
        stage.accept(3);
        stage.script.snapshot(epoch).unwrap();
    }
    stage.script.machine.abort(Epoch::new(1));
    assert!(!stage.wants());
}

#[test]
fn a_stage_full_of_tasks_of_a_missing_queue_wants_a_checkpoint_unless_one_of_them_asks() {
    let mut stage = Stage::limited(Limits::items(3), false);
    stage.commit(1, &["a", "b"]);
    for (sent, _) in stage.sent() {
        stage.refuse(sent);
    }
    assert_eq!(stage.script.stats().held, 2);
    stage.script.advance(Duration::from_secs(60));
    let asks = stage.sent().remove(0).0;
    stage.accept(1);
    assert!(!stage.wants(), "the one that asks may make room");
    stage.refuse(asks);
    assert!(stage.wants());
}

#[test]
fn when_a_missing_queue_takes_one_task_the_others_follow() {
    let mut stage = Stage::new(false);
    stage.commit(1, &["a", "b", "c"]);
    for (sent, _) in stage.sent() {
        stage.refuse(sent);
    }
    stage.script.advance(Duration::from_secs(60));
    let asks = stage.records();
    assert_eq!(asks.len(), 1);
    stage.script.answer(asks[0], created("a task"));
    assert_eq!(stage.records().len(), 2);
    assert_eq!(stage.script.stats().held, 0);
}

#[test]
fn a_sink_that_ended_holds_nothing_back_for_a_queue() {
    let mut stage = Stage::new(false);
    stage.commit(1, &["a", "b"]);
    for (sent, _) in stage.sent() {
        stage.refuse(sent);
    }
    assert_eq!(stage.script.stats().held, 2);
    let error = SinkError::Uncommitted { staged: 0 };
    stage.script.machine.fail(error);
    stage.script.machine.check_invariants();
    assert!(stage.script.ended());
    let stats = stage.script.stats();
    assert_eq!((stats.held, stats.pending, stats.with_handler), (0, 0, 0));
}

#[test]
fn what_the_handler_took_leaves_the_state_with_its_flush_which_is_asked_for_until_it_works() {
    let mut stage = Stage::new(false);
    stage.commit(1, &["refused", "created"]);
    let records = stage.records();
    stage
        .script
        .answer(records[0], failed(Code::InvalidArgument));
    stage.script.answer(records[1], created("created"));
    let (job, _) = stage.script.handled().remove(0);
    stage.script.verdict(job, Ok(Verdict::Drop));
    let flush = stage.script.flushes();
    assert_eq!(flush.len(), 1);
    assert!(stage.script.commits().is_empty());
    stage.script.flushed(flush[0], false);
    assert!(stage.script.flushes().is_empty(), "not at once");
    let due = stage.script.machine.poll_timeout().unwrap();
    stage.pass(due - stage.script.now);
    stage.script.advance(Duration::ZERO);
    let flush = stage.script.flushes();
    assert_eq!(flush.len(), 1);
    assert!(stage.script.commits().is_empty());
    stage.script.flushed(flush[0], true);
    let verdicts = stage.script.commits().into_iter();
    let verdicts: Vec<_> = verdicts
        .map(|(_, settled, retained)| (settled, retained))
        .collect();
    assert_eq!(verdicts, [(1, 1)]);
}

#[test]
fn a_task_that_is_refused_for_good_is_counted_and_kept() {
    let mut stage = Stage::new(false);
    stage.commit(1, &["refused"]);
    let record = stage.records()[0];
    stage.script.answer(record, failed(Code::InvalidArgument));
    let (job, _) = stage.script.handled().remove(0);
    stage.script.verdict(job, Ok(Verdict::Fail));
    let stats = stage.script.stats();
    assert_eq!((stats.refused, stats.expired, stats.kept), (1, 0, 1));
}

#[test]
fn a_flush_that_is_cancelled_has_no_outcome() {
    let mut script = Script::new();
    let record = script.accept("task", Named::ByKey);
    script.machine.start_flush(script.now);
    assert_eq!(script.sent(), [record]);
    script.machine.cancel_flush();
    script.answer(record, created("task"));
    assert!(script.machine.poll_flushed().is_none());
}

#[test]
fn rights_that_are_missing_close_a_queue_and_other_answers_do_not() {
    let is_denied = |code| {
        let error = gcp_wire::RpcError::status("CreateTask", code, "scripted");
        staged::is_denied(&error)
    };
    let codes = [
        Code::PermissionDenied,
        Code::Unauthenticated,
        Code::NotFound,
        Code::Internal,
    ];
    assert_eq!(codes.map(is_denied), [true, true, false, false]);
}
