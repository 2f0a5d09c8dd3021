use super::*;
use crate::cloudtasks::proto::{OAuthToken, OidcToken};

const NOW: u64 = 1_800_000_000;

fn now() -> Time {
    Time::from_unix(Duration::from_secs(NOW))
}

fn http(change: impl FnOnce(&mut HttpRequest)) -> Task {
    let mut request = HttpRequest {
        url: "https://example.com/x?y=1".into(),
        ..HttpRequest::default()
    };
    change(&mut request);
    Task {
        message_type: Some(MessageType::HttpRequest(request)),
        ..Task::default()
    }
}

fn completed(mut task: Task) -> Result<HttpRequest, TaskRefusal> {
    complete(now(), &mut task)?;
    match task.message_type {
        Some(MessageType::HttpRequest(request)) => Ok(request),
        Some(MessageType::AppEngineHttpRequest(_)) | None => unreachable!("an HTTP task"),
    }
}

#[test]
fn a_target_is_needed_and_its_address_is_http() {
    assert_eq!(
        complete(now(), &mut Task::default()),
        Err(TaskRefusal::NoPayload)
    );
    assert_eq!(completed(http(|r| r.url.clear())), Err(TaskRefusal::NoUrl));
    assert_eq!(
        completed(http(|r| r.url = "ftp://x".into())),
        Err(TaskRefusal::Url)
    );
    assert!(completed(http(|r| r.url = "http://127.0.0.1:9/".into())).is_ok());
}

#[test]
fn a_body_goes_with_post_put_and_patch_only() {
    for (method, allowed) in [(0, true), (1, true), (4, true), (6, true), (99, true)]
        .into_iter()
        .chain([2, 3, 5, 7].map(|method| (method, false)))
    {
        let task = http(|r| {
            r.http_method = method;
            r.body = "x".into();
        });
        assert_eq!(completed(task).is_ok(), allowed, "{method}");
    }
    assert_eq!(
        completed(http(|r| r.http_method = 99)).unwrap().http_method,
        1
    );
}

#[test]
fn deadlines_lie_between_fifteen_seconds_and_thirty_minutes() {
    for (seconds, nanos, allowed) in [
        (14, 999_999_999, false),
        (15, 0, true),
        (1800, 0, true),
        (1800, 1_000_000, false),
        (-1, 0, false),
    ] {
        let deadline = prost_types::Duration { seconds, nanos };
        let mut task = Task {
            dispatch_deadline: Some(deadline),
            ..http(|_| ())
        };
        assert_eq!(
            complete(now(), &mut task).is_ok(),
            allowed,
            "{seconds}.{nanos}"
        );
    }
    let fine = prost_types::Duration {
        seconds: 20,
        nanos: 1_999_999,
    };
    let mut task = Task {
        dispatch_deadline: Some(fine),
        ..http(|_| ())
    };
    complete(now(), &mut task).unwrap();
    assert_eq!(task.dispatch_deadline.unwrap().nanos, 1_000_000);
}

#[test]
fn schedules_reach_thirty_days_ahead_and_the_past_means_now() {
    let at = |seconds: i64| {
        let time = prost_types::Timestamp { seconds, nanos: 0 };
        let mut task = Task {
            schedule_time: Some(time),
            ..http(|_| ())
        };
        complete(now(), &mut task).map(|()| task.schedule_time.unwrap().seconds)
    };
    let now = i64::try_from(NOW).unwrap();
    assert_eq!(at(now + 720 * 3600), Ok(now + 720 * 3600));
    assert!(matches!(
        at(now + 721 * 3600),
        Err(TaskRefusal::ScheduleTime { .. })
    ));
    assert!(at(253_402_300_799).is_err());
    assert_eq!(at(now - 3600), Ok(now));
    assert_eq!(at(-62_135_596_800), Ok(now));
}

#[test]
fn body_and_name_together_may_have_a_mebibyte_less_a_bit() {
    let sized = |body: usize, name: &str| {
        let mut task = http(|r| r.body = vec![0; body].into());
        task.name = name.to_owned();
        complete(now(), &mut task)
    };
    assert!(sized(101_000, "").is_ok());
    assert!(sized(1_047_450, "abc").is_ok());
    assert_eq!(sized(1_047_451, "abc"), Err(TaskRefusal::TooLarge));
}

