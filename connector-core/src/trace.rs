//! Where in a trace a message was published, as its attributes say.

use std::{fmt, str::FromStr};

/// The attribute that carries a [`TraceContext`] in a Pub/Sub message.
///
/// Google's own clients write and read the W3C header `traceparent` under this name, so a trace goes
/// on across languages.
pub const TRACEPARENT: &str = "googclient_traceparent";

/// The attribute that carries the W3C header `tracestate`, which vendors fill.
///
/// It is passed on as it is; nothing here reads it.
pub const TRACESTATE: &str = "googclient_tracestate";

/// The flags that level 2 of the W3C recommendation defines: sampled, and a random trace id. The
/// others are to be sent as zero.
const KNOWN_FLAGS: u8 = 0b11;

const SAMPLED: u8 = 0b01;

/// A position in a trace: the trace, and the span that published.
///
/// Its text is the W3C header `traceparent`, for example
/// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. Plain numbers: whichever tracing library a host
/// uses, its own type is made of the same three, so none of them is forced on anybody.
///
/// ```
/// use connector_core::TraceContext;
///
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let context: TraceContext = text.parse()?;
/// assert_eq!(context.span_id(), [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
/// assert_eq!(context.span_id_hex().to_string(), "00f067aa0ba902b7");
/// assert!(context.is_sampled());
/// assert_eq!(context.to_string(), text);
/// # Ok::<(), connector_core::trace::TraceContextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    flags: u8,
}

impl TraceContext {
    /// A position from its numbers, as a tracing library gives them.
    ///
    /// # Errors
    ///
    /// [`TraceContextError::Zero`] for an id of zeros only, which means "none".
    pub fn new(
        trace_id: [u8; 16],
        span_id: [u8; 8],
        sampled: bool,
    ) -> Result<Self, TraceContextError> {
        let flags = if sampled { SAMPLED } else { 0 };
        Self::checked(trace_id, span_id, flags)
    }

    /// The trace.
    #[must_use]
    pub const fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// The span that published: the parent of whatever the message causes.
    #[must_use]
    pub const fn span_id(&self) -> [u8; 8] {
        self.span_id
    }

    /// The trace, as the 32 hexadecimal digits in lower case that logs and tracing tools show.
    #[must_use]
    pub fn trace_id_hex(&self) -> impl fmt::Display {
        Hex(&self.trace_id)
    }

    /// The span that published, as 16 hexadecimal digits in lower case.
    #[must_use]
    pub fn span_id_hex(&self) -> impl fmt::Display {
        Hex(&self.span_id)
    }

    /// The flags as W3C defines them; unknown ones are zero.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether the publisher recorded its span.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The same trace at another span: what a service passes on.
    ///
    /// # Errors
    ///
    /// [`TraceContextError::Zero`] for an id of zeros only.
    pub fn at(&self, span_id: [u8; 8]) -> Result<Self, TraceContextError> {
        Self::checked(self.trace_id, span_id, self.flags)
    }

    fn checked(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) -> Result<Self, TraceContextError> {
        if trace_id == [0; 16] || span_id == [0; 8] {
            return Err(TraceContextError::Zero);
        }
        Ok(Self {
            trace_id,
            span_id,
            flags: flags & KNOWN_FLAGS,
        })
    }
}

impl FromStr for TraceContext {
    type Err = TraceContextError;

    /// Reads version 00, and of later versions what version 00 defines, as W3C asks for.
    fn from_str(text: &str) -> Result<Self, TraceContextError> {
        let mut fields = text.as_bytes().split(|byte| *byte == b'-');
        let mut field = || fields.next().ok_or(TraceContextError::Format);
        let [version] = bytes(field()?)?;
        let trace_id = bytes(field()?)?;
        let span_id = bytes(field()?)?;
        let [flags] = bytes(field()?)?;
        // Version 255 is forbidden; a later one may have more fields, this one has none.
        if version == u8::MAX || (version == 0 && fields.next().is_some()) {
            return Err(TraceContextError::Format);
        }
        Self::checked(trace_id, span_id, flags)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{}-{}-{:02x}",
            self.trace_id_hex(),
            self.span_id_hex(),
            self.flags
        )
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceContext({self})")
    }
}

/// Why something is no position in a trace. The message is unharmed: a trace that cannot be
/// continued is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceContextError {
    /// The text does not have the form of a `traceparent`.
    #[error(
        "not a traceparent; it has the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, in lower case"
    )]
    Format,
    /// The id of the trace or of the span has only zeros.
    #[error("the id of a trace or of a span is zero, which means that there is none")]
    Zero,
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn bytes<const N: usize>(digits: &[u8]) -> Result<[u8; N], TraceContextError> {
    let (pairs, []) = digits.as_chunks::<2>() else {
        return Err(TraceContextError::Format);
    };
    let pairs: &[[u8; 2]; N] = pairs.try_into().map_err(|_| TraceContextError::Format)?;
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Ok(bytes)
}

fn digit(digit: u8) -> Result<u8, TraceContextError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        // Upper case is malformed.
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(TraceContextError::Format),
    }
}
