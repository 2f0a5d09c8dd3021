//! What a task calls, and how.

mod error;
mod headers;
mod hosts;
mod method;
mod token;
mod url;

pub use error::{HeaderRule, TaskError, UrlRule};
pub use method::HttpMethod;

pub(crate) use hosts::AllowedHosts;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use connector_core::Cause;
use gcp_wire::proto;
use serde::Serialize;

use headers::Headers;
use token::Token;
use url::TargetUrl;

/// Bounds of the dispatch deadline of an HTTP task, both included. Outside, the service answers
/// INVALID_ARGUMENT (recorded from the service).
const DISPATCH_DEADLINE: (Duration, Duration) =
    (Duration::from_secs(15), Duration::from_secs(30 * 60));

/// How far ahead a task may be scheduled: 720 h. Beyond, the service answers INVALID_ARGUMENT
/// (recorded from the service).
const SCHEDULE_AHEAD: Duration = Duration::from_secs(720 * 60 * 60);

/// An HTTP request that Cloud Tasks makes for you, later and again until it succeeds.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use cloudtasks_sink::HttpTask;
///
/// let task = HttpTask::post("https://partner.example/orders")?
///     .segment("2026/17")                       // …/orders/2026%2F17
///     .query("dry run", "no")                   // …?dry%20run=no
///     .header("X-Tenant", "acme")
///     .json(&[1, 2, 3])?
///     .schedule_at(SystemTime::now() + Duration::from_secs(60))
///     .oidc("caller@project.iam.gserviceaccount.com", None);
/// # let _: HttpTask = task;
/// # Ok::<(), cloudtasks_sink::TaskError>(())
/// ```
///
/// A task carries no name: names are the sink's business (see
/// [`task_id`](crate::SinkBuilder::task_id)), since a name contains the queue.
///
/// Everything that the service would refuse, or drop without a word, is found before the task is
/// sent: by the constructor for the URL, by the sink for the rest. It is a rejection of that one
/// record, with a [`TaskError`] as its source.
#[derive(Clone)]
#[must_use = "a task does nothing until an encoder returns it to the sink"]
pub struct HttpTask {
    method: HttpMethod,
    url: TargetUrl,
    headers: Headers,
    body: Bytes,
    body_type: Option<&'static str>,
    oidc: Option<Token>,
    oauth: Option<Token>,
    schedule_at: Option<SystemTime>,
    dispatch_deadline: Option<Duration>,
    /// What is wrong with the path, found while it was put together.
    fault: Option<TaskError>,
}

impl HttpTask {
    /// A task that calls `url` with `method`.
    ///
    /// # Errors
    ///
    /// [`TaskError::Url`] when `url` does not start with `http://` or `https://` in lower case, has
    /// no usable host, or holds white space, a control character or a fragment (which no HTTP
    /// client sends).
    pub fn new(method: HttpMethod, url: impl Into<String>) -> Result<Self, TaskError> {
        Ok(Self {
            method,
            url: TargetUrl::parse(url.into())?,
            headers: Headers::default(),
            body: Bytes::new(),
            body_type: None,
            oidc: None,
            oauth: None,
            schedule_at: None,
            dispatch_deadline: None,
            fault: None,
        })
    }

