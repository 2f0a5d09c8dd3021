use std::fmt;
use std::time::Duration;

use super::{Code, Details, Fault, TransportFault};
use crate::channel::ConnectError;
use crate::credentials::CredentialsError;

/// Why an answer could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeFault {
    /// The answer is longer than the limit.
    TooLarge {
        /// The length that the server announced, in bytes.
        bytes: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer is not a message of the method; the text names the field where that is known.
    Malformed(String),
    /// The answer's error details are unreadable, so what failed is not known.
    Details,
}

/// What a call was waiting for when its time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Turn,
    Credentials,
    Connection,
    Answer,
}

/// A request that this crate does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    TooLarge { bytes: usize, limit: usize },
    UnaryOnPullConnection,
    PullOnUnaryConnection,
    Header,
}

/// What happened to a call that failed.
#[derive(Debug)]
pub(crate) enum Cause {
    Status {
        code: Code,
        message: String,
        details: Details,
    },
    Http {
        status: u16,
    },
    Timeout {
        after: Duration,
        phase: Phase,
    },
    Connect(ConnectError),
    Transport(TransportFault),
    Credentials(CredentialsError),
    Decode {
        fault: DecodeFault,
        code: Code,
    },
    Refused(Refusal),
    Panicked,
}

impl Cause {
    pub(super) fn fault(&self) -> Fault {
        match self {
            Self::Status { code, .. } => code.fault(),
            Self::Http { status } => code_of_http(*status).fault(),
            Self::Timeout { .. } | Self::Transport(_) => Fault::Transient,
            Self::Connect(error) => error.fault(),
            Self::Credentials(error) if error.is_transient() => Fault::Transient,
            Self::Credentials(_) => Fault::Denied,
            Self::Refused(Refusal::TooLarge { .. }) => Fault::Rejected,
            Self::Decode { .. } | Self::Refused(_) | Self::Panicked => Fault::Fatal,
        }
    }

    pub(super) fn code(&self) -> Code {
        match self {
            Self::Status { code, .. } | Self::Decode { code, .. } => *code,
            Self::Http { status } => code_of_http(*status),
            Self::Timeout { .. } => Code::DeadlineExceeded,
            Self::Connect(_) | Self::Transport(_) => Code::Unavailable,
            Self::Credentials(_) => Code::Unauthenticated,
            Self::Refused(Refusal::TooLarge { .. }) => Code::OutOfRange,
            Self::Refused(_) | Self::Panicked => Code::Internal,
        }
    }

    /// Whether the request provably had no effect.
    pub(super) fn never_sent(&self) -> bool {
        match self {
            Self::Transport(fault) => fault.never_sent(),
            Self::Timeout {
                phase: Phase::Turn | Phase::Credentials | Phase::Connection,
                ..
            }
            | Self::Connect(_)
            | Self::Credentials(_)
            | Self::Refused(_) => true,
            Self::Timeout {
                phase: Phase::Answer,
                ..
            }
            | Self::Status { .. }
            | Self::Http { .. }
            | Self::Decode { .. }
            | Self::Panicked => false,
        }
    }

    /// Whether it is unknown if the request took effect.
    pub(super) fn ambiguous(&self) -> bool {
        match self {
            Self::Status { code, .. } => matches!(
                code,
                Code::Cancelled
                    | Code::Unknown
                    | Code::DeadlineExceeded
                    | Code::Internal
                    | Code::Unavailable
            ),
            // The server did say that it failed, only not for which parts.
            Self::Decode {
                fault: DecodeFault::Details,
                ..
            } => false,
            Self::Http { .. }
            | Self::Timeout { .. }
            | Self::Connect(_)
            | Self::Transport(_)
            | Self::Credentials(_)
            | Self::Decode { .. }
            | Self::Refused(_)
            | Self::Panicked => !self.never_sent(),
        }
    }
}

/// The code that gRPC assigns to an HTTP status without a gRPC status: some proxy answered.
fn code_of_http(status: u16) -> Code {
    match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { code, message, .. } if message.is_empty() => write!(f, "{code}"),
            Self::Status { code, message, .. } => write!(f, "{code}: {message}"),
            Self::Http { status } => {
                write!(
                    f,
                    "HTTP status {status} from something that does not speak gRPC"
                )
            }
            Self::Timeout { after, phase } => {
                write!(
                    f,
                    "no result within {after:?}, waiting for {}",
                    phase.text()
                )
            }
            Self::Connect(error) => write!(f, "{error}"),
            Self::Transport(fault) => f.write_str(fault.text()),
            Self::Credentials(error) => write!(f, "{error}"),
            Self::Decode {
                fault: DecodeFault::TooLarge { bytes, limit },
                ..
            } => {
                write!(f, "the answer has {bytes} bytes, the limit is {limit}")
            }
            Self::Decode {
                fault: DecodeFault::Malformed(what),
                ..
            } => {
                write!(f, "the answer cannot be read: {what}")
            }
            Self::Decode {
                fault: DecodeFault::Details,
                code,
            } => {
                write!(f, "{code}, with error details that cannot be read")
            }
            Self::Refused(refusal) => write!(f, "{refusal}"),
            Self::Panicked => f.write_str("handling it panicked, which is a bug or bad input"),
        }
    }
}

impl Phase {
    const fn text(self) -> &'static str {
        match self {
            Self::Turn => "a free place on its connection",
            Self::Credentials => "credentials",
            Self::Connection => "a connection",
            Self::Answer => "the answer",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, limit } => {
                write!(f, "the request has {bytes} bytes, the limit is {limit}")
            }
            Self::UnaryOnPullConnection => {
                f.write_str("unary calls never share a connection with pull streams")
            }
            Self::PullOnUnaryConnection => {
                f.write_str("pull streams never share a connection with unary calls")
            }
            Self::Header => f.write_str("a header value is not printable"),
        }
    }
}
