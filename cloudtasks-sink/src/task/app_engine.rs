//! Tasks that call an App Engine application.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gcp_wire::proto;
use gcp_wire::proto::tasks::task::MessageType;
use serde::Serialize;

use super::call::Call;
use super::dispatch::{APP_ENGINE_DEADLINE, Dispatch};
use super::headers::Headers;
use super::relative::RelativeUri;
use super::{HttpMethod, TaskError, TaskRetries};
use crate::body::{BodyFormat, Json};

/// A request that Cloud Tasks makes to the App Engine application of the queue's project.
///
/// ```
/// use cloudtasks_sink::AppEngineTask;
///
/// let task = AppEngineTask::post("/orders")
///     .segment("2026/17")                       // /orders/2026%2F17
///     .service("worker")
///     .version("v2")
///     .json(&[1, 2, 3])?;
/// # let _: AppEngineTask = task;
/// # Ok::<(), cloudtasks_sink::TaskError>(())
/// ```
///
/// As with an [`HttpTask`](crate::HttpTask), what the service would refuse or drop is found before
/// the task is sent, and is a rejection of that one record. An application authenticates its tasks
/// by their X-AppEngine-* headers, which nobody else can send, so a task carries no token.
///
/// A queue's App Engine routing override wins over what a task says.
#[derive(Clone)]
#[must_use = "a task does nothing until an encoder returns it to the sink"]
pub struct AppEngineTask {
    uri: RelativeUri,
    call: Call,
    service: String,
    version: String,
    instance: String,
    /// What is wrong, found while the task was put together.
    fault: Option<TaskError>,
}

impl AppEngineTask {
    /// A task that calls `uri` with `method`.
    ///
    /// `uri` is a path and perhaps a query string within the application: empty for its root, or
    /// starting with one slash, without white space or a fragment, at most 2,083 characters.
    /// Anything else makes the task a rejection.
    pub fn new(method: HttpMethod, uri: impl Into<String>) -> Self {
        Self {
            uri: RelativeUri::new(uri.into()),
            call: Call::new(method),
            service: String::new(),
            version: String::new(),
            instance: String::new(),
            fault: None,
        }
    }

    /// A POST.
    pub fn post(uri: impl Into<String>) -> Self {
        Self::new(HttpMethod::Post, uri)
    }

    /// A PUT.
    pub fn put(uri: impl Into<String>) -> Self {
        Self::new(HttpMethod::Put, uri)
    }

    /// A GET, which takes no body.
    pub fn get(uri: impl Into<String>) -> Self {
        Self::new(HttpMethod::Get, uri)
    }

    /// A DELETE, which takes no body.
    pub fn delete(uri: impl Into<String>) -> Self {
        Self::new(HttpMethod::Delete, uri)
    }

    /// Adds one segment to the path, percent-encoded. An empty segment, `.` and `..` make the task
    /// a rejection, as in an [`HttpTask`](crate::HttpTask::segment).
    pub fn segment(mut self, text: impl AsRef<str>) -> Self {
        if let Err(error) = self.uri.push_segment(text.as_ref()) {
            self.fault.get_or_insert(error);
        }
        self
    }

    /// Adds a pair to the query string, both parts percent-encoded (a space becomes `%20`).
    pub fn query(mut self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.uri.push_query(key.as_ref(), value.as_ref());
        self
    }

    /// Calls this service of the application. Default: its default service.
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.service = service.into();
        self
    }

    /// Calls this version of the service. Default: the one that serves.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Calls this instance of the version, which only manual scaling has. Default: any.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = instance.into();
        self
    }

    /// Sets a header. One of the same name, in whatever letter case, is replaced.
    ///
    /// Host, Content-Length, X-Google-* and X-AppEngine-*, which the service keeps for itself, and
    /// names or values that it would not send unchanged make the task a rejection. The service adds
    /// its own name to a User-Agent.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.call.headers.set(name.into(), value.into());
        self
    }

    /// Sets the body. Without a Content-Type header the service adds `application/octet-stream`.
    ///
    /// A body that is not empty needs POST or PUT, or the task is a rejection.
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
        if takes_body(self.call.method) {
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

    /// Sets how long one call may take: 15 s to 24 h and 15 s, or the task is a rejection. The
    /// service's default depends on how the application scales: 10 min when automatically, 24 h
    /// otherwise.
    pub const fn dispatch_deadline(mut self, deadline: Duration) -> Self {
        self.call.dispatch.deadline = Some(deadline);
        self
    }

    /// Sets how often and how fast the call is repeated when it fails. Default: as the queue has
    /// it. A rule that the service refuses makes the task a rejection.
    pub fn retries(mut self, retries: TaskRetries) -> Self {
        self.call.dispatch.retries = Some(retries);
        self
    }

    pub(super) fn check(&self, now: SystemTime) -> Result<(), TaskError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        self.uri.check()?;
        self.call
            .check_body(takes_body(self.call.method), "POST and PUT")?;
        self.call.headers.check_app_engine()?;
        self.call.dispatch.check(now, APP_ENGINE_DEADLINE)
    }

    pub(super) fn into_message(self, name: String) -> proto::tasks::Task {
        let Self {
            uri,
            call,
            service,
            version,
            instance,
            fault: _,
        } = self;
        let (method, headers, body, dispatch) = call.into_parts();
        let routing = proto::tasks::AppEngineRouting {
            service,
            version,
            instance,
            host: String::new(),
        };
        let request = proto::tasks::AppEngineHttpRequest {
            http_method: method,
            app_engine_routing: Some(routing)
                .filter(|routing| *routing != proto::tasks::AppEngineRouting::default()),
            relative_uri: uri.into_string(),
            headers,
            body,
        };
        dispatch.into_message(name, MessageType::AppEngineHttpRequest(request))
    }

    /// The task that a message describes, for checking it by the same rules.
    pub(super) fn of_message(
        request: proto::tasks::AppEngineHttpRequest,
        dispatch: Dispatch,
    ) -> Self {
        let method = HttpMethod::of_number(request.http_method);
        let mut task = Self::new(method, request.relative_uri);
        task.call.headers = Headers::of_map(request.headers);
        task.call.body.set(request.body);
        task.call.dispatch = dispatch;
        let routing = request.app_engine_routing.unwrap_or_default();
        if !routing.host.is_empty() {
            task.fault = Some(TaskError::Unreadable {
                part: "app_engine_routing.host, which only the service sets,",
            });
        }
        (task.service, task.version) = (routing.service, routing.version);
        task.instance = routing.instance;
        task
    }
}

/// Whether the service accepts a body for an application with this method.
const fn takes_body(method: HttpMethod) -> bool {
    match method {
        HttpMethod::Post | HttpMethod::Put => true,
        HttpMethod::Patch
        | HttpMethod::Get
        | HttpMethod::Head
        | HttpMethod::Delete
        | HttpMethod::Options => false,
    }
}

// The query string of a URI may carry credentials and personal data.
impl std::fmt::Debug for AppEngineTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppEngineTask")
            .field("uri", &self.uri.without_query())
            .field("call", &self.call)
            .field("service", &self.service)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
