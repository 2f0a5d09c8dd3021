//! HTTP methods.

use std::fmt;

use gcp_wire::proto;

/// The method of a task's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpMethod {
    /// POST, with a body.
    Post,
    /// PUT, with a body.
    Put,
    /// PATCH, with a body.
    Patch,
    /// GET, without a body.
    Get,
    /// HEAD, without a body.
    Head,
    /// DELETE, without a body.
    Delete,
    /// OPTIONS, without a body.
    Options,
}

impl HttpMethod {
    /// Whether the service accepts a body with this method: POST, PUT and PATCH. An App Engine task
    /// has one with POST and PUT only.
    #[must_use]
    pub const fn takes_body(self) -> bool {
        match self {
            Self::Post | Self::Put | Self::Patch => true,
            Self::Get | Self::Head | Self::Delete | Self::Options => false,
        }
    }

    /// The method that a number means to the service: POST, where it knows none of that number.
    pub(super) fn of_number(number: i32) -> Self {
        use proto::tasks::HttpMethod as Wire;
        match Wire::try_from(number) {
            Ok(Wire::Put) => Self::Put,
            Ok(Wire::Patch) => Self::Patch,
            Ok(Wire::Get) => Self::Get,
            Ok(Wire::Head) => Self::Head,
            Ok(Wire::Delete) => Self::Delete,
            Ok(Wire::Options) => Self::Options,
            Ok(Wire::Post | Wire::Unspecified) | Err(_) => Self::Post,
        }
    }

    pub(super) const fn number(self) -> i32 {
        use proto::tasks::HttpMethod as Wire;
        (match self {
            Self::Post => Wire::Post,
            Self::Put => Wire::Put,
            Self::Patch => Wire::Patch,
            Self::Get => Wire::Get,
            Self::Head => Wire::Head,
            Self::Delete => Wire::Delete,
            Self::Options => Wire::Options,
        }) as i32
    }
}

impl fmt::Display for HttpMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        })
    }
}
