//! An open pull stream.

use std::time::Duration;

use super::{Refusal, StreamRecord};
use crate::pubsub::proto::StreamingPullRequest;
use crate::pubsub::proto::streaming_pull_response::{
    AcknowledgeConfirmation, ModifyAckDeadlineConfirmation,
};
use crate::time::Time;

/// The bounds of a stream's ack deadline (interface definition of `StreamingPullRequest`).
const LEAST_DEADLINE: i32 = 10;
const GREATEST_DEADLINE: i32 = 600;

/// Names an open pull stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(super) u64);

impl StreamId {
    /// Its number: 1 for the first stream a machine opened.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A pull stream, as the machine sees it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) deadline: Duration,
    client_id: String,
    protocol_version: i64,
    max_messages: Option<u64>,
    max_bytes: Option<u64>,
    out_messages: u64,
    out_bytes: u64,
    opened_at: Time,
    heard_at: Time,
    requests: u64,
    pub(super) responses: u64,
    /// Pings not yet answered.
    pub(super) pings: u32,
    pub(super) acks: AcknowledgeConfirmation,
    pub(super) extensions: ModifyAckDeadlineConfirmation,
    pub(super) end: Option<End>,
    /// The last poll found nothing to send.
    pub(super) idle: bool,
    /// The last poll was served messages.
    pub(super) served: bool,
    /// How many polls since then were let pass for the benefit of others.
    pub(super) yielded: u8,
}

/// How a stream ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Clean,
    Refused(Refusal),
}

impl Stream {
    /// A stream as its first request asks for it.
    pub(super) fn open(now: Time, first: &StreamingPullRequest) -> Result<Self, Refusal> {
        let deadline = stream_deadline(first.stream_ack_deadline_seconds)?;
        // Zero and less are without limit (interface definition).
        let limit = |given: i64| u64::try_from(given).ok().filter(|limit| *limit > 0);
        Ok(Self {
            deadline,
            client_id: first.client_id.clone(),
            protocol_version: first.protocol_version,
            max_messages: limit(first.max_outstanding_messages),
            max_bytes: limit(first.max_outstanding_bytes),
            out_messages: 0,
            out_bytes: 0,
            opened_at: now,
            heard_at: now,
            requests: 0,
            responses: 0,
            pings: 0,
            acks: AcknowledgeConfirmation::default(),
            extensions: ModifyAckDeadlineConfirmation::default(),
            end: None,
            idle: false,
            served: false,
            yielded: 0,
        })
    }

    /// Notes a later request and checks what such a one may not do.
    pub(super) fn hear(
        &mut self,
        now: Time,
        request: &StreamingPullRequest,
        answer_pings: bool,
    ) -> Result<(), Refusal> {
        self.heard_at = now;
        self.requests += 1;
        let opening_only = [
            ("subscription", !request.subscription.is_empty()),
            ("client_id", !request.client_id.is_empty()),
            (
                "max_outstanding_messages",
                request.max_outstanding_messages != 0,
            ),
            ("max_outstanding_bytes", request.max_outstanding_bytes != 0),
            ("protocol_version", request.protocol_version != 0),
        ];
        if let Some((field, _)) = opening_only.into_iter().find(|(_, set)| *set) {
            return Err(Refusal::OpeningOnly { field });
        }
        if request.stream_ack_deadline_seconds != 0 {
            self.deadline = stream_deadline(request.stream_ack_deadline_seconds)?;
        }
        let is_ping = *request == StreamingPullRequest::default();
        if is_ping && self.protocol_version >= 1 && answer_pings {
            self.pings += 1;
        }
        Ok(())
    }

    pub(super) const fn has_room(&self) -> bool {
        let messages = match self.max_messages {
            Some(limit) => self.out_messages < limit,
            None => true,
        };
        // The byte limit may be overshot by one message: a stream is full once it is reached.
        let bytes = match self.max_bytes {
            Some(limit) => self.out_bytes < limit,
            None => true,
        };
        messages && bytes
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.out_messages += 1;
        self.out_bytes += bytes as u64;
    }

    pub(super) fn freed(&mut self, bytes: usize) {
        self.out_messages = self.out_messages.saturating_sub(1);
        self.out_bytes = self.out_bytes.saturating_sub(bytes as u64);
    }

    pub(super) const fn outstanding(&self) -> (u64, u64) {
        (self.out_messages, self.out_bytes)
    }

    pub(super) fn has_confirmations(&self) -> bool {
        self.acks != AcknowledgeConfirmation::default()
            || self.extensions != ModifyAckDeadlineConfirmation::default()
    }

    /// When the service ends the stream by itself.
    pub(super) fn ends_at(
        &self,
        idle: Option<Duration>,
        lifetime: Option<Duration>,
    ) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        let idle = idle.map(|limit| self.heard_at + limit);
        let old = lifetime.map(|limit| self.opened_at + limit);
        match (idle, old) {
            (Some(idle), Some(old)) => Some(idle.min(old)),
            (one, other) => one.or(other),
        }
    }

    pub(super) fn record(&self) -> StreamRecord {
        StreamRecord {
            client_id: self.client_id.clone(),
            max_outstanding_messages: self.max_messages,
            max_outstanding_bytes: self.max_bytes,
            ack_deadline: self.deadline,
            outstanding: usize::try_from(self.out_messages).unwrap_or(usize::MAX),
            opened_at: self.opened_at,
            requests: self.requests,
            responses: self.responses,
        }
    }
}

fn stream_deadline(seconds: i32) -> Result<Duration, Refusal> {
    match u64::try_from(seconds) {
        Ok(whole) if (LEAST_DEADLINE..=GREATEST_DEADLINE).contains(&seconds) => {
            Ok(Duration::from_secs(whole))
        }
        _ => Err(Refusal::Range {
            what: "stream_ack_deadline_seconds",
            value: seconds.to_string(),
            least: "10",
            most: "600",
        }),
    }
}
