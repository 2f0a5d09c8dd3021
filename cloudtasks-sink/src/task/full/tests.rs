use std::collections::BTreeMap;
use std::time::Duration;

use gcp_wire::QueueName;
use gcp_wire::proto;
use gcp_wire::proto::tasks::{AppEngineHttpRequest, AppEngineRouting, HttpRequest, RetryConfig};
use proptest::prelude::*;

use super::*;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_000_000)
}

fn queue() -> QueueName {
    "projects/p/locations/l/queues/q".parse().unwrap()
}

fn http(change: impl FnOnce(&mut HttpRequest)) -> Task {
    let mut request = HttpRequest {
        url: "https://partner.example/x".to_owned(),
        ..HttpRequest::default()
    };
    change(&mut request);
    Task {
        message_type: Some(MessageType::HttpRequest(request)),
        ..Task::default()
    }
}

fn check(task: &Task) -> Result<(), TaskError> {
    FullTask::decode(task.encode_to_vec())?.check(now(), None)
}

#[test]
fn a_field_that_nobody_here_knows_reaches_the_service() {
    let unknown = b"\xfa\x01\x03new"; // field 31, which no version has yet
    let bytes = [http(|_| ()).encode_to_vec(), unknown.to_vec()].concat();
    let task = FullTask::decode(bytes.clone()).unwrap();
    assert!(task.check(now(), None).is_ok());
    let request = crate::Task::from(task.clone()).into_request(&queue(), String::new());
    assert_eq!(request.task(), bytes);
    let named = crate::Task::from(task).into_request(&queue(), "n".to_owned());
    assert_eq!(named.task(), [&b"\x0a\x01n"[..], &bytes].concat());
}

#[test]
fn a_name_is_the_sinks_to_give() {
    let mut task = http(|_| ());
    let unnamed = task.encode_to_vec();
    task.name = "projects/p/locations/l/queues/other/tasks/t".to_owned();
    assert!(matches!(check(&task), Err(TaskError::Named)));
    let again = FullTask::decode(task.encode_to_vec()).unwrap().unnamed();
    assert!(again.check(now(), None).is_ok());
    let request = crate::Task::from(again).into_request(&queue(), String::new());
    assert_eq!(request.task(), unnamed);
}

#[test]
fn what_is_no_task_or_calls_nothing_is_refused_at_once() {
    let error = FullTask::decode(&b"\xff\xff"[..]).unwrap_err();
    assert!(
        matches!(error, TaskError::Unreadable { part: "message" }),
        "{error}"
    );
    let error = FullTask::decode(Bytes::new()).unwrap_err();
    assert!(matches!(error, TaskError::NoTarget), "{error}");
    let error = check(&http(|request| request.url = "ftp://h/".to_owned())).unwrap_err();
    assert!(matches!(error, TaskError::Url { .. }), "{error}");
}

