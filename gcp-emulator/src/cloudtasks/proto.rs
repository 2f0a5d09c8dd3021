//! The messages of `google.cloud.tasks.v2` and `google.longrunning` that are answered.
//!
//! Declared by hand: the published type crate lacks a task's retry configuration, a queue's HTTP
//! target and the batch calls. Numbers and types are those of the public interface definition.

#![expect(
    clippy::exhaustive_structs,
    reason = "wire messages: callers build them with struct update syntax"
)]

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use prost::{Enumeration, Message, Oneof};
use prost_types::{Any, Duration, Timestamp};

/// A task of a queue.
#[derive(Clone, PartialEq, Message)]
pub struct Task {
    /// `projects/P/locations/L/queues/Q/tasks/T`; empty lets the service name it.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What is called when the task runs.
    #[prost(oneof = "task::MessageType", tags = "2, 3")]
    pub message_type: Option<task::MessageType>,
    /// When the task is due.
    #[prost(message, optional, tag = "4")]
    pub schedule_time: Option<Timestamp>,
    /// When the task was created. Output only.
    #[prost(message, optional, tag = "5")]
    pub create_time: Option<Timestamp>,
    /// How long the called server may take.
    #[prost(message, optional, tag = "6")]
    pub dispatch_deadline: Option<Duration>,
    /// Dispatches so far. Output only.
    #[prost(int32, tag = "7")]
    pub dispatch_count: i32,
    /// Answers so far. Output only.
    #[prost(int32, tag = "8")]
    pub response_count: i32,
    /// The first dispatch. Output only.
    #[prost(message, optional, tag = "9")]
    pub first_attempt: Option<Attempt>,
    /// The latest dispatch. Output only.
    #[prost(message, optional, tag = "10")]
    pub last_attempt: Option<Attempt>,
    /// Which fields an answer carries. Output only.
    #[prost(enumeration = "task::View", tag = "11")]
    pub view: i32,
    /// Overrides the queue's retry configuration.
    #[prost(message, optional, tag = "12")]
    pub retry_config: Option<RetryConfig>,
}

/// Parts of a [`Task`].
pub mod task {
    use super::{AppEngineHttpRequest, Enumeration, HttpRequest, Oneof};

    /// What is called when the task runs.
    #[derive(Clone, PartialEq, Oneof)]
    #[expect(clippy::exhaustive_enums, reason = "a oneof of the wire format")]
    pub enum MessageType {
        /// An App Engine handler.
        #[prost(message, tag = "2")]
        AppEngineHttpRequest(AppEngineHttpRequest),
        /// An HTTP endpoint.
        #[prost(message, tag = "3")]
        HttpRequest(HttpRequest),
    }

    /// Which fields an answer carries.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
    #[repr(i32)]
    #[expect(clippy::exhaustive_enums, reason = "an enumeration of the wire format")]
    pub enum View {
        /// BASIC.
        Unspecified = 0,
        /// Without body and headers.
        Basic = 1,
        /// Everything.
        Full = 2,
    }
}

/// One dispatch of a task.
#[derive(Clone, PartialEq, Message)]
pub struct Attempt {
    /// When it was due.
    #[prost(message, optional, tag = "1")]
    pub schedule_time: Option<Timestamp>,
    /// When it was sent.
    #[prost(message, optional, tag = "2")]
    pub dispatch_time: Option<Timestamp>,
    /// When the answer came.
    #[prost(message, optional, tag = "3")]
    pub response_time: Option<Timestamp>,
}

/// An HTTP call.
#[derive(Clone, PartialEq, Message)]
pub struct HttpRequest {
    /// The full address, `http://` or `https://`.
    #[prost(string, tag = "1")]
    pub url: String,
    /// The method; POST when unspecified or unknown.
    #[prost(enumeration = "HttpMethod", tag = "2")]
    pub http_method: i32,
    /// Headers of the call.
    #[prost(map = "string, string", tag = "3")]
    pub headers: HashMap<String, String>,
    /// The body; allowed for POST, PUT and PATCH.
    #[prost(bytes = "bytes", tag = "4")]
    pub body: Bytes,
    /// The token the service adds.
    #[prost(oneof = "http_request::AuthorizationHeader", tags = "5, 6")]
    pub authorization_header: Option<http_request::AuthorizationHeader>,
}

