//! The rules of a task.

use std::collections::HashMap;
use std::time::Duration;

use super::{TaskRefusal, is_full};
use crate::cloudtasks::proto::http_request::AuthorizationHeader;
use crate::cloudtasks::proto::task::{MessageType, View};
use crate::cloudtasks::proto::{HttpMethod, HttpRequest, RetryConfig, Task};
use crate::time::{Time, from_proto_duration, to_proto_duration};

/// Bounds of the dispatch deadline, and its default for HTTP targets (interface definition).
const LEAST_DEADLINE: Duration = Duration::from_secs(15);
const GREATEST_DEADLINE: Duration = Duration::from_secs(30 * 60);
const DEFAULT_DEADLINE: Duration = Duration::from_secs(600);

/// How far ahead a task may be scheduled (interface definition).
const AHEAD: Duration = Duration::from_secs(720 * 3600);

/// The body and the name together: more is refused (recorded from the service).
const SIZE: usize = 1_047_453;

/// A header from this size on, name and value, is dropped without a word (recorded).
const HEADER: usize = 8189;

/// Checks a task and makes of it what the service stores.
pub(super) fn complete(now: Time, task: &mut Task) -> Result<(), TaskRefusal> {
    let size = match &mut task.message_type {
        None => return Err(TaskRefusal::NoPayload),
        Some(MessageType::HttpRequest(request)) => {
            complete_http(request)?;
            request.body.len()
        }
        Some(MessageType::AppEngineHttpRequest(request)) => {
            check_body(request.http_method, request.body.is_empty())?;
            if request.relative_uri.is_empty() {
                "/".clone_into(&mut request.relative_uri);
            }
            request.body.len()
        }
    };
    complete_deadline(task)?;
    complete_schedule(now, task)?;
    if size + task.name.len() > SIZE {
        return Err(TaskRefusal::TooLarge);
    }
    if let Some(retry) = &task.retry_config {
        check_retry(retry)?;
    }
    task.create_time = Some(now.to_timestamp());
    task.dispatch_count = 0;
    task.response_count = 0;
    task.first_attempt = None;
    task.last_attempt = None;
    task.view = View::Unspecified.into();
    Ok(())
}

fn complete_http(request: &mut HttpRequest) -> Result<(), TaskRefusal> {
    if request.url.is_empty() {
        return Err(TaskRefusal::NoUrl);
    }
    let host = host(&request.url).ok_or(TaskRefusal::Url)?.to_owned();
    // A number that is no method means POST (recorded).
    if HttpMethod::try_from(request.http_method).unwrap_or_default() == HttpMethod::Unspecified {
        request.http_method = HttpMethod::Post.into();
    }
    check_body(request.http_method, request.body.is_empty())?;
    match &mut request.authorization_header {
        None => {}
        Some(AuthorizationHeader::OauthToken(token)) => {
            check_account(&token.service_account_email)?;
            if !host.ends_with(".googleapis.com") {
                return Err(TaskRefusal::OauthHost);
            }
        }
        Some(AuthorizationHeader::OidcToken(token)) => {
            check_account(&token.service_account_email)?;
            if token.audience.is_empty() {
                token.audience.clone_from(&request.url);
            }
        }
    }
    request.headers = headers(std::mem::take(&mut request.headers));
    Ok(())
}

/// The host of an address, without port; `None` when it is no HTTP address.
fn host(url: &str) -> Option<&str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    if let Some(literal) = host.strip_prefix('[') {
        return literal.split(']').next();
    }
    host.split(':').next()
}

fn check_body(method: i32, is_empty: bool) -> Result<(), TaskRefusal> {
    match HttpMethod::try_from(method).unwrap_or_default() {
        HttpMethod::Unspecified | HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch => Ok(()),
        HttpMethod::Get | HttpMethod::Head | HttpMethod::Delete | HttpMethod::Options => {
            if is_empty {
                Ok(())
            } else {
                Err(TaskRefusal::Body)
            }
        }
    }
}

