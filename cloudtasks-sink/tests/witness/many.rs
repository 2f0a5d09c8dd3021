//! Creating many tasks in one call.

use cloudtasks_sink::Code;
use gcp_emulator::Method;
use gcp_emulator::cloudtasks::proto::batch_create_tasks_metadata::State;
use gcp_emulator::cloudtasks::proto::{
    CreateTaskRequest, GetOperationRequest, ListTasksRequest, ListTasksResponse, Operation, Task,
    operation,
};

use crate::exchange::{Server, http, metadata, verdicts, wanted};
use crate::servers::QUEUE;

fn named(id: &str) -> CreateTaskRequest {
    let task = Task {
        name: format!("{QUEUE}/tasks/{id}"),
        ..http(|_| {})
    };
    wanted(QUEUE, task)
}

fn wrong(id: &str) -> CreateTaskRequest {
    let mut request = named(id);
    request.task = Some(Task {
        name: format!("{QUEUE}/tasks/{id}"),
        ..http(|request| request.url = "ftp://h/".to_owned())
    });
    request
}

async fn count(server: &Server) -> usize {
    let request = ListTasksRequest {
        parent: QUEUE.to_owned(),
        page_size: 1_000,
        ..ListTasksRequest::default()
    };
    let page: ListTasksResponse = server
        .ask(Method::ListTasks, "parent", QUEUE, request)
        .await
        .unwrap();
    page.tasks.len()
}

async fn operation(server: &Server, name: &str) -> Result<Operation, Code> {
    let request = GetOperationRequest {
        name: name.to_owned(),
    };
    server
        .ask(Method::GetOperation, "name", name, request)
        .await
        .map_err(|error| error.code())
}

#[tokio::test]
async fn a_call_that_is_wrong_as_a_whole_creates_nothing() {
    for server in Server::both().await {
        let elsewhere = CreateTaskRequest {
            parent: "projects/demo/locations/us-central1/queues/q2".to_owned(),
            ..wanted(QUEUE, http(|_| {}))
        };
        let many = vec![wanted(QUEUE, http(|_| {})); 101];
        for (what, requests) in [
            ("101 tasks", many),
            ("one name twice", vec![named("a"), named("a")]),
            ("a malformed name", vec![named("a"), named("b c")]),
            ("another queue", vec![named("a"), elsewhere]),
        ] {
            let refused = server.batch(QUEUE, requests, "").await.unwrap_err();
            let server = server.name;
            assert_eq!(refused.code(), Code::InvalidArgument, "{server}: {what}");
        }
        assert_eq!(count(&server).await, 0, "{}", server.name);
    }
}

#[tokio::test]
async fn a_hundred_tasks_fit_into_one_call() {
    for server in Server::both().await {
        let many = vec![wanted(QUEUE, http(|_| {})); 100];
        let done = server.batch(QUEUE, many, "").await.unwrap();
        assert!(verdicts(&done, 100).iter().all(Result::is_ok));
        assert_eq!(metadata(&done).state(), State::Succeeded);
        assert_eq!(count(&server).await, 100);
    }
}

#[tokio::test]
async fn every_task_of_a_call_has_a_verdict_of_its_own() {
    for server in Server::both().await {
        server.batch(QUEUE, vec![named("taken")], "").await.unwrap();
        let requests = vec![named("a"), wrong("b"), named("taken"), named("c")];
        let done = server.batch(QUEUE, requests, "id-1").await.unwrap();
        let location = "projects/demo/locations/us-central1";
        assert_eq!(done.name, format!("{location}/operations/id-1"));
        assert_eq!(metadata(&done).state(), State::PartiallySucceeded);
        let codes: Vec<Code> = verdicts(&done, 4)
            .into_iter()
            .map(|verdict| verdict.map_or_else(|(code, _)| code, |_| Code::Ok))
            .collect();
        let expected = [
            Code::Ok,
            Code::InvalidArgument,
            Code::AlreadyExists,
            Code::Ok,
        ];
        assert_eq!(codes, expected, "{}", server.name);
        assert_eq!(operation(&server, &done.name).await, Ok(done));
    }
}

#[tokio::test]
async fn a_call_of_which_every_task_fails_has_no_answer_but_their_verdicts() {
    for server in Server::both().await {
        let done = server
            .batch(QUEUE, vec![wrong("a"), wrong("b")], "")
            .await
            .unwrap();
        let of = metadata(&done);
        assert_eq!(of.state(), State::Failed, "{}", server.name);
        assert_eq!(of.failed_requests.len(), 2);
        let answered = matches!(done.result, Some(operation::Result::Response(_)));
        assert!(!answered, "{}: {done:?}", server.name);
    }
}

#[tokio::test]
async fn the_second_call_under_one_request_id_is_refused_and_the_operation_tells_of_the_first() {
    for server in Server::both().await {
        let first = server.batch(QUEUE, vec![named("a")], "id-1").await.unwrap();
        let second = server
            .batch(QUEUE, vec![named("b")], "id-1")
            .await
            .unwrap_err();
        assert_eq!(second.code(), Code::InvalidArgument, "{}", server.name);
        assert_eq!(count(&server).await, 1, "{}", server.name);
        assert_eq!(operation(&server, &first.name).await, Ok(first));
        let none = "projects/demo/locations/us-central1/operations/never";
        assert_eq!(operation(&server, none).await, Err(Code::NotFound));
    }
}
