//! Cloud Tasks: queues with state, settings and overrides, and how tasks end.

use std::time::Duration;

use gcp_emulator::cloudtasks::proto::http_request::AuthorizationHeader;
use gcp_emulator::cloudtasks::proto::queue::State;
use gcp_emulator::cloudtasks::proto::task::{MessageType, View};
use gcp_emulator::cloudtasks::proto::{
    CreateTaskRequest, DeleteTaskRequest, GetQueueRequest, GetTaskRequest, HttpRequest, HttpTarget,
    ListTasksRequest, ListTasksResponse, OidcToken, PauseQueueRequest, PurgeQueueRequest, Queue,
    RateLimits, ResumeQueueRequest, RunTaskRequest, Task, UpdateQueueRequest, UriOverride,
};
use gcp_emulator::{Emulator, Method};
use prost_types::FieldMask;
use tonic::{Code, Status};

use crate::client::{Client, QUEUE, started};

const HOUR: Duration = Duration::from_secs(3600);

fn name(id: &str) -> String {
    format!("{QUEUE}/tasks/{id}")
}

fn create(id: &str) -> CreateTaskRequest {
    let request = HttpRequest {
        url: "https://example.com/".to_owned(),
        body: id.to_owned().into(),
        ..HttpRequest::default()
    };
    CreateTaskRequest {
        parent: QUEUE.to_owned(),
        task: Some(Task {
            name: name(id),
            message_type: Some(MessageType::HttpRequest(request)),
            ..Task::default()
        }),
        ..CreateTaskRequest::default()
    }
}

async fn queue(client: &mut Client) -> Queue {
    let name = QUEUE.to_owned();
    client
        .ask(Method::GetQueue, GetQueueRequest { name })
        .await
        .unwrap()
}

async fn list(client: &mut Client, view: View) -> Vec<Task> {
    let (mut tasks, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListTasksRequest {
            parent: QUEUE.to_owned(),
            response_view: view.into(),
            page_size: 3,
            page_token,
        };
        let page: ListTasksResponse = client.ask(Method::ListTasks, request).await.unwrap();
        tasks.extend(page.tasks);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return tasks;
        }
    }
}

fn body(task: &Task) -> Vec<u8> {
    match &task.message_type {
        Some(MessageType::HttpRequest(request)) => request.body.to_vec(),
        Some(MessageType::AppEngineHttpRequest(_)) | None => panic!("an HTTP task"),
    }
}

fn update(change: impl FnOnce(&mut Queue), paths: Option<&[&str]>) -> UpdateQueueRequest {
    let mut queue = Queue {
        name: QUEUE.to_owned(),
        ..Queue::default()
    };
    change(&mut queue);
    UpdateQueueRequest {
        queue: Some(queue),
        update_mask: paths.map(|paths| FieldMask {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }),
    }
}

fn rates(per_second: f64, concurrent: i32) -> RateLimits {
    RateLimits {
        max_dispatches_per_second: per_second,
        max_burst_size: 0,
        max_concurrent_dispatches: concurrent,
    }
}

fn to_host(host: &str, mode: i32) -> HttpTarget {
    let uri = UriOverride {
        host: Some(host.to_owned()),
        uri_override_enforce_mode: mode,
        ..UriOverride::default()
    };
    HttpTarget {
        uri_override: Some(uri),
        ..HttpTarget::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_queue_takes_tasks_and_shows_them_whole() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let pause = PauseQueueRequest {
        name: QUEUE.to_owned(),
    };
    let paused: Queue = client.ask(Method::PauseQueue, pause).await.unwrap();
    assert_eq!(paused.state(), State::Paused);
    assert_eq!(queue(&mut client).await.state(), State::Paused);
    for id in ["a", "b", "c", "d"] {
        client.create_task(create(id)).await.unwrap();
    }
    let whole = list(&mut client, View::Full).await;
    let bodies: Vec<Vec<u8>> = whole.iter().map(body).collect();
    assert_eq!(bodies, [b"a", b"b", b"c", b"d"]);
    assert_eq!(whole[3].name, name("d"));
    let basic = list(&mut client, View::Unspecified).await;
    assert!(basic.iter().all(|task| body(task).is_empty()));
    let resume = ResumeQueueRequest {
        name: QUEUE.to_owned(),
    };
    let running: Queue = client.ask(Method::ResumeQueue, resume).await.unwrap();
    assert_eq!(running.state(), State::Running);
}

#[tokio::test(start_paused = true)]
async fn an_update_replaces_what_its_mask_names_and_leaves_the_state_alone() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    emulator
        .change_queue(QUEUE, |queue| queue.state = State::Disabled.into())
        .unwrap();
    let request = update(
        |queue| {
            queue.rate_limits = Some(rates(5.0, 7));
            queue.http_target = Some(to_host("proxy.example", 2));
        },
        Some(&["rate_limits.max_dispatches_per_second", "http_target"]),
    );
    let updated: Queue = client.ask(Method::UpdateQueue, request).await.unwrap();
    let limits = updated.rate_limits.unwrap();
    assert_eq!(limits.max_dispatches_per_second.to_bits(), 5f64.to_bits());
    assert_eq!(limits.max_concurrent_dispatches, 1000, "not in the mask");
    assert_eq!(limits.max_burst_size, 1, "a fifth of the rate");
    assert_eq!(updated.state(), State::Disabled);
    assert_eq!(queue(&mut client).await, updated);
    let nothing = update(|queue| queue.rate_limits = Some(rates(9.0, 9)), Some(&[]));
    let unchanged: Queue = client.ask(Method::UpdateQueue, nothing).await.unwrap();
    assert_eq!(unchanged, updated);
    let everything = update(|queue| queue.rate_limits = Some(rates(9.0, 9)), None);
    let replaced: Queue = client.ask(Method::UpdateQueue, everything).await.unwrap();
    assert_eq!(replaced.http_target, None);
    assert_eq!(replaced.rate_limits.unwrap().max_concurrent_dispatches, 9);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_the_service_refuses_changes_nothing() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let before = queue(&mut client).await;
    let no_part = HttpTarget {
        uri_override: Some(UriOverride::default()),
        ..HttpTarget::default()
    };
    let refused = [
        update(|_| (), Some(&["colour"])),
        update(|_| (), Some(&["rate_limits.colour"])),
        update(|queue| queue.rate_limits = Some(rates(501.0, 1)), None),
        // Checked although the mask leaves it out.
        update(
            |queue| queue.rate_limits = Some(rates(501.0, 1)),
            Some(&["state"]),
        ),
        update(|queue| queue.http_target = Some(no_part.clone()), None),
        update(|queue| queue.http_target = Some(to_host("h", 3)), None),
    ];
    for request in refused {
        let answer: Result<Queue, Status> = client.ask(Method::UpdateQueue, request.clone()).await;
        assert_eq!(
            answer.unwrap_err().code(),
            Code::InvalidArgument,
            "{request:?}"
        );
    }
    assert_eq!(queue(&mut client).await, before);
}