#[test]
fn headers_are_kept_the_way_the_service_keeps_them() {
    let task = http(|r| {
        r.headers = [
            ("Content-Type", "application/json"),
            ("Host", "x"),
            ("X-Google-Y", "x"),
            ("x-appengine-y", "x"),
            ("Content-Length", "3"),
            ("user-agent", "mine"),
            ("X-Split", "a\r\nb"),
            ("X-Nul", "a\0b"),
            ("X-CloudTasks-Y", "kept"),
            ("Authorization", "Bearer x"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        r.headers.insert("X-Long".into(), "v".repeat(8183));
        r.headers.insert("X-Just".into(), "v".repeat(8182));
    });
    let kept = completed(task).unwrap().headers;
    let mut names: Vec<&str> = kept.keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = [
        "Authorization",
        "Content-Type",
        "User-Agent",
        "X-CloudTasks-Y",
        "X-Just",
        "X-Nul",
        "X-Split",
    ];
    assert_eq!(names, expected);
    assert_eq!(kept["X-Split"], "a__b");
    assert_eq!(kept["X-Nul"], "a");
    assert_eq!(kept["User-Agent"], "Google-Cloud-Tasks");
}

#[test]
fn tokens_need_an_account_and_access_tokens_a_google_host() {
    let oidc = |email: &str, audience: &str| {
        let token = OidcToken {
            service_account_email: email.into(),
            audience: audience.into(),
        };
        http(|r| r.authorization_header = Some(AuthorizationHeader::OidcToken(token)))
    };
    assert_eq!(completed(oidc("", "")), Err(TaskRefusal::ServiceAccount));
    assert_eq!(
        completed(oidc("nobody", "")),
        Err(TaskRefusal::ServiceAccount)
    );
    let stored = completed(oidc("a@b.iam.gserviceaccount.com", "")).unwrap();
    let Some(AuthorizationHeader::OidcToken(token)) = stored.authorization_header else {
        panic!("the token is gone")
    };
    assert_eq!(token.audience, "https://example.com/x?y=1");
    assert!(completed(oidc("a@b.c", "no-scheme")).is_ok());
    let oauth = |url: &str| {
        let token = OAuthToken {
            service_account_email: "a@b.c".into(),
            scope: String::new(),
        };
        let url = url.to_owned();
        http(|r| {
            r.url = url;
            r.authorization_header = Some(AuthorizationHeader::OauthToken(token));
        })
    };
    assert!(completed(oauth("https://pubsub.googleapis.com/v1/x")).is_ok());
    assert_eq!(
        completed(oauth("https://example.com")),
        Err(TaskRefusal::OauthHost)
    );
    assert_eq!(
        completed(oauth("https://example.com/.googleapis.com")),
        Err(TaskRefusal::OauthHost)
    );
}

#[test]
fn retry_configurations_have_bounds() {
    let of = |change: fn(&mut RetryConfig)| {
        let mut retry = RetryConfig::default();
        change(&mut retry);
        check_retry(&retry).is_ok()
    };
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    assert!(of(|r| r.max_attempts = -1));
    assert!(!of(|r| r.max_attempts = -2));
    assert!(!of(|r| r.max_doublings = -1));
    let nanos = prost_types::Duration {
        seconds: 1,
        nanos: 1,
    };
    let with_nanos = RetryConfig {
        max_retry_duration: Some(nanos),
        ..RetryConfig::default()
    };
    assert!(check_retry(&with_nanos).is_err());
    let crossed = RetryConfig {
        min_backoff: seconds(2),
        max_backoff: seconds(1),
        ..RetryConfig::default()
    };
    assert!(check_retry(&crossed).is_err());
    let negative = RetryConfig {
        min_backoff: seconds(-1),
        ..RetryConfig::default()
    };
    assert!(check_retry(&negative).is_err());
}
