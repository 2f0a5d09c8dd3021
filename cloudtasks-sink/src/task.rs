//! What a task calls, and how.

mod app_engine;
mod call;
mod dispatch;
mod error;
mod full;
mod headers;
mod hosts;
mod http;
mod method;
mod path;
mod relative;
mod retries;
mod target;
mod token;
mod url;

pub use app_engine::AppEngineTask;
pub use error::{HeaderRule, RelativeUriRule, RetryRule, TaskError, UrlRule};
pub use full::FullTask;
pub use http::HttpTask;
pub use method::HttpMethod;
pub use retries::TaskRetries;

pub(crate) use hosts::AllowedHosts;

use std::time::SystemTime;

use gcp_wire::QueueName;

use crate::request::Request;

/// A task of any kind: what an encoder answers when its records become tasks of several kinds.
///
/// An encoder of one kind needs none of this: an [`HttpTask`], an [`AppEngineTask`] or a
/// [`FullTask`] will do.
///
/// ```
/// use cloudtasks_sink::{AppEngineTask, CloudTasksSink, HttpTask, Task};
///
/// let builder = CloudTasksSink::builder(|partner: &Option<String>| {
///     Ok(Some(match partner {
///         Some(host) => Task::from(HttpTask::post(format!("https://{host}/orders"))?),
///         None => Task::from(AppEngineTask::post("/orders")),
///     }))
/// });
/// # drop(builder);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Task {
    /// It calls a URL.
    Http(HttpTask),
    /// It calls an App Engine application.
    AppEngine(AppEngineTask),
    /// It was encoded by somebody else.
    Full(FullTask),
}

impl From<HttpTask> for Task {
    fn from(task: HttpTask) -> Self {
        Self::Http(task)
    }
}

impl From<AppEngineTask> for Task {
    fn from(task: AppEngineTask) -> Self {
        Self::AppEngine(task)
    }
}

impl From<FullTask> for Task {
    fn from(task: FullTask) -> Self {
        Self::Full(task)
    }
}

impl Task {
    /// Finds what the service would refuse or drop, except the size, which is known only once the
    /// task is encoded.
    pub(crate) fn check(
        &self,
        now: SystemTime,
        allowed: Option<&AllowedHosts>,
    ) -> Result<(), TaskError> {
        match self {
            Self::Http(task) => task.check(now, allowed),
            Self::AppEngine(task) => task.check(now),
            Self::Full(task) => task.check(now, allowed),
        }
    }

    /// The request that creates the task in `queue` under `name` (empty: the service gives one).
    pub(crate) fn into_request(self, queue: &QueueName, name: String) -> Request {
        match self {
            Self::Http(task) => task.into_request(queue, &name),
            Self::AppEngine(task) => Request::new(queue, &task.into_message(name)),
            Self::Full(task) => Request::of_encoded(queue, &name, &task.into_rest()),
        }
    }
}
