//! Creating one task: what is taken, what is refused, and what is changed without a word.

use std::time::SystemTime;

use cloudtasks_sink::Code;
use gcp_emulator::Method;
use gcp_emulator::cloudtasks::proto::http_request::AuthorizationHeader;
use gcp_emulator::cloudtasks::proto::{
    CreateQueueRequest, DeleteQueueRequest, DeleteTaskRequest, OAuthToken, OidcToken, Queue,
    RetryConfig, Task,
};
use prost_types::Timestamp;

use crate::exchange::{Outcome, Server, Way, http, request_of, verdicts, wanted};
use crate::servers::QUEUE;

const WAYS: [Way; 2] = [Way::Alone, Way::InABatch];

fn code(outcome: &Outcome) -> Code {
    match outcome {
        Ok(_) => Code::Ok,
        Err((code, _)) => *code,
    }
}

/// Each task is refused as wrong for itself, or taken, by both servers and in both ways.
async fn all(expected: Code, tasks: Vec<(&'static str, Task)>) {
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
async fn stored(task: Task, check: impl Fn(&Task)) {
    for server in Server::both().await {
        for way in WAYS {
            let outcome = server.create(way, task.clone()).await;
            check(&outcome.unwrap_or_else(|refusal| panic!("{} {way:?} {refusal:?}", server.name)));
        }
    }
}

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

fn oidc(email: &str, audience: &str) -> Task {
    let token = OidcToken {
        service_account_email: email.to_owned(),
        audience: audience.to_owned(),
    };
    http(|request| request.authorization_header = Some(AuthorizationHeader::OidcToken(token)))
}

fn oauth(url: &str, email: &str) -> Task {
    let token = OAuthToken {
        service_account_email: email.to_owned(),
        scope: String::new(),
    };
    http(|request| {
        url.clone_into(&mut request.url);
        request.authorization_header = Some(AuthorizationHeader::OauthToken(token));
    })
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
async fn headers_are_kept_changed_or_dropped_without_a_word() {
    let given = [
        ("User-Agent", "mine"),
        ("X-Split", "a\r\nb"),
        ("X-Nul", "a\0b"),
        ("Host", "h"),
        ("Content-Length", "3"),
        ("X-Google-Y", "y"),
        ("X-AppEngine-Y", "y"),
        ("Authorization", "Bearer x"),
        ("Content-Type", "text/plain"),
        ("X-CloudTasks-Y", "kept"),
        ("X-Forwarded-Proto", "https"),
    ];
    let task = http(|request| {
        request.headers = given
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        // 8,189 bytes of name and value are too many, 8,188 are not.
        request.headers.insert("X-Long".into(), "v".repeat(8_183));
        request.headers.insert("X-Just".into(), "v".repeat(8_182));
    });
    stored(task, |task| {
        let mut kept: Vec<(String, &str)> = request_of(task)
            .headers
            .iter()
            .filter(|(name, _)| *name != "X-Just")
            .map(|(name, value)| (name.to_lowercase(), value.as_str()))
            .collect();
        kept.sort_unstable();
        let expected = [
            ("authorization", "Bearer x"),
            ("content-type", "text/plain"),
            ("user-agent", "Google-Cloud-Tasks"),
            ("x-cloudtasks-y", "kept"),
            ("x-forwarded-proto", "https"),
            ("x-nul", "a"),
            ("x-split", "a__b"),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(kept, expected);
        assert!(request_of(task).headers.contains_key("X-Just"));
    })
    .await;
}

#[tokio::test]
async fn a_token_needs_an_account_and_an_access_token_a_host_of_google() {
    let account = "a@demo.iam.gserviceaccount.com";
    let refused = vec![
        ("identity of nobody", oidc("", "")),
        ("identity of no address", oidc("nobody", "")),
        (
            "access of nobody",
            oauth("https://pubsub.googleapis.com/", ""),
        ),
        ("another host", oauth("https://example.com/", account)),
    ];
    all(Code::InvalidArgument, refused).await;
    let taken = vec![
        ("identity", oidc(account, "")),
        ("audience without scheme", oidc(account, "no-scheme")),
        ("access", oauth("https://pubsub.googleapis.com/", account)),
    ];
    all(Code::Ok, taken).await;
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

#[tokio::test]
async fn an_identity_token_is_for_the_whole_url_unless_it_says_for_whom() {
    // The witness fills the audience in when it dispatches, which the tests of tokens see.
    let [_, ours] = Server::both().await;
    let mut task = oidc("a@demo.iam.gserviceaccount.com", "");
    if let Some(gcp_emulator::cloudtasks::proto::task::MessageType::HttpRequest(request)) =
        &mut task.message_type
    {
        request.url = "http://127.0.0.1:9/x?y=1".to_owned();
    }
    let created = ours.create(Way::Alone, task).await.unwrap();
    match &request_of(&created).authorization_header {
        Some(AuthorizationHeader::OidcToken(token)) => {
            assert_eq!(token.audience, "http://127.0.0.1:9/x?y=1");
        }
        other => panic!("{other:?}"),
    }
}