/// Parts of an [`HttpRequest`].
pub mod http_request {
    use super::{OAuthToken, OidcToken, Oneof};

    /// The token the service adds.
    #[derive(Clone, PartialEq, Eq, Hash, Oneof)]
    #[expect(clippy::exhaustive_enums, reason = "a oneof of the wire format")]
    pub enum AuthorizationHeader {
        /// An access token for Google's own services.
        #[prost(message, tag = "5")]
        OauthToken(OAuthToken),
        /// An identity token for anyone else.
        #[prost(message, tag = "6")]
        OidcToken(OidcToken),
    }
}

/// An access token for `*.googleapis.com`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct OAuthToken {
    /// Whose token.
    #[prost(string, tag = "1")]
    pub service_account_email: String,
    /// Its scope.
    #[prost(string, tag = "2")]
    pub scope: String,
}

/// An OpenID Connect identity token.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct OidcToken {
    /// Whose token.
    #[prost(string, tag = "1")]
    pub service_account_email: String,
    /// Its audience; the target address when empty.
    #[prost(string, tag = "2")]
    pub audience: String,
}

/// A call of an App Engine handler.
#[derive(Clone, PartialEq, Message)]
pub struct AppEngineHttpRequest {
    /// The method; POST when unspecified.
    #[prost(enumeration = "HttpMethod", tag = "1")]
    pub http_method: i32,
    /// Service, version and instance.
    #[prost(message, optional, tag = "2")]
    pub app_engine_routing: Option<AppEngineRouting>,
    /// The path, starting with `/`.
    #[prost(string, tag = "3")]
    pub relative_uri: String,
    /// Headers of the call.
    #[prost(map = "string, string", tag = "4")]
    pub headers: HashMap<String, String>,
    /// The body.
    #[prost(bytes = "bytes", tag = "5")]
    pub body: Bytes,
}

/// Where an App Engine call goes.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct AppEngineRouting {
    /// The service.
    #[prost(string, tag = "1")]
    pub service: String,
    /// The version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// The instance.
    #[prost(string, tag = "3")]
    pub instance: String,
    /// The host. Output only.
    #[prost(string, tag = "4")]
    pub host: String,
}

/// HTTP methods of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
#[expect(clippy::exhaustive_enums, reason = "an enumeration of the wire format")]
pub enum HttpMethod {
    /// POST.
    Unspecified = 0,
    /// POST.
    Post = 1,
    /// GET.
    Get = 2,
    /// HEAD.
    Head = 3,
    /// PUT.
    Put = 4,
    /// DELETE.
    Delete = 5,
    /// PATCH.
    Patch = 6,
    /// OPTIONS.
    Options = 7,
}

/// A queue.
#[derive(Clone, PartialEq, Message)]
pub struct Queue {
    /// `projects/P/locations/L/queues/Q`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Overrides of App Engine routing.
    #[prost(message, optional, tag = "2")]
    pub app_engine_routing_override: Option<AppEngineRouting>,
    /// How fast tasks leave.
    #[prost(message, optional, tag = "3")]
    pub rate_limits: Option<RateLimits>,
    /// How failed tasks are retried.
    #[prost(message, optional, tag = "4")]
    pub retry_config: Option<RetryConfig>,
    /// Output only.
    #[prost(enumeration = "queue::State", tag = "5")]
    pub state: i32,
    /// When the queue was last purged. Output only.
    #[prost(message, optional, tag = "6")]
    pub purge_time: Option<Timestamp>,
    /// Overrides of the tasks' targets.
    #[prost(message, optional, tag = "10")]
    pub http_target: Option<HttpTarget>,
}

/// Parts of a [`Queue`].
pub mod queue {
    use super::Enumeration;

    /// Whether a queue dispatches.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
    #[repr(i32)]
    #[expect(clippy::exhaustive_enums, reason = "an enumeration of the wire format")]
    pub enum State {
        /// Never answered.
        Unspecified = 0,
        /// Dispatches.
        Running = 1,
        /// Paused by a caller.
        Paused = 2,
        /// Disabled by the service.
        Disabled = 3,
    }
}

