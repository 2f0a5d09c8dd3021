//! A server made for load: it answers as fast as it can and keeps nothing.
//!
//! Pull streams are fed from one pre-encoded block of messages in which only the ids differ,
//! requests are scanned in place and never decoded, and answers are pre-encoded too, so that a
//! client under measurement is what the time goes to. It has no topics, no leases, no redelivery
//! and no faults: for all of those there is [`Emulator`](crate::Emulator).
//!
//! Served: `StreamingPull`, `Acknowledge`, `ModifyAckDeadline`, `Publish`, `CreateTask` and
//! `BatchCreateTasks`; anything else is UNIMPLEMENTED. Over HTTP/1.1 there is the creation of tasks
//! alone, as JSON, for the clients that have no gRPC.

mod answers;
mod counts;
mod pull;
mod rest;
mod room;
mod scan;
mod serve;

pub use counts::FloodCounts;
pub use serve::serve;

use std::{num::NonZeroU32, time::Duration};

/// What a flood server sends, and how fast.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Flood {
    /// Bytes of each pulled message's payload. Default: 16.
    pub payload_bytes: usize,
    /// Messages per pull response. Default: 100.
    pub per_response: usize,
    /// Characters of an ack id; at least 32. Default: 176, as the service's were in 2026.
    pub ack_id_length: usize,
    /// Messages per second over all pull streams. Default: as many as flow control admits.
    pub rate: Option<NonZeroU32>,
    /// How long each task creation and publish takes. Default: nothing.
    pub delay: Duration,
    /// Streams a connection may have at once. Default: what HTTP/2 leaves open.
    pub streams_per_connection: Option<u32>,
}

impl Default for Flood {
    fn default() -> Self {
        Self {
            payload_bytes: 16,
            per_response: 100,
            ack_id_length: 176,
            rate: None,
            delay: Duration::ZERO,
            streams_per_connection: None,
        }
    }
}
