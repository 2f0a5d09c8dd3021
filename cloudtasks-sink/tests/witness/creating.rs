//! Creating one task: what is taken, what is refused, and what is changed without a word.

use std::time::SystemTime;

use cloudtasks_sink::Code;
use gcp_emulator::Method;
use gcp_emulator::cloudtasks::proto::{
    CreateQueueRequest, DeleteQueueRequest, DeleteTaskRequest, Queue, RetryConfig, Task,
};
use prost_types::Timestamp;

use crate::exchange::{Server, WAYS, Way, all, code, http, request_of, stored, verdicts, wanted};
use crate::servers::QUEUE;

fn at(from_now: i64) -> Option<Timestamp> {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let seconds = i64::try_from(now.as_secs()).unwrap() + from_now;
    Some(Timestamp { seconds, nanos: 0 })
}

fn deadline(seconds: i64, nanos: i32) -> Task {
    Task {
        dispatch_deadline: Some(prost_types::Duration { seconds, nanos }),
        ..http(|_| {})
    }
}

fn retrying(change: impl FnOnce(&mut RetryConfig)) -> Task {
    let mut retry = RetryConfig::default();
    change(&mut retry);
    Task {
        retry_config: Some(retry),
        ..http(|_| {})
    }
}

fn span(seconds: i64, nanos: i32) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos })
}

fn named(id: &str) -> Task {
    Task {
        name: format!("{QUEUE}/tasks/{id}"),
        ..http(|_| {})
    }
}

#[tokio::test]
async fn a_task_that_calls_nothing_is_refused() {
    let tasks = vec![
        ("no payload", Task::default()),
        ("empty url", http(|request| request.url.clear())),
        (
            "no scheme",
            http(|request| request.url = "example.com/".into()),
        ),
        (
            "another scheme",
            http(|request| request.url = "ftp://h/".into()),
        ),
    ];
    all(Code::InvalidArgument, tasks).await;
}

#[tokio::test]
async fn a_body_goes_with_post_put_and_patch_only() {
    let with_body = |method: i32| {
        http(|request| {
            request.http_method = method;
            request.body = "b".into();
        })
    };
    let refused = vec![
        ("GET", with_body(2)),
        ("HEAD", with_body(3)),
        ("DELETE", with_body(5)),
        ("OPTIONS", with_body(7)),
    ];
    all(Code::InvalidArgument, refused).await;
    let taken = vec![
        ("POST", with_body(1)),
        ("PUT", with_body(4)),
        ("PATCH", with_body(6)),
    ];
    all(Code::Ok, taken).await;
}

#[tokio::test]
async fn a_dispatch_deadline_lies_between_15_s_and_30_min_and_has_whole_milliseconds() {
    let refused = vec![
        ("14.999 s", deadline(14, 999_000_000)),
        ("30 min and a bit", deadline(1_800, 1_000_000)),
        ("negative", deadline(-1, 0)),
    ];
    all(Code::InvalidArgument, refused).await;
    let taken = vec![("15 s", deadline(15, 0)), ("30 min", deadline(1_800, 0))];
    all(Code::Ok, taken).await;
    stored(deadline(20, 1_999_999), |task| {
        assert_eq!(task.dispatch_deadline, span(20, 1_000_000));
    })
    .await;
}