    /// A POST.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn post(url: impl Into<String>) -> Result<Self, TaskError> {
        Self::new(HttpMethod::Post, url)
    }

    /// A PUT.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn put(url: impl Into<String>) -> Result<Self, TaskError> {
        Self::new(HttpMethod::Put, url)
    }

    /// A PATCH.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn patch(url: impl Into<String>) -> Result<Self, TaskError> {
        Self::new(HttpMethod::Patch, url)
    }

    /// A GET, which takes no body.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn get(url: impl Into<String>) -> Result<Self, TaskError> {
        Self::new(HttpMethod::Get, url)
    }

    /// A HEAD, which takes no body.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn head(url: impl Into<String>) -> Result<Self, TaskError> {
        Self::new(HttpMethod::Head, url)
    }

    /// A DELETE, which takes no body.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn delete(url: impl Into<String>) -> Result<Self, TaskError> {
        Self::new(HttpMethod::Delete, url)
    }

    /// An OPTIONS, which takes no body.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn options(url: impl Into<String>) -> Result<Self, TaskError> {
        Self::new(HttpMethod::Options, url)
    }

    /// Adds one segment to the path, percent-encoded, so that nothing in `text` can change which
    /// path is called. An empty segment, `.` and `..` would, however they are encoded: they make
    /// the task a rejection.
    pub fn segment(mut self, text: impl AsRef<str>) -> Self {
        if let Err(error) = self.url.push_segment(text.as_ref()) {
            self.fault.get_or_insert(error);
        }
        self
    }

    /// Adds a pair to the query string, both parts percent-encoded (a space becomes `%20`).
    pub fn query(mut self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.url.push_query(key.as_ref(), value.as_ref());
        self
    }

    /// Sets a header. One of the same name, in whatever letter case, is replaced.
    ///
    /// Authorization beside a token, headers that the service drops or replaces (Host,
    /// Content-Length, User-Agent, X-Google-*, X-AppEngine-* and the like), and names or values
    /// that it would not send unchanged make the task a rejection.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.set(name.into(), value.into());
        self
    }

    /// Sets the body. No Content-Type is added, by this crate or by the service.
    ///
    /// A body that is not empty needs POST, PUT or PATCH, or the task is a rejection.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.body_type = None;
        self
    }

    /// Sets the body to `value` as JSON, with Content-Type `application/json` unless a header says
    /// otherwise, set before or after.
    ///
    /// # Errors
    ///
    /// [`TaskError::Json`] when `value` does not serialize.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, TaskError> {
        let body = serde_json::to_vec(value).map_err(|error| TaskError::Json {
            source: Cause::new(error),
        })?;
        self.body = body.into();
        self.body_type = Some("application/json");
        Ok(self)
    }

    /// Sets when the call is made first; without it, or in the past, at once. At most 720 h ahead,
    /// or the task is a rejection. The service keeps microseconds.
    pub const fn schedule_at(mut self, time: SystemTime) -> Self {
        self.schedule_at = Some(time);
        self
    }

    /// Sets how long one call may take: 15 s to 30 min, or the task is a rejection. The service's
    /// default is 10 min; it keeps milliseconds.
    pub const fn dispatch_deadline(mut self, deadline: Duration) -> Self {
        self.dispatch_deadline = Some(deadline);
        self
    }

    /// Has the service add an OpenID Connect token of `service_account`, for Cloud Run, Cloud Run
    /// functions and anything else that verifies Google's tokens.
    ///
    /// `audience` is the target's URL with its query string when `None`. The account must belong to
    /// the queue's project, and whoever creates the task needs `iam.serviceAccounts.actAs` on it.
    /// Excludes [`oauth`](Self::oauth) and an Authorization header.
    pub fn oidc(mut self, service_account: impl Into<String>, audience: Option<&str>) -> Self {
        self.oidc = Some(Token::new(service_account.into(), audience));
        self
    }

    /// Has the service add an OAuth access token of `service_account`, for Google's own APIs: the
    /// host must end in `.googleapis.com`.
    ///
    /// `scope` is `https://www.googleapis.com/auth/cloud-platform` when `None`. Excludes
    /// [`oidc`](Self::oidc) and an Authorization header.
    pub fn oauth(mut self, service_account: impl Into<String>, scope: Option<&str>) -> Self {
        self.oauth = Some(Token::new(service_account.into(), scope));
        self
    }

    /// The URL as it will be called.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Finds what the service would refuse or drop, except the size, which is known only once the
    /// task is encoded.
    pub(crate) fn check(
        &self,
        now: SystemTime,
        allowed: Option<&AllowedHosts>,
    ) -> Result<(), TaskError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let host = self.url.host();
        if let Some(allowed) = allowed
            && !allowed.contains(host)
        {
            return Err(TaskError::HostNotAllowed {
                host: host.to_owned(),
            });
        }
        if !self.body.is_empty() && !self.method.takes_body() {
            return Err(TaskError::BodyNotAllowed {
                method: self.method,
            });
        }
        self.headers.check()?;
        if (self.oidc.is_some() || self.oauth.is_some()) && self.headers.has("authorization") {
            return Err(TaskError::AuthorizationBesideToken);
        }
        if self.oidc.is_some() && self.oauth.is_some() {
            return Err(TaskError::TwoTokens);
        }
        for token in self.oidc.iter().chain(&self.oauth) {
            token.check()?;
        }
        if self.oauth.is_some() && !host.ends_with(".googleapis.com") {
            return Err(TaskError::OauthHost {
                host: host.to_owned(),
            });
        }
        if let Some(deadline) = self.dispatch_deadline
            && !(DISPATCH_DEADLINE.0..=DISPATCH_DEADLINE.1).contains(&deadline)
        {
            return Err(TaskError::DispatchDeadline { deadline });
        }
        if let Some(at) = self.schedule_at
            && let Ok(ahead) = at.duration_since(now)
            && ahead > SCHEDULE_AHEAD
        {
            return Err(TaskError::ScheduledTooFar { ahead });
        }
        Ok(())
    }

    /// The message for the service, under `name` (empty: the service gives one).
    pub(crate) fn into_message(self, name: String) -> proto::tasks::Task {
        let Self {
            method,
            url,
            mut headers,
            body,
            body_type,
            oidc,
            oauth,
            schedule_at,
            dispatch_deadline,
            fault: _,
        } = self;
        if let Some(body_type) = body_type
            && !headers.has("content-type")
        {
            headers.set("Content-Type".to_owned(), body_type.to_owned());
        }
        let request = proto::tasks::HttpRequest {
            url: url.into_string(),
            http_method: method.number(),
            headers: headers.into_map(),
            body,
            authorization_header: token::header(oidc, oauth),
        };
        proto::tasks::Task {
            name,
            schedule_time: schedule_at.map(timestamp),
            dispatch_deadline: dispatch_deadline.map(|deadline| proto::Duration {
                seconds: i64::try_from(deadline.as_secs()).unwrap_or(i64::MAX),
                nanos: i32::try_from(deadline.subsec_nanos()).unwrap_or(0),
            }),
            message_type: Some(proto::tasks::task::MessageType::HttpRequest(request)),
            ..proto::tasks::Task::default()
        }
    }
}

// Headers and bodies carry credentials and personal data; the query string of a URL may too.
impl std::fmt::Debug for HttpTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTask")
            .field("method", &self.method)
            .field("url", &self.url.without_query())
            .field("headers", &self.headers.names())
            .field("body_bytes", &self.body.len())
            .field("schedule_at", &self.schedule_at)
            .finish_non_exhaustive()
    }
}

/// The time as the wire has it. Before 1970 the seconds are negative and the nanoseconds still
/// count forward.
fn timestamp(time: SystemTime) -> proto::Timestamp {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let nanos = |span: Duration| i32::try_from(span.subsec_nanos()).unwrap_or(0);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => proto::Timestamp {
            seconds: seconds(after),
            nanos: nanos(after),
        },
        Err(error) => {
            let before = error.duration();
            match nanos(before) {
                0 => proto::Timestamp {
                    seconds: -seconds(before),
                    nanos: 0,
                },
                part => proto::Timestamp {
                    seconds: -seconds(before) - 1,
                    nanos: 1_000_000_000 - part,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests;
