//! The same requests for the witness and for the embedded server, whose answers must agree: what the
//! witness was held to by recordings, ours is held to here.
//!
//! What the witness does not serve, and ours does, has its tests over ours alone: App Engine targets,
//! disabled queues, request ids with wrong characters, operations that are not done, names that are free again after a while, client
//! deadlines above 30 s, and every fault.

use std::time::Duration;

use cloudtasks_sink::{Code, Endpoint, RpcError};
use gcp_emulator::cloudtasks::proto::task::{MessageType, View};
use gcp_emulator::cloudtasks::proto::{
    BatchCreateTasksMetadata, BatchCreateTasksRequest, BatchCreateTasksResponse, CreateTaskRequest,
    HttpRequest, Operation, PauseQueueRequest, Queue, Task, operation,
};
use gcp_emulator::{Emulator, Method};
use gcp_wire::{Connection, ConnectionOptions, Credentials};
use prost::Message;

use crate::servers::{QUEUE, witness};

const DEADLINE: Duration = Duration::from_secs(20);

/// A server, asked without the sink.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    connection: Connection,
    _ours: Option<Emulator>,
}

/// How a task is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Alone,
    InABatch,
}

/// What became of a task: as it is stored, or how it was refused.
pub(crate) type Outcome = Result<Task, (Code, String)>;

fn refusal(error: &RpcError) -> (Code, String) {
    (error.code(), error.to_string())
}

impl Server {
    /// The witness and ours, each with one queue, which is paused: nothing is dispatched.
    pub(crate) async fn both() -> [Self; 2] {
        let servers = [Self::witness().await, Self::ours()];
        for server in &servers {
            let name = QUEUE.to_owned();
            let paused: Queue = server
                .ask(
                    Method::PauseQueue,
                    "name",
                    QUEUE,
                    PauseQueueRequest { name },
                )
                .await
                .unwrap();
            assert_eq!(paused.state, 2, "{}", server.name);
        }
        servers
    }

    pub(crate) async fn witness() -> Self {
        Self::at("witness", witness().await)
    }

    pub(crate) fn at(name: &'static str, endpoint: Endpoint) -> Self {
        let credentials = Credentials::application_default();
        let options = ConnectionOptions::default();
        Self {
            name,
            connection: Connection::unary(endpoint, credentials, options).unwrap(),
            _ours: None,
        }
    }

    fn ours() -> Self {
        let emulator = Emulator::builder().queue(QUEUE).start();
        let server = Self::at("ours", Endpoint::in_memory(emulator.dialer()));
        Self {
            _ours: Some(emulator),
            ..server
        }
    }

    pub(crate) async fn ask<Q, A>(
        &self,
        method: Method,
        key: &'static str,
        resource: &str,
        request: Q,
    ) -> Result<A, RpcError>
    where
        Q: Message,
        A: Message + Default,
    {
        let method = gcp_wire::Method::new(method.path(), key);
        self.connection
            .call(&method, resource, request, DEADLINE)
            .await
    }

    /// Creates a task in the queue, alone or beside another one that is fine.
    pub(crate) async fn create(&self, way: Way, task: Task) -> Outcome {
        match way {
            Way::Alone => self
                .ask(Method::CreateTask, "parent", QUEUE, wanted(QUEUE, task))
                .await
                .map_err(|error| refusal(&error)),
            Way::InABatch => {
                let requests = vec![wanted(QUEUE, http(|_| {})), wanted(QUEUE, task)];
                match self.batch(QUEUE, requests, "").await {
                    Ok(operation) => verdicts(&operation, 2).remove(1),
                    Err(error) => Err(refusal(&error)),
                }
            }
        }
    }

    pub(crate) async fn batch(
        &self,
        queue: &str,
        requests: Vec<CreateTaskRequest>,
        request_id: &str,
    ) -> Result<Operation, RpcError> {
        let request = BatchCreateTasksRequest {
            parent: queue.to_owned(),
            requests,
            request_id: request_id.to_owned(),
        };
        self.ask(Method::BatchCreateTasks, "parent", queue, request)
            .await
    }
}

/// The request for a task, answered with all there is of it.
pub(crate) fn wanted(queue: &str, task: Task) -> CreateTaskRequest {
    CreateTaskRequest {
        parent: queue.to_owned(),
        task: Some(task),
        response_view: View::Full.into(),
    }
}

/// An HTTP task, changed.
pub(crate) fn http(change: impl FnOnce(&mut HttpRequest)) -> Task {
    let mut request = HttpRequest {
        url: "http://127.0.0.1:9/".to_owned(),
        ..HttpRequest::default()
    };
    change(&mut request);
    Task {
        message_type: Some(MessageType::HttpRequest(request)),
        ..Task::default()
    }
}

pub(crate) fn request_of(task: &Task) -> &HttpRequest {
    match &task.message_type {
        Some(MessageType::HttpRequest(request)) => request,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn metadata(operation: &Operation) -> BatchCreateTasksMetadata {
    let metadata = operation.metadata.as_ref().unwrap();
    BatchCreateTasksMetadata::decode(metadata.value.as_slice()).unwrap()
}

/// What a finished operation says of each of its tasks.
pub(crate) fn verdicts(operation: &Operation, count: i32) -> Vec<Outcome> {
    assert!(operation.done, "{operation:?}");
    let mut created = match &operation.result {
        Some(operation::Result::Response(response)) => {
            BatchCreateTasksResponse::decode(response.value.as_slice())
                .unwrap()
                .tasks
        }
        Some(operation::Result::Error(_)) | None => Vec::new(),
    }
    .into_iter();
    let failed = metadata(operation).failed_requests;
    (0..count)
        .map(|index| match failed.get(&index) {
            Some(status) => Err((Code::from_number(status.code), status.message.clone())),
            None => Ok(created.next().unwrap()),
        })
        .collect()
}

pub(crate) const WAYS: [Way; 2] = [Way::Alone, Way::InABatch];

pub(crate) fn code(outcome: &Outcome) -> Code {
    match outcome {
        Ok(_) => Code::Ok,
        Err((code, _)) => *code,
    }
}

/// Each task is refused as wrong for itself, or taken, by both servers and in both ways.
pub(crate) async fn all(expected: Code, tasks: Vec<(&'static str, Task)>) {
    for server in Server::both().await {
        for way in WAYS {
            for (what, task) in tasks.clone() {
                let outcome = server.create(way, task).await;
                let name = server.name;
                assert_eq!(
                    code(&outcome),
                    expected,
                    "{name} {way:?} {what}: {outcome:?}"
                );
            }
        }
    }
}

/// What both servers store of a task, in both ways.
pub(crate) async fn stored(task: Task, check: impl Fn(&Task)) {
    for server in Server::both().await {
        for way in WAYS {
            let outcome = server.create(way, task.clone()).await;
            check(&outcome.unwrap_or_else(|refusal| panic!("{} {way:?} {refusal:?}", server.name)));
        }
    }
}
