//! Cloud Tasks: creating tasks.

use std::time::Duration;

use gcp_emulator::cloudtasks::proto::task::MessageType;
use gcp_emulator::cloudtasks::proto::{
    BatchCreateTasksMetadata, BatchCreateTasksRequest, BatchCreateTasksResponse, CreateTaskRequest,
    HttpRequest, Task, batch_create_tasks_metadata::State, operation,
};
use gcp_emulator::{Emulator, Fault, FaultPlan, Method, Rule};
use prost::Message;
use tonic::{Code, Request};

use crate::client::{Client, QUEUE, started};

fn task(id: &str, url: &str) -> Task {
    let name = if id.is_empty() {
        String::new()
    } else {
        format!("{QUEUE}/tasks/{id}")
    };
    let request = HttpRequest {
        url: url.to_owned(),
        body: "x".into(),
        ..HttpRequest::default()
    };
    Task {
        name,
        message_type: Some(MessageType::HttpRequest(request)),
        ..Task::default()
    }
}

fn create(id: &str) -> CreateTaskRequest {
    create_at(id, "https://example.com/orders/1")
}

fn create_at(id: &str, url: &str) -> CreateTaskRequest {
    CreateTaskRequest {
        parent: QUEUE.to_owned(),
        task: Some(task(id, url)),
        ..CreateTaskRequest::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_created_and_seen() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let created = client.create_task(create("t1")).await.unwrap();
    assert_eq!(created.name, format!("{QUEUE}/tasks/t1"));
    assert_eq!(created.create_time, Some(emulator.now().to_timestamp()));
    let unnamed = client.create_task(create("")).await.unwrap();
    let number = unnamed.name.rsplit('/').next().unwrap();
    assert!(
        number.len() >= 19 && number.chars().all(|digit| digit.is_ascii_digit()),
        "{number}"
    );
    let queue = emulator.observe().queue(QUEUE);
    assert_eq!(queue.tasks, 2);
    assert_eq!(queue.created[0].name, created.name);
    assert_eq!(queue.created[0].sent, create("t1").task.unwrap());
    assert_eq!(queue.created[1].name, unnamed.name);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_given_once() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    client.create_task(create("t1")).await.unwrap();
    let exists = client.create_task(create("t1")).await.unwrap_err();
    assert_eq!(exists.code(), Code::AlreadyExists);
    assert!(emulator.finish_task(&format!("{QUEUE}/tasks/t1")));
    let recent = client.create_task(create("t1")).await.unwrap_err();
    assert_eq!(recent.code(), Code::AlreadyExists);
    assert_ne!(exists.message(), recent.message());
    tokio::time::advance(Duration::from_secs(3600)).await;
    client.create_task(create("t1")).await.unwrap();
    let queue = emulator.observe().queue(QUEUE);
    assert_eq!((queue.tasks, queue.taken), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn how_long_a_name_stays_taken_can_be_set() {
    let emulator = started(Emulator::builder().task_names_kept(Duration::from_secs(5)));
    let mut client = Client::of(&emulator);
    client.create_task(create("t1")).await.unwrap();
    emulator.finish_task(&format!("{QUEUE}/tasks/t1"));
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(client.create_task(create("t1")).await.is_err());
    tokio::time::advance(Duration::from_secs(1)).await;
    client.create_task(create("t1")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refusals_have_the_codes_of_the_service() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let missing = CreateTaskRequest {
        parent: "projects/demo/locations/us-central1/queues/nope".to_owned(),
        task: Some(task("", "https://example.com")),
        ..CreateTaskRequest::default()
    };
    assert_eq!(
        client.create_task(missing).await.unwrap_err().code(),
        Code::NotFound
    );
    let malformed = create("order:42");
    assert_eq!(
        client.create_task(malformed).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    let no_target = CreateTaskRequest {
        task: Some(Task::default()),
        ..create("")
    };
    assert_eq!(
        client.create_task(no_target).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(emulator.observe().queue(QUEUE).refused, 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_may_not_wait_longer_than_thirty_seconds() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    for (wait, accepted) in [(30, true), (31, false)] {
        let mut request = Request::new(create(""));
        request.set_timeout(Duration::from_secs(wait));
        let answer = client.create_task(request).await;
        assert_eq!(answer.is_ok(), accepted, "{wait} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_creation_meets_its_own_task() {
    let lost = Fault::answer(gcp_emulator::Code::Unavailable, "lost").after_effect();
    let plan = FaultPlan::new().rule(Rule::on(Method::CreateTask).once().then(lost));
    let emulator = started(Emulator::builder().faults(plan));
    let mut client = Client::of(&emulator);
    assert_eq!(
        client.create_task(create("t1")).await.unwrap_err().code(),
        Code::Unavailable
    );
    assert_eq!(
        client.create_task(create("t1")).await.unwrap_err().code(),
        Code::AlreadyExists
    );
    assert_eq!(emulator.observe().queue(QUEUE).tasks, 1);
}

#[tokio::test(start_paused = true)]
async fn the_routing_header_names_the_queue() {
    let emulator = started(Emulator::builder().require_routing_header(true));
    let mut client = Client::of(&emulator);
    let bare = client.create_task(create("")).await.unwrap_err();
    assert_eq!(bare.code(), Code::InvalidArgument);
    let mut request = Request::new(create(""));
    let params = format!("parent={}", QUEUE.replace('/', "%2F"));
    request
        .metadata_mut()
        .insert("x-goog-request-params", params.parse().unwrap());
    client.create_task(request).await.unwrap();
}

fn batch(requests: Vec<CreateTaskRequest>, request_id: &str) -> BatchCreateTasksRequest {
    BatchCreateTasksRequest {
        parent: QUEUE.to_owned(),
        requests,
        request_id: request_id.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_a_verdict_per_task() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    client.create_task(create("taken")).await.unwrap();
    let requests = vec![
        create("a"),
        create_at("b", "ftp://x"),
        create("taken"),
        create("c"),
        create(""),
    ];
    let done = client.batch_create(batch(requests, "id-1")).await.unwrap();
    assert!(done.done);
    assert_eq!(
        done.name,
        "projects/demo/locations/us-central1/operations/id-1"
    );
    let metadata = done.metadata.as_ref().unwrap();
    let metadata = BatchCreateTasksMetadata::decode(metadata.value.as_slice()).unwrap();
    assert_eq!(metadata.state(), State::PartiallySucceeded);
    let codes: Vec<(i32, i32)> = metadata
        .failed_requests
        .iter()
        .map(|(index, status)| (*index, status.code))
        .collect();
    assert_eq!(codes, [(1, 3), (2, 6)]);
    let Some(operation::Result::Response(response)) = &done.result else {
        panic!("{done:?}")
    };
    let response = BatchCreateTasksResponse::decode(response.value.as_slice()).unwrap();
    assert_eq!(response.tasks.len(), 3);
    assert_eq!(client.operation(&done.name).await.unwrap(), done);
}

#[tokio::test(start_paused = true)]
async fn a_request_id_is_taken_once_and_its_operation_has_the_verdicts() {
    let lost = FaultPlan::new().rule(
        Rule::on(Method::BatchCreateTasks)
            .once()
            .then(Fault::DropConnection.after_effect()),
    );
    let emulator = started(Emulator::builder().faults(lost));
    let mut client = Client::of(&emulator);
    let name = "projects/demo/locations/us-central1/operations/id-1";
    assert_eq!(
        client.operation(name).await.unwrap_err().code(),
        Code::NotFound
    );
    client
        .batch_create(batch(vec![create("a")], "id-1"))
        .await
        .unwrap_err();
    let again = client
        .batch_create(batch(vec![create("a")], "id-1"))
        .await
        .unwrap_err();
    assert_eq!(again.code(), Code::InvalidArgument);
    assert!(again.message().contains("Duplicate operation id"));
    assert!(client.operation(name).await.unwrap().done);
    assert_eq!(emulator.observe().queue(QUEUE).tasks, 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_can_be_refused_as_a_whole() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let elsewhere = CreateTaskRequest {
        parent: "projects/demo/locations/us-central1/queues/other".to_owned(),
        ..create("")
    };
    for (requests, id) in [
        (vec![], ""),
        (vec![create(""); 101], ""),
        (vec![create("a"), create("a")], ""),
        (vec![create("a"), create("b c")], ""),
        (vec![create("a"), elsewhere], ""),
        (vec![create("a")], "not an id"),
    ] {
        let count = requests.len();
        let refused = client.batch_create(batch(requests, id)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{count} with {id:?}");
    }
    assert_eq!(emulator.observe().queue(QUEUE).tasks, 0);
    let failed = client
        .batch_create(batch(vec![create_at("a", "x")], ""))
        .await
        .unwrap();
    assert!(matches!(failed.result, Some(operation::Result::Error(_))));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_takes_a_while_tells_its_verdicts_when_it_is_done() {
    let emulator = started(Emulator::builder().operations_take(Duration::from_secs(5)));
    let mut client = Client::of(&emulator);
    let requests = vec![create("a"), create_at("b", "ftp://x")];
    let running = client.batch_create(batch(requests, "id-1")).await.unwrap();
    assert!(!running.done && running.result.is_none());
    let metadata = running.metadata.as_ref().unwrap();
    let metadata = BatchCreateTasksMetadata::decode(metadata.value.as_slice()).unwrap();
    assert_eq!(metadata.state(), State::Running);
    assert!(metadata.failed_requests.is_empty(), "not told yet");
    assert_eq!(emulator.observe().queue(QUEUE).tasks, 1, "it exists");
    tokio::time::advance(Duration::from_millis(4_999)).await;
    assert_eq!(client.operation(&running.name).await.unwrap(), running);
    tokio::time::advance(Duration::from_millis(1)).await;
    let done = client.operation(&running.name).await.unwrap();
    let metadata = done.metadata.as_ref().unwrap();
    let metadata = BatchCreateTasksMetadata::decode(metadata.value.as_slice()).unwrap();
    assert!(done.done);
    assert_eq!(metadata.state(), State::PartiallySucceeded);
    assert!(metadata.failed_requests.contains_key(&1));
}

#[tokio::test(start_paused = true)]
async fn one_task_of_a_batch_can_be_failed_without_and_after_its_creation() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let busy = || Fault::answer(gcp_emulator::Code::ResourceExhausted, "busy");
    let of = |id: &'static str| {
        Rule::on_task()
            .once()
            .when_task(move |task| task.name.ends_with(id))
    };
    let faults = emulator.faults();
    let refused = faults.add(of("/b").then(busy()));
    let lost = faults.add(of("/c").then(busy().after_effect()));
    let requests = || vec![create("a"), create("b"), create("c")];
    let codes = |operation: &gcp_emulator::cloudtasks::proto::Operation| {
        let metadata = operation.metadata.as_ref().unwrap();
        let metadata = BatchCreateTasksMetadata::decode(metadata.value.as_slice()).unwrap();
        let failed = metadata.failed_requests.into_iter();
        failed
            .map(|(index, status)| (index, status.code))
            .collect::<Vec<_>>()
    };
    let first = client.batch_create(batch(requests(), "")).await.unwrap();
    assert_eq!(codes(&first), [(1, 8), (2, 8)]);
    assert_eq!((faults.fired(refused), faults.fired(lost)), (1, 1));
    let second = client.batch_create(batch(requests(), "")).await.unwrap();
    assert_eq!(codes(&second), [(0, 6), (2, 6)], "only b was missing");
    assert_eq!(emulator.observe().queue(QUEUE).tasks, 3);
    faults.add(of("/d").then(busy()));
    assert_eq!(
        client.create_task(create("d")).await.unwrap_err().code(),
        Code::ResourceExhausted
    );
    client.create_task(create("d")).await.unwrap();
}
