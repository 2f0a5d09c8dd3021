//! Records coming in.

use std::time::Instant;

use connector_core::{Cause, Epoch, Rejected, RejectedReason, ledger::Standing as Place};
use gcp_wire::TopicName;

use super::{
    Effect, Machine, ReplyId, batch::OpenBatch, destinations::DestinationId, order::LaneKey,
    rejections::Rejection,
};
use crate::{
    PublishMessage, Published, SinkError, message,
    staged::{Entry, Identity},
};

/// A record that does not get as far as a batch.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Where it was to go, once the resolver answered.
    pub(crate) topic: Option<TopicName>,
    /// The message, once the encoder made one.
    pub(crate) message: Option<PublishMessage>,
    pub(crate) reason: RejectedReason,
    pub(crate) cause: Cause,
    /// What it is charged to the budget with.
    pub(crate) bytes: usize,
}

impl Machine {
    /// Names whoever waits for what becomes of the next record.
    pub(crate) fn reply(&mut self) -> ReplyId {
        let id = ReplyId(self.next_reply);
        self.next_reply += 1;
        id
    }

    /// Takes a message for a topic. It was checked against the service's limits, and `bytes`, its
    /// frame's length, is charged to the budget already. One with an identity is held for its
    /// commit. False when the sink has ended and the message was not taken.
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        topic: &TopicName,
        message: &PublishMessage,
        bytes: usize,
        identity: Option<Identity>,
        reply: Option<ReplyId>,
    ) -> bool {
        if self.is_ended() {
            return false;
        }
        if let Some(key) = message.key()
            && !self.settings.ordering
        {
            self.fail(SinkError::OrderingDisabled {
                topic: topic.clone(),
                key: key.chars().take(64).collect(),
            });
            return false;
        }
        if let Some(identity) = identity {
            self.count(bytes);
            self.stage(topic, message, identity, reply);
        } else if !self.join(topic, message, bytes, reply) {
            self.count(bytes);
            let place = self.ledger.add(Entry::Passing);
            self.batch(now, topic, message.key(), bytes, |open| {
                open.push(place, message, reply);
            });
        }
        true
    }

    /// Takes a message as [`accept`](Self::accept) does, if all there is to do is to add it to the
    /// batch that messages of its topic and key are gathered in, which has one already and more
    /// room. False when there is more to do, and the message was not taken.
    ///
    /// The lane is queued, or lingers, since its first message, or waits for an answer or a verdict that
    /// will queue it; and its batch stays open: so there is nothing to send, to set or to tell that
    /// there was not before.
    pub(crate) fn join(
        &mut self,
        topic: &TopicName,
        message: &PublishMessage,
        bytes: usize,
        reply: Option<ReplyId>,
    ) -> bool {
        if self.is_ended() {
            return false;
        }
        let Some(destination) = self.destinations.in_use(topic) else {
            return false;
        };
        let header = destination.header.len();
        let lane = destination.lanes.find(message.key());
        let Some(open) = lane.and_then(|lane| lane.open.as_mut()) else {
            return false;
        };
        let full = open.len() + 1 >= self.settings.batch_messages
            || header + open.bytes() + bytes >= self.settings.batch_bytes;
        if full {
            return false;
        }
        open.push(self.ledger.add(Entry::Passing), message, reply);
        destination.held += 1;
        self.count(bytes);
        true
    }

    /// Puts a message of so many bytes into its destination's batch.
    pub(super) fn batch(
        &mut self,
        now: Instant,
        topic: &TopicName,
        key: Option<&str>,
        bytes: usize,
        push: impl FnOnce(&mut OpenBatch),
    ) {
        let id = self.open_destination(now, topic);
        self.destinations.hold(id);
        let (most, limit) = (self.settings.batch_messages, self.settings.batch_bytes);
        let destination = self.destinations.get_mut(id);
        let header = destination.header.len();
        let key = destination.lanes.key_of(key);
        let lane = destination.lanes.open(&key);
        let begun = lane.open.as_ref().map(|open| open.since);
        if let Some(open) = &lane.open
            && header + open.bytes() + bytes > limit
        {
            lane.closed.extend(lane.open.take().map(OpenBatch::close));
        }
        let open = lane
            .open
            .get_or_insert_with(|| OpenBatch::new(self.spares.take(), now));
        push(open);
        // A message above the threshold is a batch of its own and holds up nobody.
        if open.len() >= most || header + open.bytes() >= limit {
            lane.closed.extend(lane.open.take().map(OpenBatch::close));
        }
        let closed = !lane.closed.is_empty();
        if closed && let Some(since) = begun {
            self.forget_linger(since, id, &key);
        }
        self.enqueue(now, id, &key);
    }

    /// Takes a record that cannot be sent, for the failure handler. Its `bytes` are charged to the
    /// budget already. False when the sink has ended and the record was not taken.
    pub(crate) fn reject(
        &mut self,
        now: Instant,
        refused: Refused,
        reply: Option<ReplyId>,
    ) -> bool {
        let Refused {
            topic,
            message,
            reason,
            cause,
            bytes,
        } = refused;
        if self.is_ended() {
            return false;
        }
        let name = topic.as_ref().map_or("unresolved", |topic| topic.as_str());
        let mut rejected = Rejected::new(crate::CONNECTOR, name, reason).source(cause);
        if let Some(message) = &message {
            rejected = rejected.payload(message::encode_alone(message));
        }
        let place = self.ledger.add(Entry::Passing);
        self.count(bytes);
        // What follows under the same key waits for the verdict, as it would behind a message that
        // the service refused. What is staged waits for its commit, and no cut before that is
        // complete without the verdict.
        let keyed = topic
            .as_ref()
            .zip(message.as_ref().and_then(PublishMessage::key));
        let (destination, key) = match keyed {
            Some((topic, key)) if self.settings.ordering && !self.is_staged() => {
                let id = self.open_destination(now, topic);
                self.destinations.hold(id);
                let lanes = &mut self.destinations.get_mut(id).lanes;
                let key = lanes.key_of(Some(key));
                lanes.open(&key).verdicts += 1;
                (Some(id), key)
            }
            Some(_) | None => (None, None),
        };
        let rejection = Rejection {
            place,
            bytes,
            destination,
            key,
            reply,
            rejected,
        };
        self.rejections.arrive(rejection);
        true
    }

    /// The encoder skipped a record.
    pub(crate) fn skip(&mut self, reply: Option<ReplyId>) {
        self.counters.records_skipped += 1;
        if let Some(reply) = reply {
            self.effects
                .push_back(Effect::Answer(reply, Published::Skipped));
        }
    }

    /// Queues a lane that has something to send, if it may send; one that only waits for company
    /// is looked at again when it has waited long enough.
    pub(super) fn enqueue(&mut self, now: Instant, id: DestinationId, key: &LaneKey) {
        let linger = self.linger();
        let limit = self.settings.in_flight;
        let destination = self.destinations.get_mut(id);
        let lane_limit = if key.is_some() { 1 } else { limit };
        let lane = destination.lanes.open(key);
        let due = |since: Instant| {
            linger.is_none_or(|linger| now.saturating_duration_since(since) >= linger)
        };
        if !lane.queued && lane.is_sendable(lane_limit, due) {
            lane.queued = true;
            destination.wanting.push_back(key.clone());
        } else if let (Some(linger), Some(open)) = (linger, &lane.open)
            && !lane.queued
            && let Some(due) = open.since.checked_add(linger)
            && due > now
        {
            self.timers_changed |= self.lingering.insert((due, id, key.clone()));
        }
        self.queue(id);
    }

    /// Queues a destination that has something to send, if it may send.
    pub(super) fn queue(&mut self, id: DestinationId) {
        let limit = self.settings.in_flight;
        let destination = self.destinations.get_mut(id);
        if !destination.wanting.is_empty() && !destination.queued && destination.may_send(limit) {
            destination.queued = true;
            self.ready.push_back(id);
        }
    }

    fn open_destination(&mut self, now: Instant, topic: &TopicName) -> DestinationId {
        let crowded = self.is_crowded();
        let id = self.destinations.open(now, topic);
        if !crowded && self.is_crowded() {
            self.hurry(now);
        }
        id
    }

    fn count(&mut self, bytes: usize) {
        self.held.items += 1;
        self.held.bytes += bytes;
        self.counters.records_accepted += 1;
        self.counters.bytes_accepted += bytes as u64;
    }
}

/// The epoch a record belongs to, once it is sealed.
pub(super) fn epoch_of(standing: Place) -> Option<Epoch> {
    if let Place::Sealed(epoch) | Place::Settling(epoch) = standing {
        Some(epoch)
    } else {
        None
    }
}
