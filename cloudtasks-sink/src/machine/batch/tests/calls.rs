//! Calls, their answers and their operations.

use super::*;

#[test]
fn a_call_leaves_at_once_and_the_next_ones_grow_while_two_are_under_way() {
    let mut world = World::new(Batch::up_to(10));
    let mut first = Vec::new();
    for record in 0..2 {
        world.push(record, "x", None);
        first.push(create(world.next()));
    }
    assert_eq!(first[0].2, 1);
    for record in 2..27 {
        world.push(record, "x", None);
        assert!(world.next().is_none());
    }
    for (call, request, _) in first {
        let answer = world.server.create(&request);
        world.created(call, answer);
    }
    world.serve();
    assert_eq!(world.calls, [1, 1, 10, 10, 5]);
    assert_eq!(world.server.tasks.len(), 27);
    assert!(
        world.batches.lanes.is_empty(),
        "a queue without tasks is forgotten"
    );
}

#[test]
fn an_answer_that_was_lost_is_read_from_the_operation_and_nothing_is_made_twice() {
    let mut world = World::new(Batch::up_to(100));
    for (record, body) in [(0, "a"), (1, "bad"), (2, "c")] {
        world.push(record, body, None);
    }
    let (call, request, _) = create(world.next());
    world.server.create(&request).unwrap();
    world.created(call, Err(status(Code::Unavailable)));
    let (again, same, _) = create(world.next());
    assert_eq!(
        (again, &same),
        (call, &request),
        "the same bytes under the same request id"
    );
    let refusal = world.server.create(&same);
    world.created(call, refusal);
    world.serve();
    assert_eq!((world.reads, world.ambiguous), (1, 0));
    assert_eq!(world.server.tasks, ["a", "c"]);
    assert!(matches!(world.answers[&0].0, Answer::Created(_)));
    assert!(
        matches!(&world.answers[&1].0, Answer::Failed(error) if error.code() == Code::InvalidArgument)
    );
    assert!(matches!(world.answers[&2].0, Answer::Created(_)));
}

#[test]
fn a_call_that_never_arrived_is_carried_out_by_the_second_one() {
    let mut world = World::new(Batch::up_to(100));
    world.push(0, "a", None);
    world.push(1, "b", None);
    let (call, _, _) = create(world.next());
    world.created(call, Err(status(Code::Unavailable)));
    world.serve();
    assert_eq!((world.reads, world.calls.len()), (0, 2));
    assert_eq!(world.server.tasks, ["a", "b"]);
}

#[test]
fn a_refusal_of_the_whole_call_is_split_down_to_the_one_task() {
    let mut world = World::new(Batch::up_to(100));
    world.server.poison = Some("poison".to_owned());
    for record in 0..40 {
        world.push(record, if record == 17 { "poison" } else { "x" }, None);
    }
    world.serve();
    assert_eq!(world.server.tasks.len(), 39);
    assert_eq!((world.reads, world.ambiguous), (0, 0));
    for (record, (answer, may_exist)) in &world.answers {
        assert!(!may_exist);
        assert_eq!(
            matches!(answer, Answer::Failed(_)),
            *record == 17,
            "{answer:?}"
        );
    }
}

#[test]
fn a_refusal_after_a_lost_answer_without_an_operation_is_asked_again_and_then_split_and_counted() {
    let mut world = World::new(Batch::up_to(100));
    world.server.poison = Some("poison".to_owned());
    for record in 0..4 {
        world.push(record, if record == 3 { "poison" } else { "x" }, None);
    }
    let (call, _, _) = create(world.next());
    world.created(call, Err(status(Code::DeadlineExceeded)));
    world.serve();
    assert_eq!(world.reads, 2, "an operation may show a moment later");
    assert_eq!(
        world.ambiguous,
        4 + 2,
        "what cannot be known is counted, by call"
    );
    assert_eq!(world.server.tasks.len(), 3);
    assert!(world.answers[&3].1);
}

