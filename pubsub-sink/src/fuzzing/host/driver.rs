//! The driver's part: does what the machine wants done, and keeps the books.

use std::time::{Duration, Instant};

use connector_core::{CheckpointError, Epoch, Limits, RejectedReason};
use gcp_wire::{TopicName, proto::pubsub::PublishRequest};
use prost::Message as _;

use super::{Host, Twice, cause};
use crate::{
    PublishMessage,
    machine::{Effect, Refused, ReplyId},
    message,
    settings::{MAX_BYTES, MAX_MESSAGES},
};

/// Turns of the driver at one instant that are no loop.
const TURNS: usize = 20_000;

impl Host {
    pub(super) fn accept(&mut self, topic: &TopicName, message: PublishMessage, asked: bool) {
        let header = message::topic_header_len(topic.as_str());
        let Ok(bytes) = message::check(&message, header, MAX_BYTES) else {
            return self.reject(
                (Some(topic.clone()), Some(message), RejectedReason::Limit),
                asked,
            );
        };
        let reply = self.reply(asked);
        let staged = self.machine.delivery().is_staged();
        let identity = staged.then(|| self.minting.mint());
        let taken = self
            .machine
            .accept(self.now, topic, &message, bytes, identity, reply);
        if taken {
            self.charge(Limits::new(1, bytes));
        }
    }

    pub(super) fn reject(
        &mut self,
        (topic, message, reason): (Option<TopicName>, Option<PublishMessage>, RejectedReason),
        asked: bool,
    ) {
        let reply = self.reply(asked);
        let bytes = message.as_ref().map_or(0, message::frame_len);
        let refused = Refused {
            topic,
            message,
            reason,
            cause: cause(),
            bytes,
        };
        if self.machine.reject(self.now, refused, reply) {
            self.charge(Limits::new(1, bytes));
        }
    }

    pub(super) fn reply(&mut self, asked: bool) -> Option<ReplyId> {
        if !asked || self.machine.is_ended() {
            return None;
        }
        let reply = self.machine.reply();
        assert!(self.replies.insert(reply), "a name is given once");
        Some(reply)
    }

    pub(super) fn charge(&mut self, amount: Limits) {
        self.held.items += amount.items;
        self.held.bytes += amount.bytes;
    }

    pub(super) fn snapshot(&mut self, epoch: u64) {
        if self.machine.is_ended() {
            return;
        }
        let before = self.epoch;
        match self.machine.snapshot(self.now, Epoch::new(epoch)) {
            Ok(cut) => {
                assert!(
                    before.is_none_or(|before| epoch > before),
                    "epochs increase"
                );
                assert!(self.cuts.insert(cut), "a name is given once");
                self.epoch = Some(epoch);
            }
            Err(CheckpointError::OutOfOrder { .. }) => {
                assert!(before.is_some_and(|before| epoch <= before))
            }
            Err(other) => panic!("{other}"),
        }
    }

    pub(super) fn commit(&mut self, epoch: u64) {
        if self.machine.is_ended() {
            return;
        }
        match self.machine.commit(self.now, Epoch::new(epoch)) {
            Ok(commit) => assert!(self.commits.insert(commit), "a name is given once"),
            Err(CheckpointError::Unknown { .. }) => {
                assert!(self.epoch.is_none_or(|newest| epoch > newest));
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Time passes, and the driver does at each moment what is due then.
    pub(super) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        let mut turns = 0;
        while let Some(due) = self.machine.poll_timeout().filter(|due| *due <= end) {
            turns = if due > self.now { 0 } else { turns + 1 };
            assert!(turns < TURNS, "the driver goes round in circles");
            self.now = self.now.max(due);
            self.machine.handle_timeout(self.now);
            self.machine.check_invariants();
            self.perform(TURNS);
        }
        self.now = end;
    }

    /// Performs so many effects. A driver performs all before it waits.
    pub(super) fn perform(&mut self, most: usize) {
        for _ in 0..most {
            let effect = self.machine.poll_effect(self.now);
            self.machine.check_invariants();
            self.account();
            let Some(effect) = effect else {
                return;
            };
            self.see(effect);
        }
        assert!(most < TURNS, "the driver goes round in circles");
    }

    fn see(&mut self, effect: Effect) {
        match effect {
            Effect::Publish {
                id,
                topic,
                header,
                frames,
                deadline,
            } => {
                assert!(!deadline.is_zero());
                let bytes = [header, frames].concat();
                let request = PublishRequest::decode(&*bytes).expect("a request is whole");
                assert_eq!(request.topic, topic.as_str());
                let messages = request.messages.len();
                assert!((1..=MAX_MESSAGES).contains(&messages) && bytes.len() <= MAX_BYTES);
                let mut keys = request.messages.iter().map(|one| &one.ordering_key);
                let first = keys.next();
                assert!(keys.all(|key| Some(key) == first), "one key in a request");
                let times = 1 + usize::from(self.mistake == Some(Twice::Sent));
                for _ in 0..times {
                    let under_way = self.requests.iter().any(|(other, _)| *other == id);
                    assert!(!under_way, "a request is under way once");
                    self.requests.push((id, messages));
                }
            }
            Effect::Handle { id, .. } => {
                assert!(!self.handling.contains(&id), "a record is handed over once");
                self.handling.push(id);
            }
            Effect::CreateTopic(topic) => self.creating.push(topic),
            Effect::FlushHandler => {
                assert!(!self.flushing, "one flush at a time");
                self.flushing = true;
            }
            Effect::Resolve(cut, _) => {
                if self.mistake == Some(Twice::Resolved) {
                    self.cuts.remove(&cut);
                }
                assert!(self.cuts.remove(&cut), "a cut resolves once");
            }
            Effect::Committed(commit, _) => {
                assert!(self.commits.remove(&commit), "a commit resolves once");
            }
            Effect::Answer(reply, _) => {
                assert!(self.replies.remove(&reply), "an answer is given once");
            }
            Effect::Tell(_) => {}
        }
    }

    /// What was given back returns to the budget, and the two agree on what is held.
    pub(super) fn account(&mut self) {
        let mut released = self.machine.take_released();
        if self.mistake == Some(Twice::Released) {
            released = Limits::new(2 * released.items, 2 * released.bytes);
        }
        let items = self.held.items.checked_sub(released.items);
        let bytes = self.held.bytes.checked_sub(released.bytes);
        let (Some(items), Some(bytes)) = (items, bytes) else {
            panic!("more is given back than is held");
        };
        self.held = Limits::new(items, bytes);
        assert_eq!(self.held, self.machine.held(), "the budget is what is held");
    }

    /// Nothing happens any more but time, until no timer is left or the sink has ended.
    pub(super) fn rest(&mut self) {
        self.machine.stop_awaiting_room(self.now);
        self.perform(TURNS);
        for _ in 0..TURNS {
            let Some(due) = self.machine.poll_timeout() else {
                break;
            };
            self.pass(due.saturating_duration_since(self.now));
        }
        assert_eq!(
            self.machine.poll_timeout(),
            None::<Instant>,
            "it comes to rest"
        );
        self.account();
        if self.machine.is_ended() {
            assert_eq!(self.held, Limits::default(), "an end gives back everything");
        }
    }
}
