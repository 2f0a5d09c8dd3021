//! The host: feeds records, and the operator beside it.

use connector_core::{Cause, RejectedReason};

use super::{
    Violation,
    bugs::Bug,
    server::topic,
    truth::{Kind, number},
    world::{Event, World},
};
use crate::{MessageError, PublishMessage, machine::Refused, message};

impl World {
    /// Some records, as far as there is room.
    pub(super) fn feed(&mut self) -> Result<(), Violation> {
        if self.chance.strikes(|rates| rates.crash) {
            self.crash();
        }
        for _ in 0..self.chance.random().usize(1..8) {
            if !self.feed_one() {
                break;
            }
        }
        self.answer_wish()?;
        self.look_after_quarantine();
        let pause = self.chance.millis(1..800);
        self.schedule(pause, Event::Feed);
        Ok(())
    }

    /// One record. False when there is none, or no room for it.
    fn feed_one(&mut self) -> bool {
        let at = self.at();
        let submits = self.chance.one_in(5);
        let Some(client) = &mut self.client else {
            return false;
        };
        let Some(record) = self.truth.records.get(client.position) else {
            if std::mem::take(&mut client.awaiting_room) {
                client.machine.stop_awaiting_room(at);
            }
            return false;
        };
        if client.closing.is_some() {
            return false;
        }
        if !self.limits.admits(client.held) || client.machine.is_crowded() {
            if !client.awaiting_room {
                self.chance.count("the host waited for room");
                if self.settings.delivery.is_staged() && client.machine.owed() == 0 {
                    self.chance.count("the stage was full");
                }
            }
            client.awaiting_room = true;
            client.machine.await_room(at);
            client.machine.check_invariants();
            return false;
        }
        if std::mem::take(&mut client.awaiting_room) {
            client.machine.stop_awaiting_room(at);
        }
        let data = (client.position as u64).to_be_bytes().to_vec();
        client.position += 1;
        let key = if self.bug == Some(Bug::KeysIgnored) {
            ""
        } else {
            record.key
        };
        let message = PublishMessage::new(data).ordering_key(key);
        let bytes = message::frame_len(&message);
        let reply = submits.then(|| client.machine.reply());
        client.replies.extend(reply);
        client.held.items += 1;
        client.held.bytes += bytes;
        let topic = topic(record.topic);
        let taken = if record.kind == Kind::Broken {
            self.chance
                .count("a record was refused before it was staged or sent");
            let refused = Refused {
                topic: Some(topic),
                message: Some(message),
                reason: RejectedReason::Limit,
                cause: Cause::new(MessageError::Empty),
                bytes,
            };
            client.machine.reject(at, refused, reply)
        } else {
            let staged = self.settings.delivery.is_staged();
            let identity = staged.then(|| client.minting.mint());
            client
                .machine
                .accept(at, &topic, &message, bytes, identity, reply)
        };
        assert!(taken, "a sink that lives takes records");
        client.machine.check_invariants();
        true
    }

    /// The sink asked for a checkpoint: a good host takes one now, another waits for its tick.
    fn answer_wish(&mut self) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        if !client.machine.wants_checkpoint() {
            return Ok(());
        }
        client.machine.checkpoint_asked();
        self.chance.count("a checkpoint was asked for");
        if self.chance.strikes(|rates| rates.hesitate) {
            return Ok(());
        }
        self.checkpoint()
    }

    /// Now and then the operator decides.
    fn look_after_quarantine(&mut self) {
        let at = self.at();
        if !self.chance.one_in(30) {
            return;
        }
        let publishes = self.chance.one_in(2);
        let Some(client) = &mut self.client else {
            return;
        };
        let kept = client.machine.quarantined();
        if publishes {
            let staged = client.machine.stage_quarantined(at, |_| true);
            client.held.items += staged.items;
            client.held.bytes += staged.bytes;
            let staged = staged.items as u64;
            self.chance
                .count_many("a quarantined message was staged again", staged);
        } else {
            let discarded = client.machine.discard_quarantined(|_| true);
            let left = client.machine.quarantined();
            let gone = kept.iter().filter(|kept| !left.contains(kept));
            self.truth
                .discarded
                .extend(gone.map(|kept| number(kept.message.clone())));
            self.chance
                .count_many("a quarantined message was discarded", discarded as u64);
        }
        client.machine.check_invariants();
    }
}
