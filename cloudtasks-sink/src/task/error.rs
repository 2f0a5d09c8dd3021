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
        "{method} takes no body here, only {allowed} do; the task was not created, leave the body empty or use another method"
    )]
    BodyNotAllowed {
        /// The method.
        method: HttpMethod,
        /// The methods that take one, as text.
        allowed: &'static str,
    },
    /// The URI of an App Engine task is not one within its application.
    #[error("the relative URI {uri:?} {rule}; the task was not created")]
    RelativeUri {
        /// The URI without its query string, at most 200 characters of it.
        uri: String,
        /// What is wrong with it.
        rule: RelativeUriRule,
    },
    /// The service refuses these rules for repeating the call.
    #[error("the task's retries {rule}; the task was not created")]
    Retries {
        /// What is wrong with them.
        rule: RetryRule,
    },
    /// A whole task, given encoded, has a name; names are the sink's business.
    #[error(
        "the encoded task has a name, which is the sink's to give; the task was not created, leave the name unset or call unnamed()"
    )]
    Named,
    /// A whole task, given encoded, neither calls a URL nor an App Engine application.
    #[error("the encoded task has no target; the task was not created")]
    NoTarget,
    /// A whole task, given encoded, is no task, or a part of it holds what the service cannot read.
    #[error("{part} of the encoded task cannot be read; the task was not created")]
    Unreadable {
        /// The field, or `message` for the whole.
        part: &'static str,
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
    /// The dispatch deadline is outside 15 s to 30 min, or 24 h and 15 s for App Engine.
    #[error(
        "the dispatch deadline of {}s is outside 15 s to {} s; the task was not created", deadline.as_secs_f64(), longest.as_secs()
    )]
    DispatchDeadline {
        /// The deadline that was asked for.
        deadline: Duration,
        /// The longest one.
        longest: Duration,
    },
    /// The task is scheduled more than 720 h ahead.
    #[error(
        "the task is scheduled {} h ahead, the service takes 720 h at most; it was not created", ahead.as_secs() / 3600
    )]
    ScheduledTooFar {
        /// How far ahead, when the record was accepted.
        ahead: Duration,
    },
    /// The encoded task is larger than the service can store, or than the sink's own limit.
    #[error("the task has {bytes} bytes encoded, {limit} are the limit; it was not created")]
    TooLarge {
        /// The size of the encoded task, its name included.
        bytes: usize,
        /// The largest task that the sink sends.
        limit: usize,
    },
    /// The body's format has a Content-Type of its own, and a header gives another.
    #[error(
        "the Content-Type {given:?} contradicts the body, which is {own}; the task was not created, leave the header out"
    )]
    ContentType {
        /// What the header says, at most 200 characters of it.
        given: String,
        /// What the body is.
        own: &'static str,
    },
    /// The body does not serialize.
    #[error("the body does not serialize; the task was not created")]
    Body {
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

/// What is wrong with the URI of an App Engine task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RelativeUriRule {
    /// It has more than 2,083 characters.
    TooLong,
    /// It does not start with a slash.
    Slash,
    /// It holds white space or a control character.
    Whitespace,
    /// It starts with two slashes, so that a host follows.
    Authority,
    /// It has a fragment, which is never sent.
    Fragment,
    /// A percent sign is not followed by two hexadecimal digits.
    Escape,
    /// It holds a character that a URI does not.
    Character,
}

impl fmt::Display for RelativeUriRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "has more than 2083 characters",
            Self::Slash => "does not start with a slash",
            Self::Whitespace => "holds white space or a control character, percent-encode it",
            Self::Authority => "starts with two slashes, so that a host would follow",
            Self::Fragment => "has a fragment, which would never reach the target",
            Self::Escape => "has a percent sign without two hexadecimal digits after it",
            Self::Character => "holds a character that a URI does not, percent-encode it",
        })
    }
}

/// What is wrong with the retries of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryRule {
    /// The number of attempts is out of range.
    Attempts,
    /// The number of doublings is out of range.
    Doublings,
    /// A span of time is negative or longer than 315,576,000,000 s.
    Span,
    /// The limit of time is not in whole seconds.
    WholeSeconds,
    /// The shortest wait is longer than the longest.
    Backoff,
}

impl fmt::Display for RetryRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attempts => "have a number of attempts that is out of range",
            Self::Doublings => "have a number of doublings that is out of range",
            Self::Span => "have a span of time that no message holds",
            Self::WholeSeconds => "have a limit of time that is not in whole seconds",
            Self::Backoff => "have a shortest wait that is longer than the longest",
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
