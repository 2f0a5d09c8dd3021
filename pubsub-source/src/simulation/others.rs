//! Another subscriber, who takes messages of the same subscription, and the topic of dead letters.

use super::{client::Held, event::Event, world::World};
use crate::delivery::{DeliveryId, Disposition};

impl World {
    /// Another subscriber takes some messages, and does something about them later, or never.
    pub(super) fn take_away(&mut self) {
        let most = self.chance.pick(&[1, 1, 3]);
        let ack_ids = self.server.pull(self.now, most);
        if ack_ids.is_empty() {
            return;
        }
        self.chance.count("another subscriber took messages");
        let after = self.chance.millis(50..30_000);
        match self.chance.random().u64(0..4) {
            0 => {}
            1 => self.schedule(after, Event::Other(ack_ids, false)),
            _ => self.schedule(after, Event::Other(ack_ids, true)),
        }
    }

    /// What it acknowledges is done, and none of our business.
    pub(super) fn settle_other(&mut self, ack_ids: &[String], done: bool) {
        self.note_acked();
        self.server.settle_other(self.now, ack_ids, done);
        let acked = self.server.take_acked();
        self.chance.count_many(
            "another subscriber acknowledged a message",
            acked.len() as u64,
        );
        self.truth.acked.extend(&acked);
        self.truth.taken.extend(acked);
    }

    /// Where failed messages are forwarded, some fail each time.
    pub(super) fn reject_some(&mut self) {
        if !self.server.has_dead_letters() || !self.chance.one_in(3) {
            return;
        }
        let at = self.base + self.now;
        let Some(client) = &mut self.client else {
            return;
        };
        let fails = |(_, held): &(&DeliveryId, &Held)| held.number % 9 == 4;
        let Some((&delivery, &held)) = client.open.iter().find(fails) else {
            return;
        };
        client.out.report(&mut client.machine, at);
        let Ok(settle) = client.machine.settle(delivery, Disposition::Nack) else {
            return;
        };
        trace!("{:?} reject {held:?}", self.now);
        client.settles.insert(settle);
        client.given_back.insert(held.number);
        client.give_up(delivery, held);
        self.chance.count("the host gave a message back");
    }

    pub(super) fn note_dead(&mut self) {
        for number in self.server.dead() {
            if self.truth.dead.insert(number) {
                self.chance.count("a message was dead-lettered");
            }
        }
    }
}
