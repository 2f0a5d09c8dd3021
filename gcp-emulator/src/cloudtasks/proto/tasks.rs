//! Tasks and what they carry.

use std::collections::HashMap;

use bytes::Bytes;
use prost::{Enumeration, Message, Oneof};
use prost_types::{Duration, Timestamp};

use super::RetryConfig;

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
