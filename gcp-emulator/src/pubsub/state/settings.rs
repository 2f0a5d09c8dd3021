//! Settings of the Pub/Sub machine.

use std::time::Duration;

use super::History;

/// How the machine behaves where the service leaves a choice.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The length of ack ids in characters, at least 40. Default 176, measured on the service in
    /// November 2026.
    pub ack_id_length: usize,
    /// What an acknowledgement after the lease's end does, on a subscription without exactly-once
    /// delivery.
    pub late_acks: LateAcks,
    /// What happens to the outstanding messages of a pull stream that ends.
    pub on_stream_close: OnStreamClose,
    /// The most messages one response carries. Default 1,000.
    pub response_messages: usize,
    /// The encoded bytes above which no further message joins a response; one message is always
    /// carried. Default 10,000,000, the largest message there is.
    pub response_bytes: usize,
    /// Whether the pings of pull streams are answered. Default true.
    pub answer_pings: bool,
    /// Ends a pull stream when no request came on it for this long. Default never.
    pub idle_stream_limit: Option<Duration>,
    /// Ends a pull stream that is this old. Default never.
    pub stream_lifetime: Option<Duration>,
    /// How much is kept for assertions.
    pub history: History,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ack_id_length: 176,
            late_acks: LateAcks::default(),
            on_stream_close: OnStreamClose::default(),
            response_messages: 1000,
            response_bytes: 10_000_000,
            answer_pings: true,
            idle_stream_limit: None,
            stream_lifetime: None,
            history: History::default(),
        }
    }
}

/// What an acknowledgement does that comes after the lease's end. The documentation promises only
/// that it *may* succeed, so a client must be right under all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LateAcks {
    /// It counts until the message is delivered again; then only the newest ack id does. Measured
    /// on Google's emulator.
    #[default]
    UntilRedelivered,
    /// It never counts. The answer is success all the same.
    Never,
    /// It counts for as long as the message is not acknowledged, whichever delivery it names.
    Always,
}

/// What happens to the outstanding messages of a pull stream that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnStreamClose {
    /// They come again when their leases end. Measured on Google's emulator.
    #[default]
    WaitForDeadline,
    /// They come again at once, whatever was left of their leases, as users of the service report.
    /// Their delivery attempts stay as they are.
    RedeliverAtOnce,
}
