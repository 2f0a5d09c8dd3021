use std::fmt;

/// The gRPC status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(i32)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// The call was given up, by either side. From the server it is *not* a request to stop.
    Cancelled = 1,
    /// Something the server had no code for.
    Unknown = 2,
    /// The request is wrong, whatever the state of the service.
    InvalidArgument = 3,
    /// The time ran out; the call may have taken effect.
    DeadlineExceeded = 4,
    /// The resource does not exist.
    NotFound = 5,
    /// The resource exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A quota is used up, or the server is overloaded.
    ResourceExhausted = 8,
    /// The state of the resource forbids it.
    FailedPrecondition = 9,
    /// A conflict with another call; try again.
    Aborted = 10,
    /// A value is outside the range of the resource.
    OutOfRange = 11,
    /// The server does not offer this.
    Unimplemented = 12,
    /// The server is broken.
    Internal = 13,
    /// The server is not there at the moment.
    Unavailable = 14,
    /// Data is lost for good.
    DataLoss = 15,
    /// The caller is not known: no credentials, or no longer valid ones.
    Unauthenticated = 16,
}

impl Code {
    const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The code with this number; [`Unknown`](Self::Unknown) for a number without one, as gRPC
    /// asks.
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        usize::try_from(number)
            .ok()
            .and_then(|index| Self::ALL.get(index))
            .copied()
            .unwrap_or(Self::Unknown)
    }

    /// The number of the code.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The name of the code in capitals, for example `NOT_FOUND`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// The general class of a failure with this code.
    ///
    /// [`Ok`](Self::Ok) is not a failure; as the code of one it is [`Fault::Fatal`].
    #[must_use]
    pub const fn fault(self) -> Fault {
        match self {
            Self::Cancelled
            | Self::Unknown
            | Self::DeadlineExceeded
            | Self::ResourceExhausted
            | Self::Aborted
            | Self::Internal
            | Self::Unavailable => Fault::Transient,
            Self::NotFound => Fault::Missing,
            Self::InvalidArgument | Self::OutOfRange => Fault::Rejected,
            Self::PermissionDenied | Self::Unauthenticated => Fault::Denied,
            Self::AlreadyExists | Self::FailedPrecondition => Fault::Conflict,
            Self::Ok | Self::Unimplemented | Self::DataLoss => Fault::Fatal,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The general class of a failure: what a connector does about it, before any rule of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// It may go better next time: an outage, a time-out, a broken connection, a quota.
    Transient,
    /// The resource does not exist.
    Missing,
    /// The request is wrong and stays wrong.
    Rejected,
    /// The caller is unknown or may not do this.
    Denied,
    /// The state of the resource is in the way: it exists already, or forbids the call.
    Conflict,
    /// No retry and no other request helps: a broken peer, a bug, lost data.
    Fatal,
}