#[tokio::test(start_paused = true)]
async fn an_update_of_a_queue_that_does_not_exist_creates_it() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let other = "projects/demo/locations/us-central1/queues/other";
    let request = update(|queue| other.clone_into(&mut queue.name), Some(&[]));
    let created: Queue = client.ask(Method::UpdateQueue, request).await.unwrap();
    assert_eq!(
        (created.name.as_str(), created.state()),
        (other, State::Running)
    );
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_queue_takes_the_place_of_its_tasks() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let token = AuthorizationHeader::OidcToken(OidcToken {
        service_account_email: "queue@demo.iam.gserviceaccount.com".to_owned(),
        audience: "https://a.example".to_owned(),
    });
    let target = HttpTarget {
        authorization_header: Some(token.clone()),
        ..HttpTarget::default()
    };
    emulator
        .change_queue(QUEUE, |queue| queue.http_target = Some(target))
        .unwrap();
    client.create_task(create("a")).await.unwrap();
    let created = &emulator.observe().queue(QUEUE).created[0];
    let Some(MessageType::HttpRequest(stored)) = &created.stored.message_type else {
        panic!("an HTTP task")
    };
    assert_eq!(stored.authorization_header.as_ref(), Some(&token));
    assert_eq!(created.sent, create("a").task.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_run_deleted_or_purged_is_gone_and_keeps_its_name() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    for id in ["run", "deleted", "purged"] {
        client.create_task(create(id)).await.unwrap();
    }
    let run = RunTaskRequest {
        name: name("run"),
        response_view: View::Full.into(),
    };
    let ran: Task = client.ask(Method::RunTask, run.clone()).await.unwrap();
    assert_eq!((ran.dispatch_count, body(&ran)), (1, b"run".to_vec()));
    let again: Result<Task, Status> = client.ask(Method::RunTask, run).await;
    assert_eq!(again.unwrap_err().code(), Code::NotFound);
    let delete = DeleteTaskRequest {
        name: name("deleted"),
    };
    client
        .ask::<_, ()>(Method::DeleteTask, delete)
        .await
        .unwrap();
    let purge = PurgeQueueRequest {
        name: QUEUE.to_owned(),
    };
    let purged: Queue = client.ask(Method::PurgeQueue, purge).await.unwrap();
    assert_eq!(purged.purge_time, Some(emulator.now().to_timestamp()));
    assert!(list(&mut client, View::Basic).await.is_empty());
    assert_eq!(emulator.observe().queue(QUEUE).run, 1);
    for id in ["run", "deleted", "purged"] {
        let get = GetTaskRequest {
            name: name(id),
            ..GetTaskRequest::default()
        };
        let gone: Result<Task, Status> = client.ask(Method::GetTask, get).await;
        let gone = gone.unwrap_err();
        assert_eq!(gone.code(), Code::NotFound);
        assert!(gone.message().contains("existed recently"), "{gone}");
        let taken = client.create_task(create(id)).await.unwrap_err();
        assert_eq!(taken.code(), Code::AlreadyExists, "{id}");
    }
    tokio::time::advance(HOUR).await;
    for id in ["run", "deleted", "purged"] {
        client.create_task(create(id)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_exist_is_not_found() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let other = "projects/demo/locations/us-central1/queues/other";
    let purge = PurgeQueueRequest {
        name: other.to_owned(),
    };
    let purged: Result<Queue, Status> = client.ask(Method::PurgeQueue, purge).await;
    assert_eq!(purged.unwrap_err().code(), Code::NotFound);
    let run = RunTaskRequest {
        name: format!("{other}/tasks/a"),
        ..RunTaskRequest::default()
    };
    let run: Result<Task, Status> = client.ask(Method::RunTask, run).await;
    assert_eq!(run.unwrap_err().code(), Code::NotFound);
}
