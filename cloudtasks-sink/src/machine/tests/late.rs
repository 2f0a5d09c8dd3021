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
