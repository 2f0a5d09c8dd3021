use prost_types::{Duration, Timestamp};

use super::{AppEngineRouting, HttpMethod, OAuthToken, OidcToken};

/// A queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Queue {
    /// The full name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Replaces the routing of App Engine tasks.
    #[prost(message, optional, tag = "2")]
    pub app_engine_routing_override: Option<AppEngineRouting>,
    /// How fast tasks are dispatched.
    #[prost(message, optional, tag = "3")]
    pub rate_limits: Option<RateLimits>,
    /// How failed attempts are repeated.
    #[prost(message, optional, tag = "4")]
    pub retry_config: Option<RetryConfig>,
    /// Whether it dispatches; output only.
    #[prost(enumeration = "queue::State", tag = "5")]
    pub state: i32,
    /// When it was last purged; output only.
    #[prost(message, optional, tag = "6")]
    pub purge_time: Option<Timestamp>,
    /// How many operations are logged.
    #[prost(message, optional, tag = "9")]
    pub stackdriver_logging_config: Option<StackdriverLoggingConfig>,
    /// Replaces parts of HTTP tasks, also of those already created.
    #[prost(message, optional, tag = "10")]
    pub http_target: Option<HttpTarget>,
}

/// Types inside [`Queue`].
pub mod queue {
    /// Whether a queue dispatches.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum State {
        /// Not given.
        Unspecified = 0,
        /// It dispatches.
        Running = 1,
        /// It accepts tasks and holds them back.
        Paused = 2,
        /// It was left out of an uploaded `queue.yaml`; it accepts tasks and holds them back.
        Disabled = 3,
    }
}

/// How fast a queue dispatches.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RateLimits {
    /// Dispatches per second, at most 500.
    #[prost(double, tag = "1")]
    pub max_dispatches_per_second: f64,
    /// The size of a burst; output only.
    #[prost(int32, tag = "2")]
    pub max_burst_size: i32,
    /// Dispatches at one time, at most 5,000.
    #[prost(int32, tag = "3")]
    pub max_concurrent_dispatches: i32,
}

/// How failed attempts are repeated, of a queue or of one task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryConfig {
    /// Attempts in all; -1 without limit.
    #[prost(int32, tag = "1")]
    pub max_attempts: i32,
    /// How long to repeat, from the first attempt; whole seconds.
    #[prost(message, optional, tag = "2")]
    pub max_retry_duration: Option<Duration>,
    /// The shortest wait.
    #[prost(message, optional, tag = "3")]
    pub min_backoff: Option<Duration>,
    /// The longest wait.
    #[prost(message, optional, tag = "4")]
    pub max_backoff: Option<Duration>,
    /// How often the wait doubles before it grows by a constant.
    #[prost(int32, tag = "5")]
    pub max_doublings: i32,
}

/// How many operations of a queue are logged.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StackdriverLoggingConfig {
    /// The share, 0.0 to 1.0.
    #[prost(double, tag = "1")]
    pub sampling_ratio: f64,
}

/// What a queue replaces in its HTTP tasks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HttpTarget {
    /// Replaces parts of the URL.
    #[prost(message, optional, tag = "1")]
    pub uri_override: Option<UriOverride>,
    /// Replaces the method.
    #[prost(enumeration = "HttpMethod", tag = "2")]
    pub http_method: i32,
    /// Replaces headers.
    #[prost(message, repeated, tag = "3")]
    pub header_overrides: Vec<http_target::HeaderOverride>,
    /// Replaces the token.
    #[prost(oneof = "http_target::AuthorizationHeader", tags = "5, 6")]
    pub authorization_header: Option<http_target::AuthorizationHeader>,
}

/// Types inside [`HttpTarget`].
pub mod http_target {
    use super::{OAuthToken, OidcToken};

    /// One header.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Header {
        /// Its name.
        #[prost(string, tag = "1")]
        pub key: String,
        /// Its value.
        #[prost(string, tag = "2")]
        pub value: String,
    }

    /// One header that is replaced.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct HeaderOverride {
        /// The header.
        #[prost(message, optional, tag = "1")]
        pub header: Option<Header>,
    }

    /// The token that the queue adds.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum AuthorizationHeader {
        /// An OAuth access token.
        #[prost(message, tag = "5")]
        OauthToken(OAuthToken),
        /// An OpenID Connect token.
        #[prost(message, tag = "6")]
        OidcToken(OidcToken),
    }
}

/// What a queue replaces in the URL of its HTTP tasks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UriOverride {
    /// The scheme.
    #[prost(enumeration = "uri_override::Scheme", optional, tag = "1")]
    pub scheme: Option<i32>,
    /// The host.
    #[prost(string, optional, tag = "2")]
    pub host: Option<String>,
    /// The port.
    #[prost(int64, optional, tag = "3")]
    pub port: Option<i64>,
    /// The path.
    #[prost(message, optional, tag = "4")]
    pub path_override: Option<PathOverride>,
    /// The query.
    #[prost(message, optional, tag = "5")]
    pub query_override: Option<QueryOverride>,
    /// Whether what a task gives is replaced, or only what it leaves out.
    #[prost(enumeration = "uri_override::UriOverrideEnforceMode", tag = "6")]
    pub uri_override_enforce_mode: i32,
}

/// Types inside [`UriOverride`].
pub mod uri_override {
    /// The scheme of a URL.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum Scheme {
        /// Not given; the service uses HTTPS.
        Unspecified = 0,
        /// `http`.
        Http = 1,
        /// `https`.
        Https = 2,
    }

    /// Whether what a task gives is replaced.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum UriOverrideEnforceMode {
        /// Not given; the service uses [`Always`](Self::Always).
        Unspecified = 0,
        /// Only what the task leaves out.
        IfNotExists = 1,
        /// Always, also in tasks already created.
        Always = 2,
    }
}

/// The path that replaces a task's.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PathOverride {
    /// The path.
    #[prost(string, tag = "1")]
    pub path: String,
}

/// The query that replaces a task's.
#[derive(Clone, PartialEq, prost::Message)]
pub struct QueryOverride {
    /// The query.
    #[prost(string, tag = "1")]
    pub query_params: String,
}
