//! Traces that go on behind a topic.

use connector_core::{TraceContext, trace::TRACEPARENT};

use crate::PublishMessage;

/// Says in which trace a record is published.
pub(crate) type TraceOf<R> = Box<dyn FnMut(&R) -> Option<TraceContext> + Send>;

/// The message with its position in a trace.
pub(crate) fn traced(message: PublishMessage, context: &TraceContext) -> PublishMessage {
    message.attribute(TRACEPARENT, context.to_string())
}
