use std::collections::BTreeMap;

use bytes::Bytes;

/// How a task calls its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum HttpMethod {
    /// Not given; the service uses POST.
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

/// The HTTP request that a task becomes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HttpRequest {
    /// The full URL, `http://` or `https://`, at most 2083 characters.
    #[prost(string, tag = "1")]
    pub url: String,
    /// The method, POST when unspecified.
    #[prost(enumeration = "HttpMethod", tag = "2")]
    pub http_method: i32,
    /// The headers.
    #[prost(btree_map = "string, string", tag = "3")]
    pub headers: BTreeMap<String, String>,
    /// The body; allowed for POST, PUT and PATCH.
    #[prost(bytes = "bytes", tag = "4")]
    pub body: Bytes,
    /// The token that the service adds.
    #[prost(oneof = "http_request::AuthorizationHeader", tags = "5, 6")]
    pub authorization_header: Option<http_request::AuthorizationHeader>,
}

/// Types inside [`HttpRequest`].
pub mod http_request {
    use super::{OAuthToken, OidcToken};

    /// The token that the service adds to the request.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum AuthorizationHeader {
        /// An OAuth access token, for hosts under `googleapis.com`.
        #[prost(message, tag = "5")]
        OauthToken(OAuthToken),
        /// An OpenID Connect token, for everything else.
        #[prost(message, tag = "6")]
        OidcToken(OidcToken),
    }
}

/// The App Engine request that a task becomes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AppEngineHttpRequest {
    /// The method, POST when unspecified.
    #[prost(enumeration = "HttpMethod", tag = "1")]
    pub http_method: i32,
    /// Which service, version and instance.
    #[prost(message, optional, tag = "2")]
    pub app_engine_routing: Option<AppEngineRouting>,
    /// The path and query, starting with `/`.
    #[prost(string, tag = "3")]
    pub relative_uri: String,
    /// The headers.
    #[prost(btree_map = "string, string", tag = "4")]
    pub headers: BTreeMap<String, String>,
    /// The body; allowed for POST and PUT.
    #[prost(bytes = "bytes", tag = "5")]
    pub body: Bytes,
}

/// Which part of an App Engine application answers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AppEngineRouting {
    /// The service; the default one when empty.
    #[prost(string, tag = "1")]
    pub service: String,
    /// The version; the default one when empty.
    #[prost(string, tag = "2")]
    pub version: String,
    /// The instance; any when empty.
    #[prost(string, tag = "3")]
    pub instance: String,
    /// The host that results; output only.
    #[prost(string, tag = "4")]
    pub host: String,
}

/// An OAuth access token that the service makes for a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OAuthToken {
    /// The service account that the token speaks for.
    #[prost(string, tag = "1")]
    pub service_account_email: String,
    /// The scope; `cloud-platform` when empty.
    #[prost(string, tag = "2")]
    pub scope: String,
}

/// An OpenID Connect token that the service makes for a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OidcToken {
    /// The service account that the token speaks for.
    #[prost(string, tag = "1")]
    pub service_account_email: String,
    /// The audience; the URL of the target when empty.
    #[prost(string, tag = "2")]
    pub audience: String,
}