fn check_account(email: &str) -> Result<(), TaskRefusal> {
    let well_formed = email
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !host.contains('@'));
    if well_formed {
        Ok(())
    } else {
        Err(TaskRefusal::ServiceAccount)
    }
}

fn complete_deadline(task: &mut Task) -> Result<(), TaskRefusal> {
    let deadline = match &task.dispatch_deadline {
        None => DEFAULT_DEADLINE,
        Some(given) => from_proto_duration(given).ok_or(TaskRefusal::DispatchDeadline)?,
    };
    if !(LEAST_DEADLINE..=GREATEST_DEADLINE).contains(&deadline) {
        return Err(TaskRefusal::DispatchDeadline);
    }
    let whole = Duration::from_millis(u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX));
    task.dispatch_deadline = Some(to_proto_duration(whole));
    Ok(())
}

fn complete_schedule(now: Time, task: &mut Task) -> Result<(), TaskRefusal> {
    let wanted = task
        .schedule_time
        .as_ref()
        .map_or(now, Time::from_timestamp);
    if wanted.since(now) > AHEAD {
        return Err(TaskRefusal::ScheduleTime {
            time: wanted.to_string(),
        });
    }
    // What lies in the past, be it year 1, becomes now.
    task.schedule_time = Some(wanted.max(now).to_timestamp());
    Ok(())
}

/// Checks a retry configuration, of a task or of a queue.
pub(super) fn check_retry(retry: &RetryConfig) -> Result<(), TaskRefusal> {
    let refused = |rule| Err(TaskRefusal::Retry { rule });
    if retry.max_attempts < -1 {
        return refused("RetryConfig.maxAttempts must be greater or equal to -1.");
    }
    if retry.max_doublings < 0 {
        return refused("RetryConfig.maxDoublings cannot be negative.");
    }
    if let Some(total) = &retry.max_retry_duration {
        if total.seconds < 0 {
            return refused("RetryConfig.max_retry_duration.seconds cannot be negative.");
        }
        if total.nanos != 0 {
            return refused("RetryConfig.max_retry_duration.nanos cannot be set.");
        }
    }
    let least = retry.min_backoff.as_ref().map(from_proto_duration);
    let greatest = retry.max_backoff.as_ref().map(from_proto_duration);
    match (least, greatest) {
        (Some(None), _) => refused("RetryConfig.minBackoff cannot be negative."),
        (_, Some(None)) => refused("RetryConfig.maxBackoff cannot be negative."),
        (Some(Some(least)), Some(Some(greatest))) if least > greatest => {
            refused("RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.")
        }
        _ => Ok(()),
    }
}

/// The headers the service keeps (recorded): its own name as user agent, no line breaks, nothing
/// reserved, nothing too long.
fn headers(given: HashMap<String, String>) -> HashMap<String, String> {
    let mut kept: HashMap<String, String> = given
        .into_iter()
        .filter(|(name, value)| name.len() + value.len() < HEADER && !is_reserved(name))
        .map(|(name, value)| {
            let value = value
                .split('\0')
                .next()
                .unwrap_or_default()
                .replace(['\r', '\n'], "_");
            (name, value)
        })
        .collect();
    kept.insert("User-Agent".to_owned(), "Google-Cloud-Tasks".to_owned());
    kept
}

fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["host", "content-length", "user-agent"].contains(&name.as_str())
        || name.starts_with("x-google-")
        || name.starts_with("x-appengine-")
}

/// A task as an answer shows it.
pub(super) fn viewed(mut task: Task, view: i32) -> Task {
    if is_full(view) {
        task.view = View::Full.into();
        return task;
    }
    task.view = View::Basic.into();
    match &mut task.message_type {
        Some(MessageType::HttpRequest(request)) => request.body.clear(),
        Some(MessageType::AppEngineHttpRequest(request)) => request.body.clear(),
        None => {}
    }
    task
}

#[cfg(test)]
mod tests {
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
}