/// How fast tasks leave a queue.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct RateLimits {
    /// At most 500.
    #[prost(double, tag = "1")]
    pub max_dispatches_per_second: f64,
    /// Output only.
    #[prost(int32, tag = "2")]
    pub max_burst_size: i32,
    /// Calls at the same time.
    #[prost(int32, tag = "3")]
    pub max_concurrent_dispatches: i32,
}

/// How failed tasks are retried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct RetryConfig {
    /// -1 is without limit.
    #[prost(int32, tag = "1")]
    pub max_attempts: i32,
    /// Zero is without limit.
    #[prost(message, optional, tag = "2")]
    pub max_retry_duration: Option<Duration>,
    /// The first pause.
    #[prost(message, optional, tag = "3")]
    pub min_backoff: Option<Duration>,
    /// The longest pause.
    #[prost(message, optional, tag = "4")]
    pub max_backoff: Option<Duration>,
    /// How often the pause doubles.
    #[prost(int32, tag = "5")]
    pub max_doublings: i32,
}

/// Overrides of the targets of a queue's tasks.
#[derive(Clone, PartialEq, Message)]
pub struct HttpTarget {
    /// Overrides of the address.
    #[prost(message, optional, tag = "1")]
    pub uri_override: Option<UriOverride>,
    /// Override of the method.
    #[prost(enumeration = "HttpMethod", tag = "2")]
    pub http_method: i32,
    /// Overrides of headers.
    #[prost(message, repeated, tag = "3")]
    pub header_overrides: Vec<HeaderOverride>,
    /// Override of the token.
    #[prost(oneof = "http_request::AuthorizationHeader", tags = "5, 6")]
    pub authorization_header: Option<http_request::AuthorizationHeader>,
}

/// Overrides of a target's address.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct UriOverride {
    /// HTTP 1, HTTPS 2.
    #[prost(int32, optional, tag = "1")]
    pub scheme: Option<i32>,
    /// Host.
    #[prost(string, optional, tag = "2")]
    pub host: Option<String>,
    /// Port.
    #[prost(int64, optional, tag = "3")]
    pub port: Option<i64>,
    /// Path.
    #[prost(message, optional, tag = "4")]
    pub path_override: Option<PathOverride>,
    /// Query.
    #[prost(message, optional, tag = "5")]
    pub query_override: Option<QueryOverride>,
    /// IF_NOT_EXISTS 1, ALWAYS 2.
    #[prost(int32, tag = "6")]
    pub uri_override_enforce_mode: i32,
}

/// Override of a path.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct PathOverride {
    /// The path.
    #[prost(string, tag = "1")]
    pub path: String,
}

/// Override of a query.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct QueryOverride {
    /// The query, without `?`.
    #[prost(string, tag = "1")]
    pub query_params: String,
}

/// Override of a header.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct HeaderOverride {
    /// The header.
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
}

/// A header.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Header {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Request of `ListQueues`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ListQueuesRequest {
    /// `projects/P/locations/L`.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// Not supported: must be empty.
    #[prost(string, tag = "2")]
    pub filter: String,
    /// At most this many.
    #[prost(int32, tag = "3")]
    pub page_size: i32,
    /// Where the last page ended.
    #[prost(string, tag = "4")]
    pub page_token: String,
}

/// Answer of `ListQueues`.
#[derive(Clone, PartialEq, Message)]
pub struct ListQueuesResponse {
    /// A page of queues.
    #[prost(message, repeated, tag = "1")]
    pub queues: Vec<Queue>,
    /// Not empty when there are more.
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}

/// Request of `GetQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GetQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `CreateQueue`.
#[derive(Clone, PartialEq, Message)]
pub struct CreateQueueRequest {
    /// `projects/P/locations/L`.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// The queue.
    #[prost(message, optional, tag = "2")]
    pub queue: Option<Queue>,
}

/// Request of `DeleteQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `PauseQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct PauseQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `ResumeQueue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ResumeQueueRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `ListTasks`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ListTasksRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// Which fields the answer carries.
    #[prost(enumeration = "task::View", tag = "2")]
    pub response_view: i32,
    /// At most this many.
    #[prost(int32, tag = "3")]
    pub page_size: i32,
    /// Where the last page ended.
    #[prost(string, tag = "4")]
    pub page_token: String,
}

