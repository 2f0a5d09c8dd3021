//! What comes from the pull streams.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use gcp_wire::RpcError;

use super::{
    AckIds, Machine, MessageKey, Notice, Phase, StreamEnd, StreamId, cutting::is_acking,
    deliveries::Arrival,
};
use crate::{delivery::DeliveryId, error::SourceError, message::Message};

/// A pause of this part of the lease between the server's sending and our reading, and the lease
/// is extended before the messages age further.
const PAUSE: u32 = 8;

/// How often a response that cannot be read is tried before the source ends.
const DECODE_TRIES: u32 = 5;

/// One response, taken apart by the stream's task.
#[derive(Debug)]
pub(crate) struct Pulled {
    /// In the order of the response.
    pub(crate) messages: Vec<Message>,
    /// The key of each message.
    pub(crate) keys: Vec<MessageKey>,
    /// The ack id of each message.
    pub(crate) ack_ids: AckIds,
    /// Bytes of payloads, attributes and keys.
    pub(crate) bytes: u64,
    /// The server sent this no earlier, as far as what was read before tells.
    pub(crate) leased_since: Instant,
    /// What the response says about the subscription, when it says something.
    pub(crate) exactly_once: Option<bool>,
    /// Whether the subscription keeps the order of keys, when the response says so.
    pub(crate) ordered: Option<bool>,
}

impl Machine {
    /// The server began to answer a stream.
    pub(crate) fn handle_opened(&mut self, now: Instant, stream: StreamId) {
        self.streams.handle_opened(now, stream);
        self.outage.opened(now);
        self.note_open(now);
    }

