//! gRPC status codes.

/// A gRPC status code other than OK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Code {
    /// 1: the call was given up.
    Cancelled,
    /// 2: no better code is known.
    Unknown,
    /// 3: the request is wrong whatever the state of the server.
    InvalidArgument,
    /// 4: the answer did not come in time.
    DeadlineExceeded,
    /// 5: something the request names does not exist.
    NotFound,
    /// 6: what the request would create exists.
    AlreadyExists,
    /// 7: the caller may not do this.
    PermissionDenied,
    /// 8: a quota is used up.
    ResourceExhausted,
    /// 9: the state of the server does not allow the request.
    FailedPrecondition,
    /// 10: a conflict with another request.
    Aborted,
    /// 11: a value lies outside its range.
    OutOfRange,
    /// 12: the method or the feature does not exist.
    Unimplemented,
    /// 13: an invariant of the server is broken.
    Internal,
    /// 14: the server cannot be reached or is going away.
    Unavailable,
    /// 15: data was lost.
    DataLoss,
    /// 16: the caller is not known.
    Unauthenticated,
}

impl Code {
    /// The number of the code on the wire, 1 to 16.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Cancelled => 1,
            Self::Unknown => 2,
            Self::InvalidArgument => 3,
            Self::DeadlineExceeded => 4,
            Self::NotFound => 5,
            Self::AlreadyExists => 6,
            Self::PermissionDenied => 7,
            Self::ResourceExhausted => 8,
            Self::FailedPrecondition => 9,
            Self::Aborted => 10,
            Self::OutOfRange => 11,
            Self::Unimplemented => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
            Self::DataLoss => 15,
            Self::Unauthenticated => 16,
        }
    }
}
