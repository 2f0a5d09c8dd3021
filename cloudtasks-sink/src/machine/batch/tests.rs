//! A server that loses answers, and tasks that must come to one each.

mod calls;

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
