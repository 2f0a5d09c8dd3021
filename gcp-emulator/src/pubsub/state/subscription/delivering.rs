//! Handing messages out.

use std::sync::Arc;

use super::{Subscription, Surroundings};
use crate::pubsub::proto::{self, ReceivedMessage};
use crate::pubsub::state::ack_id::AckId;
use crate::pubsub::state::ordering::Holder;
use crate::pubsub::state::record::Delivery;
use crate::pubsub::state::stream::Stream;

impl Subscription {
    /// Delivers what is ready to one taker: a pull stream, or a unary pull.
    pub(in crate::pubsub::state) fn deliver(
        &mut self,
        around: &mut Surroundings<'_>,
        to: Holder,
        most: usize,
    ) -> Vec<ReceivedMessage> {
        let stream = match to {
            Holder::Stream(number) => Some(number),
            Holder::Pull(_) => None,
        };
        let deadline = stream
            .and_then(|number| self.streams.get(&number))
            .map_or_else(|| self.deadline(), |stream| stream.deadline);
        let dead_lettered = self.attempts_allowed().is_some();
        let mut messages = Vec::new();
        let mut bytes = 0;
        while messages.len() < most
            && stream.is_none_or(|number| self.streams.get(&number).is_some_and(Stream::has_room))
            && let Some(seq) = self.backlog.next_for(to)
        {
            let Some(size) = self.backlog.entry(seq).map(|entry| entry.stored.size) else {
                break;
            };
            if !messages.is_empty() && bytes + size > around.settings.response_bytes {
                break;
            }
            let number = *around.next_lease;
            let until = around.now + deadline;
            let late = around.settings.late_acks;
            let Some(entry) = self.backlog.lease(seq, number, to, until, late) else {
                break;
            };
            *around.next_lease += 1;
            bytes += size;
            let id = AckId {
                subscription: self.number,
                lease: number,
            };
            let ack_id = id.mint(around.settings.ack_id_length);
            let attempt = entry.failures + 1;
            around.record.delivered(
                Delivery {
                    message_id: Arc::clone(&entry.stored.id),
                    ordering_key: Arc::clone(&entry.stored.key),
                    ack_id: ack_id.as_str().into(),
                    at: around.now,
                    attempt,
                    stream,
                },
                around.settings.history.entries,
            );
            messages.push(ReceivedMessage {
                ack_id,
                message: Some(proto::PubsubMessage::clone(&entry.stored.message)),
                // Told only where a dead-letter policy counts (interface definition).
                delivery_attempt: if dead_lettered {
                    i32::try_from(attempt).unwrap_or(i32::MAX)
                } else {
                    0
                },
            });
            if let Some(stream) = stream.and_then(|number| self.streams.get_mut(&number)) {
                stream.sent(size);
            }
        }
        messages
    }
}