#[test]
fn the_rules_of_http_tasks_hold_for_whole_ones() {
    let header = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let oidc = |account: &str| {
        let token = proto::tasks::OidcToken {
            service_account_email: account.to_owned(),
            audience: String::new(),
        };
        Some(proto::tasks::http_request::AuthorizationHeader::OidcToken(
            token,
        ))
    };
    let oauth = proto::tasks::OAuthToken {
        service_account_email: "a@b.example".to_owned(),
        scope: String::new(),
    };
    let oauth = Some(proto::tasks::http_request::AuthorizationHeader::OauthToken(
        oauth,
    ));
    assert!(check(&http(|r| r.body = "x".into())).is_ok());
    assert!(
        check(&http(|r| r.http_method = 99)).is_ok(),
        "the service takes it for POST"
    );
    for (task, expected) in [
        (
            http(|r| (r.http_method, r.body) = (2, "x".into())),
            "GET takes no body",
        ),
        (
            http(|r| r.headers = header("Host", "x")),
            "drops or replaces",
        ),
        (
            http(|r| r.headers = header("X-A", "a\nb")),
            "would change or drop",
        ),
        (
            http(|r| r.authorization_header = oidc("nobody")),
            "email address",
        ),
        (
            http(|r| {
                r.authorization_header = oidc("a@b.example");
                r.headers = header("authorization", "x");
            }),
            "Authorization header",
        ),
        (http(|r| r.authorization_header = oauth), ".googleapis.com"),
    ] {
        let text = check(&task).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
    let allowed = AllowedHosts::parse(vec!["other.example".to_owned()]).unwrap();
    let task = FullTask::decode(http(|_| ()).encode_to_vec()).unwrap();
    let error = task.check(now(), Some(&allowed)).unwrap_err();
    assert!(matches!(error, TaskError::HostNotAllowed { .. }), "{error}");
}

#[test]
fn every_spelling_of_a_header_of_a_whole_task_is_checked() {
    let both = BTreeMap::from([
        ("X-A".to_owned(), String::new()),
        ("x-a".to_owned(), "fine".to_owned()),
    ]);
    let error = check(&http(|r| r.headers = both)).unwrap_err();
    assert!(matches!(error, TaskError::Header { .. }), "{error}");
}

#[test]
fn times_and_retries_of_a_whole_task_are_read_as_they_are_written() {
    let second = |seconds| proto::Duration { seconds, nanos: 0 };
    let time = |seconds, nanos| Some(proto::Timestamp { seconds, nanos });
    let with = |change: fn(&mut Task)| {
        let mut task = http(|_| ());
        change(&mut task);
        check(&task)
    };
    assert!(
        with(|task| task.dispatch_deadline = Some(proto::Duration {
            seconds: 15,
            nanos: 0
        }))
        .is_ok()
    );
    let mut task = http(|_| ());
    for (seconds, nanos, fine) in [
        (1_796_000_000 + 720 * 3_600, 0, true),
        (1_796_000_000 + 720 * 3_600, 1, false),
        (-62_135_596_800, 999_999_999, true),
        (0, 1_000_000_000, false),
        (0, -1, false),
        (i64::MAX, 0, false),
    ] {
        task.schedule_time = time(seconds, nanos);
        assert_eq!(check(&task).is_ok(), fine, "{seconds} {nanos}");
    }
    task.schedule_time = None;
    for (seconds, fine) in [
        (14, false),
        (15, true),
        (1_800, true),
        (1_801, false),
        (-15, false),
    ] {
        task.dispatch_deadline = Some(second(seconds));
        assert_eq!(check(&task).is_ok(), fine, "{seconds}");
    }
    task.dispatch_deadline = None;
    task.retry_config = Some(RetryConfig {
        max_attempts: -2,
        ..RetryConfig::default()
    });
    let error = check(&task).unwrap_err();
    assert!(matches!(error, TaskError::Retries { .. }), "{error}");
}

#[test]
fn a_whole_app_engine_task_is_checked_like_one_of_our_making() {
    let app_engine = |uri: &str, host: &str| Task {
        message_type: Some(MessageType::AppEngineHttpRequest(AppEngineHttpRequest {
            relative_uri: uri.to_owned(),
            app_engine_routing: Some(AppEngineRouting {
                host: host.to_owned(),
                ..AppEngineRouting::default()
            }),
            ..AppEngineHttpRequest::default()
        })),
        ..Task::default()
    };
    assert!(check(&app_engine("/x", "")).is_ok());
    let error = check(&app_engine("x", "")).unwrap_err();
    assert!(matches!(error, TaskError::RelativeUri { .. }), "{error}");
    let text = check(&app_engine("/x", "h")).unwrap_err().to_string();
    assert!(text.contains("only the service sets"), "{text}");
}

proptest! {
    #[test]
    fn no_bytes_make_a_whole_task_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(task) = FullTask::decode(bytes) {
            let _verdict = task.check(now(), None);
        }
    }

    #[test]
    fn a_task_of_our_making_comes_back_as_it_was_and_its_name_is_off(
        body in proptest::collection::vec(any::<u8>(), 0..300),
        value in "[ -~]{1,50}",
        at in 0_u64..4_000_000_000,
    ) {
        let task = HttpTask::post("https://partner.example/x")
            .unwrap()
            .header("X-V", value)
            .body(body)
            .schedule_at(SystemTime::UNIX_EPOCH + Duration::from_secs(at));
        let named = task.clone().into_message("name".to_owned()).encode_to_vec();
        let full = FullTask::decode(named).unwrap().unnamed();
        prop_assert_eq!(full.check(now(), None).is_ok(), task.check(now(), None).is_ok());
        let rest = task.into_message(String::new()).encode_to_vec();
        prop_assert_eq!(&full.into_rest()[..], &rest[..]);
    }
}
