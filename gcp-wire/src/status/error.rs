use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{AckFailure, Cause, Code, DecodeFault, Details, Fault, TransportFault};
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
        use TransportFault::{GoneAway, Refused, Reset};
        let Cause::Transport(Refused | GoneAway) = self.inner.cause else {
            return self;
        };
        Self::new(self.inner.method, Cause::Transport(Reset))
    }

    /// The last part of the method's path, for example `Publish`.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.inner.method
    }

    /// The general class of the failure.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.inner.cause.fault()
    }

    /// The gRPC code: the server's, or the one that fits where no server gave one.
    ///
    /// Read [`is_timeout`](Self::is_timeout), [`is_transport`](Self::is_transport) and
    /// [`decode_fault`](Self::decode_fault) first where the difference matters: our own time-out
    /// is DEADLINE_EXCEEDED here, a broken connection UNAVAILABLE, an unreadable answer INTERNAL.
    #[must_use]
    pub fn code(&self) -> Code {
        self.inner.cause.code()
    }

    /// The server's message, at most 1000 characters; empty where no server gave one.
    #[must_use]
    pub fn message(&self) -> &str {
        let Cause::Status { message, .. } = &self.inner.cause else {
            return "";
        };
        message
    }

    /// Whether the request can have reached the server.
    #[must_use]
    pub fn sent(&self) -> Sent {
        if self.never_sent() {
            Sent::Never
        } else {
            Sent::Maybe
        }
    }

    /// Whether the request provably had no effect, so that it may be sent again at once.
    ///
    /// True when no connection could be made or taken (also when our time ran out before that),
    /// when the server refused the stream (REFUSED_STREAM), and when it told us with a GOAWAY that
    /// it did not take it. Nothing else: a connection that breaks, even after a GOAWAY, proves
    /// nothing, and a status is the server's verdict, not a proof that nothing happened.
    #[must_use]
    pub fn never_sent(&self) -> bool {
        self.inner.cause.never_sent()
    }

    /// Whether it is unknown if the request took effect.
    ///
    /// True for an answer that never came, was cut off or cannot be read, and for codes that
    /// proxies give in such cases: CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE.
    /// An unnamed creation that is repeated after this may happen twice.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        self.inner.cause.ambiguous()
    }

    /// Whether the time given to the call ran out on our side.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.inner.cause, Cause::Timeout { .. })
    }

    /// Whether the connection failed: it could not be made, broke, or was reset or refused, or
    /// something that does not speak gRPC answered.
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
        let Cause::Decode { fault, .. } = &self.inner.cause else {
            return None;
        };
        Some(fault)
    }

    /// What is wrong with the credentials, if no request could be sent for that reason.
    #[must_use]
    pub fn credentials_error(&self) -> Option<&CredentialsError> {
        let Cause::Credentials(error) = &self.inner.cause else {
            return None;
        };
        Some(error)
    }

    /// The verdicts per ack id that a failed call on an exactly-once subscription carries.
    ///
    /// Read from the `google.rpc.ErrorInfo` of the answer. An id that is absent has no verdict of
    /// its own: Google's clients disagree on what that means (confirmed, says the Java one; the
    /// code of the call, say Go and Python), so a caller that must be sure sends it again.
    #[must_use]
    pub fn ack_failures(&self) -> &BTreeMap<String, AckFailure> {
        static NONE: BTreeMap<String, AckFailure> = BTreeMap::new();
        let Cause::Status { details, .. } = &self.inner.cause else {
            return &NONE;
        };
        &details.acks
    }

    /// The least time to wait before trying again, where the server asked for one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let Cause::Status { details, .. } = &self.inner.cause else {
            return None;
        };
        details.retry_after
    }

    /// Whether the server itself refused the credentials, so that fresh ones may help.
    pub(crate) fn is_server_unauthenticated(&self) -> bool {
        matches!(
            self.inner.cause,
            Cause::Status {
                code: Code::Unauthenticated,
                ..
            } | Cause::Http { status: 401 }
        )
    }

    /// Whether a closing connection did not take the request, so that another one will.
    pub(crate) fn is_not_taken(&self) -> bool {
        use TransportFault::{GoneAway, NotTaken};
        matches!(self.inner.cause, Cause::Transport(NotTaken | GoneAway))
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.inner.method, self.inner.cause)?;
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
            // Its text is part of ours already, so the chain goes on behind it.
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
