//! What makes a task impossible to create.

use std::fmt;
use std::time::Duration;

use connector_core::Cause;

use super::HttpMethod;

/// Why a task cannot be created. The record was not sent; the failure handler decides about it.
///
/// Each rule is one that the service enforces by refusing the task, or, worse, by leaving a part
/// of it out without a word.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The URL is not one that Cloud Tasks calls.
    #[error("the URL {url:?} {rule}; the task was not created")]
    Url {
        /// The URL without its query string, at most 200 characters of it.
        url: String,
        /// What is wrong with it.
        rule: UrlRule,
    },
    /// A path segment is empty, `.` or `..`: it would change which path is called.
    #[error(
        "{segment:?} cannot be a path segment, it would change which path is called; the task was not created"
    )]
    Segment {
        /// The segment.
        segment: String,
    },
    /// The target's host is not on the sink's list.
    #[error("the host {host:?} is not among the allowed hosts; the task was not created")]
    HostNotAllowed {
        /// The host that the URL names.
        host: String,
    },
    /// The method takes no body, and there is one.
    #[error(
        "{method} takes no body, only POST, PUT and PATCH do; the task was not created, leave the body empty or use another method"
    )]
    BodyNotAllowed {
        /// The method.
        method: HttpMethod,
    },
    /// The service would not pass this header on as it is.
    #[error("the header {name:?} {rule}; the task was not created")]
    Header {
        /// The name of the header, at most 200 characters of it. Values stay out of errors: they
        /// may be credentials.
        name: String,
        /// What is wrong with it.
        rule: HeaderRule,
    },
    /// There is an Authorization header and a token, which would replace it.
    #[error(
        "the token would replace the Authorization header; the task was not created, set one of them"
    )]
    AuthorizationBesideToken,
    /// There are an OIDC and an OAuth token; a task has room for one.
    #[error("a task takes an OIDC or an OAuth token, not both; the task was not created")]
    TwoTokens,
    /// The service account of a token is not an email address.
    #[error("{account:?} is not the email address of a service account; the task was not created")]
    ServiceAccount {
        /// What was given instead.
        account: String,
    },
    /// OAuth tokens are only for Google's own APIs.
    #[error(
        "an OAuth token goes to hosts under .googleapis.com only, not to {host:?}; the task was not created, use an OIDC token"
    )]
    OauthHost {
        /// The host that the URL names.
        host: String,
    },
    /// The dispatch deadline is outside 15 s to 30 min.
    #[error(
        "the dispatch deadline of {}s is outside 15 s to 30 min; the task was not created", deadline.as_secs_f64()
    )]
    DispatchDeadline {
        /// The deadline that was asked for.
        deadline: Duration,
    },
    /// The task is scheduled more than 720 h ahead.
    #[error(
        "the task is scheduled {} h ahead, the service takes 720 h at most; it was not created", ahead.as_secs() / 3600
    )]
    ScheduledTooFar {
        /// How far ahead, when the record was accepted.
        ahead: Duration,
    },
    /// The encoded task is larger than the service can store.
    #[error("the task has {bytes} bytes encoded, the service takes {limit}; it was not created")]
    TooLarge {
        /// The size of the encoded task, its name included.
        bytes: usize,
        /// The largest task the service was seen to take.
        limit: usize,
    },
    /// The body does not serialize as JSON.
    #[error("the body does not serialize as JSON; the task was not created")]
    Json {
        /// What the serializer said.
        #[source]
        source: Cause,
    },
}

/// What is wrong with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UrlRule {
    /// It does not start with `http://` or `https://` in lower case.
    Scheme,
    /// It names no host, or one that is neither a DNS name nor an IP address.
    Host,
    /// The port is not a number up to 65535.
    Port,
    /// It holds white space or a control character.
    Whitespace,
    /// It has a fragment, which is never sent.
    Fragment,
    /// It holds a backslash before the path, which some clients read as a slash.
    Backslash,
}

impl fmt::Display for UrlRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "does not start with http:// or https://",
            Self::Host => "names no usable host",
            Self::Port => "has no usable port",
            Self::Whitespace => "holds white space or a control character, percent-encode it",
            Self::Fragment => "has a fragment, which would never reach the target",
            Self::Backslash => "holds a backslash before its path",
        })
    }
}

/// What the service would do to a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderRule {
    /// The name is no HTTP field name; the service drops the header.
    Name,
    /// The value is empty; the service drops the header.
    Empty,
    /// The value holds something besides visible ASCII, spaces and tabs. The service changes line
    /// breaks to `_`, cuts at NUL, and drops the header otherwise.
    Value,
    /// Name and value have 8,189 bytes or more together; the service drops the header.
    TooLong,
    /// The service drops or replaces headers of this name.
    Reserved,
}

impl fmt::Display for HeaderRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "has a name that is no HTTP field name",
            Self::Empty => "has no value, so the service would drop it",
            Self::Value => "has a value with characters that the service would change or drop",
            Self::TooLong => "has 8189 bytes or more, so the service would drop it",
            Self::Reserved => "is one that the service drops or replaces",
        })
    }
}

/// The start of a text from outside, for an error.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(200).collect()
}