#[tokio::test]
async fn a_schedule_reaches_720_h_ahead_and_the_past_becomes_now() {
    let scheduled = |time| Task {
        schedule_time: time,
        ..http(|_| {})
    };
    all(
        Code::InvalidArgument,
        vec![("721 h", scheduled(at(721 * 3_600)))],
    )
    .await;
    all(Code::Ok, vec![("719 h", scheduled(at(719 * 3_600)))]).await;
    let year_1 = Some(Timestamp {
        seconds: -62_135_596_800,
        nanos: 0,
    });
    for past in [at(-3_600), year_1] {
        stored(scheduled(past), |task| {
            let seconds = task.schedule_time.unwrap().seconds;
            let now = at(0).unwrap().seconds;
            assert!(now.abs_diff(seconds) < 60, "{seconds} is not {now}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_task_id_has_letters_digits_hyphens_and_underscores_and_500_of_them() {
    let refused = vec![
        ("colon", named("order:42")),
        ("space", named("a b")),
        ("dot", named("a.b")),
        ("501", named(&"x".repeat(501))),
        (
            "malformed",
            Task {
                name: "tasks/a".to_owned(),
                ..http(|_| {})
            },
        ),
        (
            "another queue",
            Task {
                name: "projects/demo/locations/us-central1/queues/q2/tasks/a".to_owned(),
                ..http(|_| {})
            },
        ),
    ];
    all(Code::InvalidArgument, refused).await;
    for server in Server::both().await {
        for (way, id) in [
            (Way::Alone, "A-b_9".to_owned()),
            (Way::InABatch, "x".repeat(500)),
        ] {
            let created = server.create(way, named(&id)).await.unwrap();
            assert_eq!(created.name, format!("{QUEUE}/tasks/{id}"));
        }
    }
}

#[tokio::test]
async fn a_task_without_a_name_gets_a_number_and_an_unknown_method_means_post() {
    let unknown = http(|request| request.http_method = 99);
    stored(unknown, |task| {
        let id = task.name.rsplit('/').next().unwrap();
        assert!(id.chars().all(|digit| digit.is_ascii_digit()), "{id}");
        assert_eq!(request_of(task).http_method, 1);
    })
    .await;
}

#[tokio::test]
async fn a_task_may_have_a_mebibyte_and_not_100_kb_only() {
    let sized = |size: usize| http(|request| request.body = vec![b'a'; size].into());
    all(
        Code::Ok,
        vec![("101 kB", sized(101_000)), ("1.04 MB", sized(1_040_000))],
    )
    .await;
    all(Code::InvalidArgument, vec![("1 MiB", sized(1 << 20))]).await;
}

#[tokio::test]
async fn rules_for_repeating_a_call_have_bounds() {
    let refused = vec![
        ("attempts", retrying(|retry| retry.max_attempts = -2)),
        ("doublings", retrying(|retry| retry.max_doublings = -1)),
        (
            "nanoseconds",
            retrying(|retry| retry.max_retry_duration = span(1, 1)),
        ),
        (
            "negative",
            retrying(|retry| retry.max_retry_duration = span(-1, 0)),
        ),
        (
            "negative least",
            retrying(|retry| retry.min_backoff = span(-1, 0)),
        ),
        (
            "least above most",
            retrying(|retry| {
                retry.min_backoff = span(2, 0);
                retry.max_backoff = span(1, 0);
            }),
        ),
    ];
    all(Code::InvalidArgument, refused).await;
    stored(retrying(|retry| retry.max_attempts = -1), |task| {
        assert_eq!(task.retry_config.as_ref().unwrap().max_attempts, -1);
    })
    .await;
}

#[tokio::test]
async fn a_name_is_taken_while_its_task_exists_and_for_a_while_after() {
    for server in Server::both().await {
        for way in WAYS {
            let id = format!("{way:?}");
            server.create(way, named(&id)).await.unwrap();
            let exists = server.create(way, named(&id)).await.unwrap_err();
            let delete = DeleteTaskRequest {
                name: named(&id).name,
            };
            let name = delete.name.clone();
            server
                .ask::<_, ()>(Method::DeleteTask, "name", &name, delete)
                .await
                .unwrap();
            let recent = server.create(way, named(&id)).await.unwrap_err();
            let server = server.name;
            assert_eq!(
                (exists.0, recent.0),
                (Code::AlreadyExists, Code::AlreadyExists)
            );
            assert_ne!(exists.1, recent.1, "{server} {way:?}");
        }
    }
}

#[tokio::test]
async fn a_queue_that_does_not_exist_or_was_deleted_is_not_found() {
    let location = "projects/demo/locations/us-central1";
    let gone = format!("{location}/queues/gone");
    for server in Server::both().await {
        let create = CreateQueueRequest {
            parent: location.to_owned(),
            queue: Some(Queue {
                name: gone.clone(),
                ..Queue::default()
            }),
        };
        let _created: Queue = server
            .ask(Method::CreateQueue, "parent", location, create.clone())
            .await
            .unwrap();
        let delete = DeleteQueueRequest { name: gone.clone() };
        server
            .ask::<_, ()>(Method::DeleteQueue, "name", &gone, delete)
            .await
            .unwrap();
        for queue in [
            gone.as_str(),
            "projects/demo/locations/us-central1/queues/never",
        ] {
            let request = wanted(queue, http(|_| {}));
            let alone: Result<Task, _> = server
                .ask(Method::CreateTask, "parent", queue, request.clone())
                .await;
            assert_eq!(alone.unwrap_err().code(), Code::NotFound, "{queue}");
            let operation = server.batch(queue, vec![request], "").await.unwrap();
            let verdict = verdicts(&operation, 1).remove(0);
            assert_eq!(code(&verdict), Code::NotFound, "{queue}");
        }
        let again: Result<Queue, _> = server
            .ask(Method::CreateQueue, "parent", location, create)
            .await;
        assert_eq!(again.unwrap_err().code(), Code::FailedPrecondition);
    }
}
