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

/// The same for App Engine targets, which may also leave it to their service (interface
/// definition).
const GREATEST_APP_ENGINE_DEADLINE: Duration = Duration::from_secs(24 * 3600 + 15);

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
    let is_app_engine = matches!(
        task.message_type,
        Some(MessageType::AppEngineHttpRequest(_))
    );
    let deadline = match &task.dispatch_deadline {
        None if is_app_engine => return Ok(()),
        None => DEFAULT_DEADLINE,
        Some(given) => from_proto_duration(given).ok_or(TaskRefusal::DispatchDeadline)?,
    };
    let greatest = if is_app_engine {
        GREATEST_APP_ENGINE_DEADLINE
    } else {
        GREATEST_DEADLINE
    };
    if !(LEAST_DEADLINE..=greatest).contains(&deadline) {
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
mod tests;