#[test]
fn an_operation_that_is_not_done_is_read_until_it_is() {
    let mut world = World::new(Batch::up_to(100));
    world.push(0, "a", None);
    let (call, request, _) = create(world.next());
    let finished = world.server.create(&request).unwrap();
    let running = Operation {
        done: false,
        result: None,
        metadata: None,
        name: "projects/p/locations/l/operations/of-its-own".to_owned(),
    };
    world.created(call, Ok(running.clone()));
    for _ in 0..20 {
        let Some(Request::Read { operation, .. }) = world.next() else {
            panic!("nobody asks")
        };
        assert_eq!(operation, running.name, "the service's name for it");
        assert!(world.answers.is_empty());
        world.read(call, Ok(running.clone()));
    }
    let Some(Request::Read { .. }) = world.next() else {
        panic!("nobody asks")
    };
    world.read(call, Ok(finished));
    assert!(matches!(world.answers[&0].0, Answer::Created(_)));
    assert_eq!(world.calls, [1], "it was created once");
}

#[test]
fn an_operation_that_cannot_be_read_rejects_no_record() {
    for code in [
        Code::PermissionDenied,
        Code::InvalidArgument,
        Code::AlreadyExists,
    ] {
        let mut world = World::new(Batch::up_to(100));
        world.push(0, "a", None);
        let (call, _, _) = create(world.next());
        world.created(call, Err(status(Code::Unavailable)));
        let (call, _, _) = create(world.next());
        world.created(call, Err(status(Code::InvalidArgument)));
        let Some(Request::Read { .. }) = world.next() else {
            panic!("nobody asks")
        };
        world.read(call, Err(status(code)));
        assert!(
            matches!(world.answers[&0], (Answer::Unknown(_), true)),
            "{code:?}"
        );
    }
}

#[test]
fn a_call_that_exists_without_an_operation_is_no_success_of_its_tasks() {
    let mut world = World::new(Batch::up_to(100));
    world.push(0, "a", Some("n"));
    while let Some(request) = world.next() {
        match request {
            Request::Create { call, .. } => world.created(call, Err(status(Code::AlreadyExists))),
            Request::Read { call, .. } => world.read(call, Err(status(Code::NotFound))),
        }
    }
    assert!(matches!(world.answers[&0].0, Answer::Unknown(_)));
    assert_eq!((world.calls.len(), world.reads), (2, 2));
}

#[test]
fn a_call_is_tried_as_often_as_a_single_creation() {
    let mut world = World::new(Batch::up_to(100));
    world.push(0, "a", None);
    while let Some(request) = world.next() {
        let (call, _, _) = create(Some(request));
        world.created(call, Err(status(Code::ResourceExhausted)));
    }
    assert_eq!(world.calls.len(), 8);
    assert!(matches!(
        world.answers[&0],
        (Answer::Spent { attempts: 8, .. }, false)
    ));
}

#[test]
fn success_is_believed_only_where_the_operation_names_the_tasks() {
    let count = |operation: &Operation| match outcome::verdicts(operation, 2) {
        outcome::Verdicts::Each(answers) => answers
            .iter()
            .filter(|answer| matches!(answer, Answer::Created(_)))
            .count(),
        other @ (outcome::Verdicts::Running | outcome::Verdicts::Whole(_)) => panic!("{other:?}"),
    };
    let two = vec![Task::default(), Task::default()];
    assert_eq!(count(&done("n", two.clone(), BTreeMap::new())), 2);
    assert_eq!(count(&done("n", vec![Task::default()], BTreeMap::new())), 0);
    let mut empty = done("n", two.clone(), BTreeMap::new());
    empty.result = None;
    assert_eq!(count(&empty), 0);
    let mut cancelled = done("n", two, BTreeMap::new());
    let metadata = BatchCreateTasksMetadata {
        state: State::Cancelled.into(),
        ..BatchCreateTasksMetadata::default()
    };
    cancelled.metadata = Some(Any {
        type_url: String::new(),
        value: metadata.encode_to_vec(),
    });
    assert_eq!(count(&cancelled), 0);
}

#[test]
fn a_call_is_bounded_in_bytes_and_a_large_task_goes_alone() {
    let mut world = World::new(Batch::up_to(100).bytes(4_000));
    let large = "l".repeat(6_000);
    let body = "b".repeat(1_000);
    for (record, body) in (0..).zip([&body, &body, &large, &body]) {
        world.push(record, body, None);
    }
    world.serve();
    assert_eq!(world.calls, [2, 1, 1]);
}
