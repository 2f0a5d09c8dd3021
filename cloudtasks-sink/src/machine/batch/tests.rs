//! A server that loses answers, and tasks that must come to one each.

use std::collections::BTreeMap;
use std::time::Duration;

use gcp_wire::Code;
use gcp_wire::proto::longrunning::operation;
use gcp_wire::proto::tasks::batch_create_tasks_metadata::State;
use gcp_wire::proto::tasks::{
    BatchCreateTasksMetadata, BatchCreateTasksRequest, BatchCreateTasksResponse, CreateTaskRequest,
    HttpRequest, Task, task::MessageType,
};
use gcp_wire::proto::{Any, rpc};
use proptest::prelude::*;
use prost::Message;

use super::super::RecordId;
use super::*;

const QUEUES: [&str; 2] = [
    "projects/p/locations/l/queues/a",
    "projects/p/locations/l/queues/b",
];

fn queue(index: usize) -> QueueName {
    QUEUES[index % 2].parse().unwrap()
}

fn status(code: Code) -> RpcError {
    RpcError::status("BatchCreateTasks", code, "said so")
}

fn budget() -> RetryBudget {
    RetryBudget::new(8, Duration::from_millis(100), Duration::from_secs(10))
}

fn item(record: u64, queue: &QueueName, body: &str, name: Option<&str>) -> Item {
    let full = name.map(|name| format!("{}/tasks/{name}", queue.as_str()));
    let request = CreateTaskRequest {
        parent: queue.as_str().to_owned(),
        task: Some(Task {
            name: full.clone().unwrap_or_default(),
            message_type: Some(MessageType::HttpRequest(HttpRequest {
                url: "http://h/".to_owned(),
                body: body.to_owned().into(),
                ..HttpRequest::default()
            })),
            ..Task::default()
        }),
        response_view: 0,
    };
    Item {
        record: RecordId::of(record),
        request: request.encode_to_vec().into(),
        name: full,
        again: false,
        may_exist: false,
    }
}

