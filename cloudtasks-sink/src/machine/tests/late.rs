//! Committed tasks for which it becomes too late: between the decision to send them and the call,
//! or while an operation goes on for ever.

use gcp_wire::proto::Any;
use gcp_wire::proto::longrunning::Operation;
use gcp_wire::proto::rpc::Status;
use gcp_wire::proto::tasks::BatchCreateTasksMetadata;

use super::stage::{Sent, Stage, WINDOW};
use super::*;

fn names(request: &bytes::Bytes, label: &str) -> bool {
    request
        .windows(label.len())
        .any(|part| part == label.as_bytes())
}

#[test]
fn when_the_one_that_asks_for_a_missing_queue_is_too_late_the_next_one_in_time_asks() {
    for in_batches in [false, true] {
        let mut stage = Stage::new(in_batches);
        stage.commit(1, &["first", "second", "third"]);
        for (sent, _) in stage.sent() {
            stage.refuse(sent);
        }
        assert_eq!(stage.script.stats().held, 3);
        stage.pass(WINDOW / 2);
        stage.commit(2, &["newcomer"]);
        assert!(stage.sent().is_empty(), "nobody asks for a missing queue");
        stage.script.advance(Duration::ZERO);
        let asking = stage.sent();
        assert_eq!(asking.len(), 1, "one of them does, in its time");
        assert_eq!(stage.script.stats().held, 3);

        stage.pass(WINDOW / 2 + SECOND);
        stage.is_late(asking[0].0);
        let asking = stage.sent();
        assert_eq!(asking.len(), 1, "in batches: {in_batches}");
        assert!(names(&asking[0].1, "newcomer"));
        let stats = stage.script.stats();
        assert_eq!((stats.expired, stats.held, stats.pending), (3, 0, 1));

        stage.refuse(asking[0].0);
        stage.script.advance(Duration::from_secs(60));
        assert_eq!(stage.sent().len(), 1, "it goes on asking");
    }
}

#[test]
fn of_a_batch_that_is_too_late_for_one_task_the_others_are_sent() {
    let mut stage = Stage::new(true);
    stage.commit(1, &["early"]);
    stage.pass(WINDOW - SECOND);
    stage.commit(2, &["newcomer"]);
    let both = stage.sent();
    assert_eq!(both.len(), 1);
    assert!(names(&both[0].1, "early") && names(&both[0].1, "newcomer"));
    stage.pass(2 * SECOND);
    stage.is_late(both[0].0);
    let rest = stage.sent();
    assert_eq!(rest.len(), 1);
    assert!(names(&rest[0].1, "newcomer") && !names(&rest[0].1, "early"));
    let stats = stage.script.stats();
    assert_eq!((stats.expired, stats.pending), (1, 1));
}

/// The verdict on one task: it exists.
fn exists() -> Operation {
    let status = Status {
        code: Code::AlreadyExists.number(),
        ..Status::default()
    };
    let verdicts = BatchCreateTasksMetadata {
        failed_requests: [(0, status)].into(),
        ..BatchCreateTasksMetadata::default()
    };
    Operation {
        metadata: Some(Any {
            value: verdicts.encode_to_vec(),
            ..Any::default()
        }),
        done: true,
        ..Operation::default()
    }
}

/// Answers a call of one task.
fn answer(stage: &mut Stage, sent: Sent) {
    let Sent::Many(call) = sent else {
        panic!("{sent:?} is no batch")
    };
    let (machine, now) = (&mut stage.script.machine, stage.script.now);
    machine.handle_batch_created(now, call, Ok(exists()), || 0.5);
    machine.check_invariants();
}

