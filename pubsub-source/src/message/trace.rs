//! The trace that a message is part of.

use connector_core::trace::{TRACEPARENT, TRACESTATE, TraceContext};
use tracing::{Span, field};

use super::{Message, Metadata};

impl Message {
    /// Where in a trace the message was published, when its attributes say so
    /// (`googclient_traceparent`). Something malformed there counts as nothing.
    ///
    /// Read when it is asked for: a host that traces nothing pays nothing.
    #[must_use]
    pub fn trace_context(&self) -> Option<TraceContext> {
        self.attribute(TRACEPARENT)?.parse().ok()
    }

    /// The vendors' part of the trace context (`googclient_tracestate`), as it was sent.
    #[must_use]
    pub fn trace_state(&self) -> Option<&str> {
        self.attribute(TRACESTATE)
    }

    /// A span for the work that the message causes.
    ///
    /// Its fields name the message and its subscription, and where there is one, the trace and the span that published:
    /// `trace_id`, `parent_span_id`, `sampled`. A tracing library that keeps parents of its own is given the
    /// [trace context](Self::trace_context); with `tracing-opentelemetry`:
    ///
    /// ```text
    /// let span = message.span();
    /// if let Some(context) = message.trace_context() {
    ///     let remote = SpanContext::new(
    ///         TraceId::from_bytes(context.trace_id()),
    ///         SpanId::from_bytes(context.span_id()),
    ///         TraceFlags::new(context.flags()),
    ///         true,
    ///         TraceState::default(),
    ///     );
    ///     span.set_parent(Context::new().with_remote_span_context(remote));
    /// }
    /// ```
    ///
    /// No span is made unless this is called: how many messages a span covers, and when it ends, only
    /// the host knows. Its level is INFO.
    #[must_use]
    pub fn span(&self) -> Span {
        let span = tracing::info_span!(
            "pubsub message",
            otel.kind = "consumer",
            messaging.system = "gcp_pubsub",
            messaging.message.id = self.id(),
            subscription = self.subscription().as_str(),
            trace_id = field::Empty,
            parent_span_id = field::Empty,
            sampled = field::Empty,
        );
        // A span that nobody listens to is not worth reading the attributes for.
        if !span.is_disabled()
            && let Some(context) = self.trace_context()
        {
            span.record("trace_id", context.trace_id_hex().to_string());
            span.record("parent_span_id", context.span_id_hex().to_string());
            span.record("sampled", context.is_sampled());
        }
        span
    }
}

impl Metadata {
    /// Where in a trace the message was published. As [`Message::trace_context`].
    #[must_use]
    pub fn trace_context(&self) -> Option<TraceContext> {
        self.message().trace_context()
    }

    /// The vendors' part of the trace context. As [`Message::trace_state`].
    #[must_use]
    pub fn trace_state(&self) -> Option<&str> {
        self.message().trace_state()
    }

    /// A span for the work that the message causes. As [`Message::span`].
    #[must_use]
    pub fn span(&self) -> Span {
        self.message().span()
    }
}
