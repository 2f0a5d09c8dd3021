use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{AckFailure, Code, Details, Fault, TransportFault};
use crate::channel::ConnectError;
use crate::credentials::CredentialsError;

/// How much of a text from outside an error keeps, in characters.
const KEPT: usize = 1_000;

/// Whether a failed request can have reached the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sent {
    /// It provably had no effect and may be sent again at once.
    Never,
    /// It may have taken effect.
    Maybe,
}

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

/// An RPC that failed.
///
/// Cheap to clone. The text names the method, what happened, and whether the request can have
/// taken effect; it holds no token, no key and no payload.
#[derive(Clone)]
pub struct RpcError {
    inner: Arc<Inner>,
}

struct Inner {
    method: &'static str,
    cause: Cause,
    source: Option<Box<dyn Error + Send + Sync>>,
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

impl RpcError {
    /// A failure with a code and message as the server gives them, for fakes and tests of hosts.
    #[must_use]
    pub fn status(method: &'static str, code: Code, message: &str) -> Self {
        let message = bounded(message);
        Self::new(
            method,
            Cause::Status {
                code,
                message,
                details: Details::default(),
            },
        )
    }

    pub(crate) fn new(method: &'static str, cause: Cause) -> Self {
        Self {
            inner: Arc::new(Inner {
                method,
                cause,
                source: None,
            }),
        }
    }

    pub(crate) fn from_transport<E>(method: &'static str, error: E) -> Self
    where
        E: Error + Send + Sync + 'static,
    {
        let cause = Cause::Transport(TransportFault::of(&error));
        Self {
            inner: Arc::new(Inner {
                method,
                cause,
                source: Some(Box::new(error)),
            }),
        }
    }

    /// The same error, except that the request may have taken effect: once an answer began, a
    /// refusal of the stream proves nothing any more.
    pub(crate) fn after_answer_began(self) -> Self {
        let Cause::Transport(TransportFault::Refused | TransportFault::GoneAway) = self.inner.cause
        else {
            return self;
        };
        Self::new(self.inner.method, Cause::Transport(TransportFault::Reset))
    }

    /// The last part of the method's path, for example `Publish`.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.inner.method
    }