#[test]
fn what_becomes_too_late_while_it_waits_for_a_call_is_in_none_and_the_others_go_on() {
    let mut stage = Stage::new(true);
    // As many calls as a queue has at a time: what comes after them waits.
    stage.commit(1, &["first"]);
    let first = stage.sent().remove(0).0;
    stage.commit(2, &["second"]);
    let _second = stage.sent().remove(0);
    stage.commit(3, &["early"]);
    stage.pass(WINDOW / 2);
    stage.commit(4, &["newcomer"]);
    assert!(stage.sent().is_empty());

    stage.pass(WINDOW / 2 + SECOND);
    answer(&mut stage, first);
    let rest = stage.sent();
    assert_eq!(rest.len(), 1, "without another word to the machine");
    assert!(names(&rest[0].1, "newcomer") && !names(&rest[0].1, "early"));
    let stats = stage.script.stats();
    assert_eq!((stats.expired, stats.kept, stats.pending), (1, 1, 2));
}

#[test]
fn when_all_that_waits_for_a_call_is_too_late_it_is_kept_aside_and_no_call_is_made() {
    let mut stage = Stage::new(true);
    stage.commit(1, &["first"]);
    let first = stage.sent().remove(0).0;
    stage.commit(2, &["second"]);
    let _second = stage.sent().remove(0);
    stage.commit(3, &["a", "b"]);
    assert!(stage.sent().is_empty());
    stage.pass(WINDOW + SECOND);
    answer(&mut stage, first);
    assert!(stage.sent().is_empty());
    let stats = stage.script.stats();
    assert_eq!((stats.expired, stats.waiting, stats.pending), (2, 0, 1));
}

#[test]
fn what_is_too_late_takes_no_turn_in_the_pace_of_its_queue() {
    let mut stage = Stage::paced(1.0);
    stage.commit(1, &["sent", "a", "b", "c"]);
    stage.pass(WINDOW / 2);
    stage.commit(2, &["newcomer"]);
    // The bucket of a queue that was idle holds one task.
    let first = stage.sent();
    assert_eq!(first.len(), 1);
    assert!(names(&first[0].1, "sent"));
    assert_eq!(stage.script.stats().held_back, 4);

    stage.pass(WINDOW / 2 + SECOND);
    assert!(stage.sent().is_empty(), "the turn was that of one too late");
    let stats = stage.script.stats();
    assert_eq!((stats.expired, stats.held_back), (3, 1), "all at once");
    stage.pass(SECOND);
    let next = stage.sent();
    assert_eq!(next.len(), 1);
    assert!(names(&next[0].1, "newcomer"), "its turn is the next one");
}

#[test]
fn tasks_of_an_operation_that_never_ends_are_asked_for_again_by_name() {
    let mut stage = Stage::new(true);
    stage.commit(1, &["named"]);
    let (Sent::Many(first), bytes) = stage.sent().remove(0) else {
        panic!("a batch")
    };
    let (machine, now) = (&mut stage.script.machine, stage.script.now);
    machine.handle_batch_created(now, first, Ok(Operation::default()), || 0.5);
    let mut waited = Duration::ZERO;
    let (second, again) = loop {
        assert!(waited < WINDOW, "it is waited for without an end");
        stage.pass(SECOND);
        waited += SECOND;
        stage.script.advance(Duration::ZERO);
        let effects = stage.script.effects();
        let (machine, now) = (&mut stage.script.machine, stage.script.now);
        let mut sent = None;
        for effect in effects {
            match effect {
                Effect::ReadOperation { call, .. } => {
                    machine.handle_operation(now, call, Ok(Operation::default()), || 0.5);
                }
                Effect::CreateBatch { call, request, .. } => sent = Some((call, request)),
                _ => {}
            }
            machine.check_invariants();
        }
        if let Some(sent) = sent {
            break sent;
        }
    };
    assert!(waited >= Duration::from_secs(600), "{waited:?}");
    assert!(names(&again, "named") && again != bytes, "under another id");
    let (machine, now) = (&mut stage.script.machine, stage.script.now);
    machine.handle_batch_created(now, second, Ok(exists()), || 0.5);
    machine.check_invariants();
    let stats = stage.script.stats();
    assert_eq!((stats.duplicates, stats.pending), (1, 0));
    assert_eq!(stats.unexpected_duplicates, 0, "it was asked for before");
}