/// Answer of `ListTasks`.
#[derive(Clone, PartialEq, Message)]
pub struct ListTasksResponse {
    /// A page of tasks.
    #[prost(message, repeated, tag = "1")]
    pub tasks: Vec<Task>,
    /// Not empty when there are more.
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}

/// Request of `GetTask`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GetTaskRequest {
    /// The task.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Which fields the answer carries.
    #[prost(enumeration = "task::View", tag = "2")]
    pub response_view: i32,
}

/// Request of `CreateTask`.
#[derive(Clone, PartialEq, Message)]
pub struct CreateTaskRequest {
    /// The queue.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// The task.
    #[prost(message, optional, tag = "2")]
    pub task: Option<Task>,
    /// Which fields the answer carries.
    #[prost(enumeration = "task::View", tag = "3")]
    pub response_view: i32,
}

/// Request of `DeleteTask`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteTaskRequest {
    /// The task.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Request of `BatchCreateTasks`.
#[derive(Clone, PartialEq, Message)]
pub struct BatchCreateTasksRequest {
    /// The queue of every request.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// At most 100.
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<CreateTaskRequest>,
    /// Names the operation; empty lets the service name it.
    #[prost(string, tag = "3")]
    pub request_id: String,
}

/// Answer of `BatchCreateTasks`, inside its operation.
#[derive(Clone, PartialEq, Message)]
pub struct BatchCreateTasksResponse {
    /// The created tasks.
    #[prost(message, repeated, tag = "1")]
    pub tasks: Vec<Task>,
}

/// Progress of `BatchCreateTasks`, inside its operation.
#[derive(Clone, PartialEq, Message)]
pub struct BatchCreateTasksMetadata {
    /// When the batch began.
    #[prost(message, optional, tag = "1")]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[prost(message, optional, tag = "2")]
    pub end_time: Option<Timestamp>,
    /// How it went.
    #[prost(enumeration = "batch_create_tasks_metadata::State", tag = "3")]
    pub state: i32,
    /// Verdicts of the refused requests by their index.
    #[prost(btree_map = "int32, message", tag = "4")]
    pub failed_requests: BTreeMap<i32, RpcStatus>,
}

/// Parts of a [`BatchCreateTasksMetadata`].
pub mod batch_create_tasks_metadata {
    use super::Enumeration;

    /// How a batch went.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
    #[repr(i32)]
    #[expect(clippy::exhaustive_enums, reason = "an enumeration of the wire format")]
    pub enum State {
        /// Never answered.
        Unspecified = 0,
        /// Not ended.
        Running = 1,
        /// Every task was created.
        Succeeded = 2,
        /// No task was created.
        Failed = 3,
        /// Given up.
        Cancelled = 4,
        /// Some tasks were created.
        PartiallySucceeded = 5,
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    /// The gRPC code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// The text.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Details.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ErrorInfo {
    /// Why, in capitals.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// Who says so.
    #[prost(string, tag = "2")]
    pub domain: String,
    /// What it is about.
    #[prost(btree_map = "string, string", tag = "3")]
    pub metadata: BTreeMap<String, String>,
}

/// A long-running operation.
#[derive(Clone, PartialEq, Message)]
pub struct Operation {
    /// `projects/P/locations/L/operations/ID`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A [`BatchCreateTasksMetadata`].
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<Any>,
    /// Whether a result is there.
    #[prost(bool, tag = "3")]
    pub done: bool,
    /// The result.
    #[prost(oneof = "operation::Result", tags = "4, 5")]
    pub result: Option<operation::Result>,
}

/// Parts of an [`Operation`].
pub mod operation {
    use super::{Any, Oneof, RpcStatus};

    /// The result of an operation.
    #[derive(Clone, PartialEq, Oneof)]
    #[expect(clippy::exhaustive_enums, reason = "a oneof of the wire format")]
    pub enum Result {
        /// It failed as a whole.
        #[prost(message, tag = "4")]
        Error(RpcStatus),
        /// A [`BatchCreateTasksResponse`](super::BatchCreateTasksResponse).
        #[prost(message, tag = "5")]
        Response(Any),
    }
}

/// Request of `GetOperation`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GetOperationRequest {
    /// The operation.
    #[prost(string, tag = "1")]
    pub name: String,
}
