//! Queues and their settings.

use prost::{Enumeration, Message};
use prost_types::{Duration, Timestamp};

use super::{AppEngineRouting, HttpMethod, http_request};

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