fn body_of(task: &Task) -> String {
    match &task.message_type {
        Some(MessageType::HttpRequest(request)) => {
            String::from_utf8(request.body.to_vec()).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

/// The service as far as batches see it.
#[derive(Default)]
struct Server {
    /// The bodies of the tasks that exist.
    tasks: Vec<String>,
    names: BTreeMap<String, ()>,
    operations: BTreeMap<String, Operation>,
    /// Bodies that refuse a whole call.
    poison: Option<String>,
}

impl Server {
    fn create(&mut self, request: &Bytes) -> Result<Operation, RpcError> {
        let request = BatchCreateTasksRequest::decode(request.clone()).unwrap();
        assert!(!request.requests.is_empty() && request.requests.len() <= 100);
        let name = format!("projects/p/locations/l/operations/{}", request.request_id);
        let tasks: Vec<Task> = request
            .requests
            .into_iter()
            .map(|one| {
                assert_eq!(one.parent, request.parent);
                one.task.unwrap()
            })
            .collect();
        let mut names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        let is_poison = |task: &Task| Some(body_of(task)) == self.poison;
        if self.operations.contains_key(&name) || tasks.iter().any(is_poison) {
            return Err(status(Code::InvalidArgument));
        }
        let mut created = Vec::new();
        let mut failed = BTreeMap::new();
        for (index, task) in (0_i32..).zip(tasks) {
            let fault = |code: Code| rpc::Status {
                code: code.number(),
                ..rpc::Status::default()
            };
            if body_of(&task).starts_with("bad") {
                failed.insert(index, fault(Code::InvalidArgument));
            } else if !task.name.is_empty() && self.names.insert(task.name.clone(), ()).is_some() {
                failed.insert(index, fault(Code::AlreadyExists));
            } else {
                self.tasks.push(body_of(&task));
                created.push(task);
            }
        }
        let operation = done(&name, created, failed);
        self.operations.insert(name, operation.clone());
        Ok(operation)
    }

    fn read(&self, name: &str) -> Result<Operation, RpcError> {
        self.operations
            .get(name)
            .cloned()
            .ok_or_else(|| status(Code::NotFound))
    }
}

fn done(name: &str, created: Vec<Task>, failed: BTreeMap<i32, rpc::Status>) -> Operation {
    let any = |value: Vec<u8>| Any {
        type_url: String::new(),
        value,
    };
    let state = match (created.is_empty(), failed.is_empty()) {
        (_, true) => State::Succeeded,
        (true, false) => State::Failed,
        (false, false) => State::PartiallySucceeded,
    };
    let metadata = BatchCreateTasksMetadata {
        state: state.into(),
        failed_requests: failed,
        ..BatchCreateTasksMetadata::default()
    };
    Operation {
        name: name.to_owned(),
        metadata: Some(any(metadata.encode_to_vec())),
        done: true,
        result: Some(if created.is_empty() {
            operation::Result::Error(rpc::Status {
                code: 3,
                ..rpc::Status::default()
            })
        } else {
            let response = BatchCreateTasksResponse { tasks: created };
            operation::Result::Response(any(response.encode_to_vec()))
        }),
    }
}

struct World {
    batches: Batches,
    server: Server,
    now: Instant,
    answers: BTreeMap<u64, (Answer, bool)>,
    ambiguous: usize,
    calls: Vec<usize>,
    reads: usize,
}

impl World {
    fn new(size: Batch) -> Self {
        Self {
            batches: Batches::new(size, budget(), 100, "i".to_owned()),
            server: Server::default(),
            now: crate::driver::clock::now(),
            answers: BTreeMap::new(),
            ambiguous: 0,
            calls: Vec::new(),
            reads: 0,
        }
    }

    fn take(&mut self, answered: Answered) {
        for (record, answer, may_exist) in answered.records {
            let before = self.answers.insert(record.number(), (answer, may_exist));
            assert!(before.is_none(), "{record:?} was answered twice");
        }
    }

    /// The next request, once time has come for one.
    fn next(&mut self) -> Option<Request> {
        self.batches.check_invariants();
        let request = self.batches.poll_request().or_else(|| {
            self.now = self.batches.next_due()?;
            self.batches.handle_timeout(self.now);
            self.batches.poll_request()
        })?;
        match &request {
            Request::Create {
                tasks, ambiguous, ..
            } => {
                self.calls.push(*tasks);
                self.ambiguous += ambiguous;
            }
            Request::Read { .. } => self.reads += 1,
        }
        Some(request)
    }

    fn created(&mut self, call: CallId, answer: Result<Operation, RpcError>) {
        let answered = self.batches.handle_created(self.now, call, answer, 0.5);
        self.take(answered);
    }

    fn read(&mut self, call: CallId, answer: Result<Operation, RpcError>) {
        let answered = self.batches.handle_read(self.now, call, answer, 0.5);
        self.take(answered);
    }

    /// Serves whatever is asked for.
    fn serve(&mut self) {
        while let Some(request) = self.next() {
            match request {
                Request::Create { call, request, .. } => {
                    let answer = self.server.create(&request);
                    self.created(call, answer);
                }
                Request::Read { call, operation } => {
                    let answer = self.server.read(&operation);
                    self.read(call, answer);
                }
            }
        }
    }

    fn push(&mut self, record: u64, body: &str, name: Option<&str>) {
        self.batches
            .push(&queue(0), item(record, &queue(0), body, name));
    }
}

fn create(request: Option<Request>) -> (CallId, Bytes, usize) {
    match request {
        Some(Request::Create {
            call,
            request,
            tasks,
            ..
        }) => (call, request, tasks),
        other => panic!("{other:?}"),
    }
}

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

/// What the wire does to one call.
#[derive(Debug, Clone, Copy)]
enum Wire {
    Served,
    LostBefore,
    LostAfter,
    Refused,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every record is answered once, what is answered as created exists, and nothing exists twice
    /// unless it was counted; a name never does.
    #[test]
    fn every_record_gets_one_answer_and_one_task(
        records in proptest::collection::vec((0_usize..2, proptest::option::of(0_u8..30), 0_u8..8), 1..60),
        wires in proptest::collection::vec(prop_oneof![
            4 => Just(Wire::Served),
            1 => Just(Wire::LostBefore),
            2 => Just(Wire::LostAfter),
            1 => Just(Wire::Refused),
        ], 0..60),
        late in 0_usize..60,
        tasks in 1_usize..12,
        has_poison in any::<bool>(),
    ) {
        let mut world = World::new(Batch::up_to(tasks));
        let expected: Vec<(String, Option<String>)> = records.iter().enumerate().map(|(index, (_, name, kind))| {
            let kind = if *kind == 0 { "bad" } else { "good" };
            (format!("{kind} {index}"), name.map(|name| format!("n{name}")))
        }).collect();
        if has_poison {
            world.server.poison = Some(expected[0].0.clone());
        }
        let mut pushed = 0;
        let mut step = 0;
        loop {
            while pushed < records.len() && (pushed < late || step > 3) {
                let on = queue(records[pushed].0);
                let (body, name) = &expected[pushed];
                world.batches.push(&on, item(pushed as u64, &on, body, name.as_deref()));
                pushed += 1;
            }
            let wire = wires.get(step).copied().unwrap_or(Wire::Served);
            step += 1;
            let Some(request) = world.next() else {
                if pushed < records.len() {
                    continue;
                }
                break;
            };
            match (request, wire) {
                (Request::Create { call, .. }, Wire::LostBefore) => world.created(call, Err(status(Code::Unavailable))),
                (Request::Create { call, .. }, Wire::Refused) => world.created(call, Err(status(Code::ResourceExhausted))),
                (Request::Create { call, request, .. }, Wire::LostAfter) => {
                    let _lost = world.server.create(&request);
                    world.created(call, Err(status(Code::Unavailable)));
                }
                (Request::Create { call, request, .. }, Wire::Served) => {
                    let answer = world.server.create(&request);
                    world.created(call, answer);
                }
                (Request::Read { call, operation }, Wire::Served | Wire::Refused) => {
                    let answer = world.server.read(&operation);
                    world.read(call, answer);
                }
                (Request::Read { call, .. }, Wire::LostBefore | Wire::LostAfter) => {
                    world.read(call, Err(status(Code::Unavailable)));
                }
            }
        }
        prop_assert_eq!(world.answers.len(), records.len());
        prop_assert!(world.batches.calls.is_empty() && world.batches.lanes.is_empty());
        prop_assert_eq!(world.batches.sent, 0);
        let copies = |body: &str| world.server.tasks.iter().filter(|task| *task == body).count();
        let mut extra = 0;
        for (index, (body, name)) in expected.iter().enumerate() {
            let (answer, may_exist) = &world.answers[&(index as u64)];
            let exists = copies(body);
            match answer {
                Answer::Created(_) => prop_assert!(exists >= 1, "{} was not created", body),
                // A name that exists stands for the task that has it.
                Answer::Failed(error) if error.code() == Code::AlreadyExists => prop_assert!(name.is_some()),
                Answer::Failed(_) => prop_assert_eq!(exists, 0, "{} was refused and exists", body),
                Answer::Spent { .. } => prop_assert!(exists <= 1 || *may_exist),
                Answer::Unknown(error) => prop_assert!(false, "{}", error),
            }
            if name.is_some() {
                prop_assert!(exists <= 1, "{} exists twice", body);
            }
            extra += exists.saturating_sub(1);
        }
        prop_assert!(extra <= world.ambiguous, "{} of {}", extra, world.ambiguous);
    }
}
