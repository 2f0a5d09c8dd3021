//! Tasks that call a URL.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gcp_wire::{QueueName, proto};
use serde::Serialize;

use super::call::Call;
use super::dispatch::{Dispatch, HTTP_DEADLINE};
use super::headers::Headers;
use super::hosts::AllowedHosts;
use super::target::Target;
use super::token::{self, Token};
use super::url::TargetUrl;
use super::{HttpMethod, TaskError, TaskRetries};
use crate::body::{BodyFormat, Json};
use crate::request::Request;

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
/// Where every task calls the same URL, or most of what they say is the same, an encoder keeps that
/// task and answers a clone of it with a body: checking the URL is a third of what it costs to
/// prepare a small task.
///
/// Everything that the service would refuse, or drop without a word, is found before the task is
/// sent: by the constructor for the URL, by the sink for the rest. It is a rejection of that one
/// record, with a [`TaskError`] as its source.
#[derive(Clone)]
#[must_use = "a task does nothing until an encoder returns it to the sink"]
pub struct HttpTask {
    url: TargetUrl,
    call: Call,
    // Few tasks have any of these, and every task is moved from hand to hand.
    oidc: Option<Box<Token>>,
    oauth: Option<Box<Token>>,
    /// What is wrong with the path, found while it was put together.
    fault: Option<Box<TaskError>>,
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
            url: TargetUrl::parse(url.into())?,
            call: Call::new(method),
            oidc: None,
            oauth: None,
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
            self.fault.get_or_insert_with(|| Box::new(error));
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
        self.call.headers.set(name.into(), value.into());
        self
    }

    /// Sets the body. No Content-Type is added, by this crate or by the service.
    ///
    /// A body that is not empty needs POST, PUT or PATCH, or the task is a rejection.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.call.body.set(body.into());
        self
    }

    /// Sets the body to `value` as JSON, with Content-Type `application/json` unless a header says
    /// otherwise, set before or after: [`body_as`](Self::body_as) with [`Json`].
    ///
    /// # Errors
    ///
    /// [`TaskError::Body`] when `value` does not serialize.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Result<Self, TaskError> {
        self.body_as(&Json, value)
    }

    /// Sets the body to `value` in a format: [`Json`], [`Csv`](crate::Csv), [`Text`](crate::Text),
    /// [`Form`](crate::Form), or one of your own.
    ///
    /// A method that takes no body leaves `value` alone and the body empty, so that one encoder may
    /// serve records of every method.
    ///
    /// # Errors
    ///
    /// [`TaskError::Body`] when `value` does not serialize.
    pub fn body_as<T: ?Sized>(
        mut self,
        format: &impl BodyFormat<T>,
        value: &T,
    ) -> Result<Self, TaskError> {
        if self.call.method.takes_body() {
            self.call.body.set_as(format, value)?;
        }
        Ok(self)
    }

    /// Sets when the call is made first; without it, or in the past, at once. At most 720 h ahead,
    /// or the task is a rejection. The service keeps microseconds.
    pub const fn schedule_at(mut self, time: SystemTime) -> Self {
        self.call.dispatch.schedule_at = Some(time);
        self
    }

    /// Sets how long one call may take: 15 s to 30 min, or the task is a rejection. The service's
    /// default is 10 min; it keeps milliseconds.
    pub const fn dispatch_deadline(mut self, deadline: Duration) -> Self {
        self.call.dispatch.deadline = Some(deadline);
        self
    }

    /// Sets how often and how fast the call is repeated when it fails. Default: as the queue has
    /// it. A rule that the service refuses makes the task a rejection.
    pub const fn retries(mut self, retries: TaskRetries) -> Self {
        self.call.dispatch.retries = Some(retries);
        self
    }

    /// Has the service add an OpenID Connect token of `service_account`, for Cloud Run, Cloud Run
    /// functions and anything else that verifies Google's tokens.
    ///
    /// `audience` is the target's URL with its query string when `None`. The account must belong to
    /// the queue's project, and whoever creates the task needs `iam.serviceAccounts.actAs` on it.
    /// Excludes [`oauth`](Self::oauth) and an Authorization header.
    pub fn oidc(mut self, service_account: impl Into<String>, audience: Option<&str>) -> Self {
        self.oidc = Some(Box::new(Token::new(service_account.into(), audience)));
        self
    }

    /// Has the service add an OAuth access token of `service_account`, for Google's own APIs: the
    /// host must end in `.googleapis.com`.
    ///
    /// `scope` is `https://www.googleapis.com/auth/cloud-platform` when `None`. Excludes
    /// [`oidc`](Self::oidc) and an Authorization header.
    pub fn oauth(mut self, service_account: impl Into<String>, scope: Option<&str>) -> Self {
        self.oauth = Some(Box::new(Token::new(service_account.into(), scope)));
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
            return Err(TaskError::clone(fault));
        }
        let host = self.url.host();
        if let Some(allowed) = allowed
            && !allowed.contains(host)
        {
            return Err(TaskError::HostNotAllowed {
                host: host.to_owned(),
            });
        }
        self.call
            .check_body(self.call.method.takes_body(), "POST, PUT and PATCH")?;
        self.call.headers.check()?;
        if (self.oidc.is_some() || self.oauth.is_some()) && self.call.headers.has("authorization") {
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
        self.call.dispatch.check(now, HTTP_DEADLINE)
    }

    /// The request that creates the task in `queue` under `name` (empty: the service gives one).
    ///
    /// Written field by field, to the bytes of the generated type, which is several times larger than
    /// what an encoder says, and would be moved from hand to hand.
    pub(super) fn into_request(self, queue: &QueueName, name: &str) -> Request {
        let Self {
            url,
            call,
            oidc,
            oauth,
            fault: _,
        } = self;
        let (method, headers, body, dispatch) = call.into_parts();
        let target = Target {
            url: url.into_string(),
            method,
            headers,
            body,
            token: token::header(oidc.map(|token| *token), oauth.map(|token| *token)),
        };
        target.into_request(queue, name, dispatch)
    }

    /// The message of the generated type.
    #[cfg(test)]
    pub(crate) fn into_message(self, name: String) -> proto::tasks::Task {
        let Self {
            url,
            call,
            oidc,
            oauth,
            fault: _,
        } = self;
        let (method, headers, body, dispatch) = call.into_parts();
        let request = proto::tasks::HttpRequest {
            url: url.into_string(),
            http_method: method,
            headers,
            body,
            authorization_header: token::header(
                oidc.map(|token| *token),
                oauth.map(|token| *token),
            ),
        };
        dispatch.into_message(name, proto::tasks::task::MessageType::HttpRequest(request))
    }

    /// The task that a message describes, for checking it by the same rules.
    pub(super) fn of_message(
        request: proto::tasks::HttpRequest,
        dispatch: Dispatch,
    ) -> Result<Self, TaskError> {
        let mut task = Self::new(HttpMethod::of_number(request.http_method), request.url)?;
        task.call.headers = Headers::of_map(request.headers);
        task.call.body.set(request.body);
        task.call.dispatch = dispatch;
        let (oidc, oauth) = token::of_header(request.authorization_header);
        (task.oidc, task.oauth) = (oidc.map(Box::new), oauth.map(Box::new));
        Ok(task)
    }
}

// Headers and bodies carry credentials and personal data; the query string of a URL may too.
impl std::fmt::Debug for HttpTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTask")
            .field("url", &self.url.without_query())
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