    /// The general class of the failure.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match &self.inner.cause {
            Cause::Status { code, .. } => code.fault(),
            Cause::Timeout { .. } | Cause::Transport(_) => Fault::Transient,
            Cause::Connect(error) => error.fault(),
            Cause::Http { status } => code_of_http(*status).fault(),
            Cause::Credentials(error) if error.is_transient() => Fault::Transient,
            Cause::Credentials(_) => Fault::Denied,
            Cause::Refused(Refusal::TooLarge { .. }) => Fault::Rejected,
            Cause::Decode { .. } | Cause::Refused(_) | Cause::Panicked => Fault::Fatal,
        }
    }

    /// The gRPC code: the server's, or the one that fits where no server gave one.
    ///
    /// Read [`is_timeout`](Self::is_timeout), [`is_transport`](Self::is_transport) and
    /// [`decode_fault`](Self::decode_fault) first where the difference matters: our own time-out
    /// is DEADLINE_EXCEEDED here, a broken connection UNAVAILABLE, an unreadable answer INTERNAL.
    #[must_use]
    pub fn code(&self) -> Code {
        match &self.inner.cause {
            Cause::Status { code, .. } | Cause::Decode { code, .. } => *code,
            Cause::Http { status } => code_of_http(*status),
            Cause::Timeout { .. } => Code::DeadlineExceeded,
            Cause::Connect(_) | Cause::Transport(_) => Code::Unavailable,
            Cause::Credentials(_) => Code::Unauthenticated,
            Cause::Refused(Refusal::TooLarge { .. }) => Code::OutOfRange,
            Cause::Refused(_) | Cause::Panicked => Code::Internal,
        }
    }

    /// The server's message, at most 1000 characters; empty where no server gave one.
    #[must_use]
    pub fn message(&self) -> &str {
        match &self.inner.cause {
            Cause::Status { message, .. } => message,
            Cause::Http { .. }
            | Cause::Timeout { .. }
            | Cause::Connect(_)
            | Cause::Transport(_)
            | Cause::Credentials(_)
            | Cause::Decode { .. }
            | Cause::Refused(_)
            | Cause::Panicked => "",
        }
    }

    /// Whether the request can have reached the server.
    #[must_use]
    pub fn sent(&self) -> Sent {
        let never = match &self.inner.cause {
            Cause::Transport(fault) => fault.never_sent(),
            Cause::Timeout {
                phase: Phase::Answer,
                ..
            } => false,
            Cause::Timeout {
                phase: Phase::Turn | Phase::Credentials | Phase::Connection,
                ..
            }
            | Cause::Connect(_)
            | Cause::Credentials(_)
            | Cause::Refused(_) => true,
            Cause::Status { .. } | Cause::Http { .. } | Cause::Decode { .. } | Cause::Panicked => {
                false
            }
        };
        if never { Sent::Never } else { Sent::Maybe }
    }

    /// Whether the request provably had no effect, so that it may be sent again at once.
    ///
    /// True when no connection could be made or taken (also when our time ran out before that),
    /// when the server refused the stream (REFUSED_STREAM), and when it told us with a GOAWAY that
    /// it did not take it. Nothing else: a connection that breaks, even after a GOAWAY, proves
    /// nothing, and a status is the server's verdict, not a proof that nothing happened.
    #[must_use]
    pub fn never_sent(&self) -> bool {
        self.sent() == Sent::Never
    }

    /// Whether it is unknown if the request took effect.
    ///
    /// True for an answer that never came, was cut off or cannot be read, and for codes that
    /// proxies give in such cases: CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE.
    /// An unnamed creation that is repeated after this may happen twice.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        match &self.inner.cause {
            Cause::Status { code, .. } => matches!(
                code,
                Code::Cancelled
                    | Code::Unknown
                    | Code::DeadlineExceeded
                    | Code::Internal
                    | Code::Unavailable
            ),
            Cause::Decode {
                fault: DecodeFault::Details,
                ..
            } => false,
            Cause::Http { .. }
            | Cause::Timeout { .. }
            | Cause::Connect(_)
            | Cause::Transport(_)
            | Cause::Credentials(_)
            | Cause::Decode { .. }
            | Cause::Refused(_)
            | Cause::Panicked => !self.never_sent(),
        }
    }

    /// Whether the time given to the call ran out on our side.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.inner.cause, Cause::Timeout { .. })
    }

    /// Whether the connection failed: it could not be made, broke, or was reset or refused.
    #[must_use]
    pub fn is_transport(&self) -> bool {
        matches!(
            self.inner.cause,
            Cause::Connect(_) | Cause::Transport(_) | Cause::Http { .. }
        )
    }

    /// Whether a quota is used up (RESOURCE_EXHAUSTED from the server).
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        matches!(
            self.inner.cause,
            Cause::Status {
                code: Code::ResourceExhausted,
                ..
            }
        )
    }

    /// Whether the server did not accept our credentials, or there were none to send.
    ///
    /// The credentials were invalidated already and, for a unary call or a pull stream that had
    /// not answered yet, the request was repeated once with fresh ones.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        self.code() == Code::Unauthenticated
    }

    /// Why the answer could not be read, if that is what happened.
    #[must_use]
    pub fn decode_fault(&self) -> Option<&DecodeFault> {
        match &self.inner.cause {
            Cause::Decode { fault, .. } => Some(fault),
            Cause::Status { .. }
            | Cause::Http { .. }
            | Cause::Timeout { .. }
            | Cause::Connect(_)
            | Cause::Transport(_)
            | Cause::Credentials(_)
            | Cause::Refused(_)
            | Cause::Panicked => None,
        }
    }

    /// What is wrong with the credentials, if no request could be sent for that reason.
    #[must_use]
    pub fn credentials_error(&self) -> Option<&CredentialsError> {
        match &self.inner.cause {
            Cause::Credentials(error) => Some(error),
            Cause::Status { .. }
            | Cause::Http { .. }
            | Cause::Timeout { .. }
            | Cause::Connect(_)
            | Cause::Transport(_)
            | Cause::Decode { .. }
            | Cause::Refused(_)
            | Cause::Panicked => None,
        }
    }

    /// The verdicts per ack id that a failed call on an exactly-once subscription carries.
    ///
    /// Read from the `google.rpc.ErrorInfo` of the answer. An id that is absent has no verdict of
    /// its own: Google's clients disagree on what that means (confirmed, says the Java one; the
    /// code of the call, say Go and Python), so a caller that must be sure sends it again.
    #[must_use]
    pub fn ack_failures(&self) -> &BTreeMap<String, AckFailure> {
        static NONE: BTreeMap<String, AckFailure> = BTreeMap::new();
        self.details().map_or(&NONE, |details| &details.acks)
    }

    /// The least time to wait before trying again, where the server asked for one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.details().and_then(|details| details.retry_after)
    }

    fn details(&self) -> Option<&Details> {
        match &self.inner.cause {
            Cause::Status { details, .. } => Some(details),
            Cause::Http { .. }
            | Cause::Timeout { .. }
            | Cause::Connect(_)
            | Cause::Transport(_)
            | Cause::Credentials(_)
            | Cause::Decode { .. }
            | Cause::Refused(_)
            | Cause::Panicked => None,
        }
    }

    pub(crate) fn is_server_unauthenticated(&self) -> bool {
        matches!(
            self.inner.cause,
            Cause::Status {
                code: Code::Unauthenticated,
                ..
            }
        ) || matches!(self.inner.cause, Cause::Http { status: 401 })
    }

    /// Whether a closing connection did not take the request, so that another one will.
    pub(crate) fn is_not_taken(&self) -> bool {
        use TransportFault::{GoneAway, NotTaken};
        matches!(self.inner.cause, Cause::Transport(NotTaken | GoneAway))
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

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: ", self.inner.method)?;
        match &self.inner.cause {
            Cause::Status { code, message, .. } if message.is_empty() => write!(f, "{code}")?,
            Cause::Status { code, message, .. } => write!(f, "{code}: {message}")?,
            Cause::Http { status } => {
                write!(
                    f,
                    "HTTP status {status} from something that does not speak gRPC"
                )?;
            }
            Cause::Timeout { after, phase } => {
                let waiting = match phase {
                    Phase::Turn => "a free place on its connection",
                    Phase::Credentials => "credentials",
                    Phase::Connection => "a connection",
                    Phase::Answer => "the answer",
                };
                write!(f, "no result within {after:?}, waiting for {waiting}")?;
            }
            Cause::Connect(error) => write!(f, "{error}")?,
            Cause::Transport(fault) => f.write_str(fault.text())?,
            Cause::Credentials(error) => write!(f, "{error}")?,
            Cause::Decode {
                fault: DecodeFault::TooLarge { bytes, limit },
                ..
            } => {
                write!(f, "the answer has {bytes} bytes, the limit is {limit}")?;
            }
            Cause::Decode {
                fault: DecodeFault::Malformed(what),
                ..
            } => {
                write!(f, "the answer cannot be read: {what}")?;
            }
            Cause::Decode {
                fault: DecodeFault::Details,
                code,
            } => {
                write!(f, "{code}, with error details that cannot be read")?;
            }
            Cause::Refused(Refusal::TooLarge { bytes, limit }) => {
                write!(f, "the request has {bytes} bytes, the limit is {limit}")?;
            }
            Cause::Refused(Refusal::UnaryOnPullConnection) => {
                f.write_str("unary calls never share a connection with pull streams")?;
            }
            Cause::Refused(Refusal::PullOnUnaryConnection) => {
                f.write_str("pull streams never share a connection with unary calls")?;
            }
            Cause::Refused(Refusal::Header) => f.write_str("a header value is not printable")?,
            Cause::Panicked => f.write_str("handling it panicked, which is a bug or bad input")?,
        }
        match (self.never_sent(), self.is_ambiguous()) {
            (true, _) => f.write_str("; the request never left"),
            (false, true) => f.write_str("; the request may have taken effect"),
            (false, false) => Ok(()),
        }
    }
}

impl fmt::Debug for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcError")
            .field("method", &self.inner.method)
            .field("cause", &self.inner.cause)
            .field("source", &self.inner.source)
            .finish()
    }
}

impl Error for RpcError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.inner.cause {
            Cause::Connect(error) => error.source(),
            Cause::Status { .. }
            | Cause::Http { .. }
            | Cause::Timeout { .. }
            | Cause::Transport(_)
            | Cause::Credentials(_)
            | Cause::Decode { .. }
            | Cause::Refused(_)
            | Cause::Panicked => self.inner.source.as_deref().map(|error| error as _),
        }
    }
}

/// A text from outside, cut to a bearable length and without control characters.
pub(crate) fn bounded(text: &str) -> String {
    let mut kept: String = text
        .chars()
        .take(KEPT)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(KEPT).is_some() {
        kept.push('…');
    }
    kept
}