    /// A response came.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        random: f64,
        stream: StreamId,
        pulled: Pulled,
    ) {
        self.streams
            .handle_response(now, stream, pulled.messages.len());
        self.outage.over();
        self.note_open(now);
        if let Some(exactly_once) = pulled.exactly_once {
            self.follow_exactly_once(now, exactly_once);
        }
        if let Some(ordered) = pulled.ordered {
            self.follow_ordering(now, ordered);
        }
        // What a dropped stream still had is leased to nobody we know of, and comes again.
        let Some(lease) = self.streams.lease(now, stream) else {
            return;
        };
        if let Phase::Closed { .. } = self.phase {
            return;
        }
        if pulled.messages.is_empty() {
            return;
        }
        // Zero where there is no dead-letter policy.
        self.counts_attempts = pulled.messages.iter().any(|message| message.attempt > 0);
        self.stats.received += pulled.messages.len() as u64;
        let Pulled {
            mut messages,
            keys,
            ack_ids,
            bytes,
            leased_since,
            exactly_once: _,
            ordered: _,
        } = pulled;
        self.stats.received_bytes += bytes;
        let published = messages.iter().map(Message::published_nanos);
        let published_by = published.max().unwrap_or(i64::MIN);
        let batch = self.deliveries.open(now, published_by, keys, ack_ids);
        self.leases.start(batch, leased_since, lease, random);
        for (index, message) in (0u16..).zip(&mut messages) {
            message.delivery = DeliveryId::new(batch, index);
        }
        let recognised = self.stats.recognised;
        if self.runs.is_none() {
            self.arrive_together(now, batch, &mut messages);
        } else {
            messages.retain(|message| {
                let published = message.published_nanos();
                if message.ordering_key.is_empty()
                    && !self.is_held_in_order(message.delivery, published)
                {
                    self.arrive(now, message.delivery, published)
                } else {
                    self.arrive_in_order(now, leased_since, message, published)
                }
            });
        }
        let ids = self.stats.recognised - recognised;
        if recognised == 0 && ids > 0 {
            let ids = usize::try_from(ids).unwrap_or(usize::MAX);
            self.tell(Notice::Recognised { ids });
        }
        self.admit(now, batch, messages, leased_since, lease);
        self.need.handle_held(self.deliveries.leased());
        self.sweep_keys(now);
        self.tidy();
        self.watch_reading(now);
    }

    /// Finds out what the deliveries of a response are. Leaves the messages that wait to be handed
    /// out.
    fn arrive_together(&mut self, now: Instant, batch: u64, messages: &mut Vec<Message>) {
        let held = self.deliveries.arrive_together(batch);
        if held.is_empty() && self.seen.is_empty() {
            return;
        }
        let mut held = held.into_iter().peekable();
        messages.retain(|message| {
            let (id, published) = (message.delivery, message.published_nanos());
            let at = held.next_if(|held| usize::from(*held) == id.index());
            if at.is_some() {
                self.arrive(now, id, published)
            } else {
                !self.is_recognised(id, published)
            }
        });
    }

    /// Whether a new delivery's message is part of a durable epoch. Then it is acknowledged.
    fn is_recognised(&mut self, id: DeliveryId, published: i64) -> bool {
        let key = self.deliveries.key(id);
        let seen = key.is_some_and(|key| self.seen.suppresses(key, published));
        if seen {
            self.re_ack(id);
        }
        seen
    }

    /// Finds out what a delivery is. Answers whether its message waits to be handed out.
    fn arrive(&mut self, now: Instant, id: DeliveryId, published: i64) -> bool {
        let mut arrival = self.deliveries.arrive(id, published);
        if let Arrival::Namesake(held) = arrival {
            self.abandon(held);
            arrival = self.deliveries.arrive(id, published);
        }
        match arrival {
            Arrival::New => !self.is_recognised(id, published),
            Arrival::Namesake(_) => unreachable!("what was held under the id was given up"),
            Arrival::Renewed(_) => {
                self.renewed(now, id);
                false
            }
        }
    }

    /// A delivery's message is part of a durable epoch: it is acknowledged.
    pub(super) fn re_ack(&mut self, id: DeliveryId) {
        self.deliveries.start_re_ack(id);
        let lane = self.lane(id);
        self.acks.push(id, lane);
        self.stats.recognised += 1;
    }

    /// A delivery took over from an earlier one of its message.
    pub(super) fn renewed(&mut self, now: Instant, id: DeliveryId) {
        self.stats.redelivered += 1;
        self.await_renewed(now, id);
        // An acknowledgement under way is for an ack id that is worth nothing.
        if is_acking(self.deliveries.stage(id)) {
            let lane = self.lane(id);
            self.acks.push(id, lane);
        }
    }

    /// Puts new messages where the reader finds them.
    fn admit(
        &mut self,
        now: Instant,
        batch: u64,
        messages: Vec<Message>,
        leased_since: Instant,
        lease: Duration,
    ) {
        let closing = match self.phase {
            Phase::Closing { .. } | Phase::Closed { .. } => true,
            Phase::Running => false,
        };
        if closing || self.stopping || self.flow.is_parked() {
            for message in &messages {
                // Of a source that ends, as the host wants it; else others are to have it.
                if closing {
                    self.part_with(message.delivery);
                } else {
                    self.give_back(message.delivery, 0);
                }
            }
            for message in &messages {
                self.leave_queue(message.delivery);
            }
            return;
        }
        if !messages.is_empty() {
            self.first_message.get_or_insert(now);
        }
        let paused = now.saturating_duration_since(leased_since) > lease / PAUSE;
        // With exactly-once delivery only a confirmed extension says that the lease is ours.
        let withheld = self.exactly_once.is_some() && !messages.is_empty();
        if paused || withheld {
            self.leases.hurry(batch, now);
        }
        self.buffer.push(batch, messages, withheld);
    }

    /// Does without a stream that ended. Answers whether that was unasked for.
    pub(super) fn end_stream(
        &mut self,
        now: Instant,
        random: f64,
        stream: StreamId,
        end: StreamEnd,
    ) -> bool {
        let unasked = self.streams.handle_end(now, random, stream, end);
        if unasked {
            let target = self.buffer.target();
            self.need.shrink(self.cadence.interval(), target);
        }
        self.note_open(now);
        self.advance_closing(now);
        unasked
    }

    /// A stream ended since a response could not be read. The same response comes again, on
    /// whichever stream, so this is tried a few times only. Others that can be read in between say
    /// nothing about this one.
    pub(crate) fn handle_undecodable(
        &mut self,
        now: Instant,
        random: f64,
        stream: StreamId,
        cause: RpcError,
    ) {
        let tries = match self.undecodable {
            // What does not come again for so long was taken by somebody else, or is gone.
            Some((last, tries)) if now.saturating_duration_since(last) <= self.seen_lifetime() => {
                tries + 1
            }
            Some(_) | None => 1,
        };
        self.undecodable = Some((now, tries));
        if tries >= DECODE_TRIES {
            let error = SourceError::Undecodable {
                subscription: self.subscription.clone(),
                tries,
                cause,
            };
            self.fail(now, error);
        }
        self.end_stream(now, random, stream, StreamEnd::Again);
    }

    /// Open-stream time is what the seen window lives on.
    pub(super) fn note_open(&mut self, now: Instant) {
        self.seen.handle_open(now, self.streams.open_count() > 0);
    }
}
