//! The message whose records are being handed out.

use std::time::Instant;

use connector_core::Limits;

use super::{Found, HandOut};
use crate::{
    decode::Tally,
    delivery::DeliveryId,
    machine::{Machine, MessageKey},
    message::Message,
};

/// A message to be decoded, and how many of its records were handed out before.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) message: Message,
    pub(crate) skip: u64,
}

/// What is known of a message while the decoder has it.
#[derive(Debug)]
pub(crate) struct InHand {
    delivery: DeliveryId,
    key: MessageKey,
    published: i64,
    size: Limits,
    attempt: Option<u32>,
    /// Records handed out, in this and in earlier deliveries.
    records: u64,
    /// Whether the machine knows of them.
    told: bool,
}

impl InHand {
    pub(crate) fn delivery(&self) -> DeliveryId {
        self.delivery
    }

    /// Names the message in errors and in the log.
    pub(crate) fn key(&self) -> &MessageKey {
        &self.key
    }

    /// How often the service has delivered it, where it counts.
    pub(crate) fn attempt(&self) -> Option<u32> {
        self.attempt
    }

    /// Records handed out, in this and in earlier deliveries.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn report(&mut self, machine: &mut Machine, now: Instant) {
        if self.records > 0 {
            self.told = true;
            machine.hand_out_part(now, &self.key, self.published, self.records);
        }
    }
}

impl HandOut {
    /// Takes the message that [`look_ahead`](Self::look_ahead) found, to hand out its records. It is
    /// part of no epoch until [`finish`](Self::finish).
    pub(crate) fn take_in_hand(&mut self, _: Found) -> Opened {
        let Some(message) = self.messages.pop_front() else {
            super::nothing_found()
        };
        let skip = self.begun.remove(&message.delivery).unwrap_or(0);
        debug_assert!(self.in_hand.is_none(), "one message at a time");
        self.in_hand = Some(InHand {
            delivery: message.delivery,
            key: MessageKey::of(message.id.bytes()),
            published: message.published_nanos(),
            size: super::plus(Limits::default(), &message),
            attempt: message.delivery_attempt(),
            records: skip,
            told: skip > 0,
        });
        Opened { message, skip }
    }

    /// Takes the next message to hand out its records.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn open(&mut self, now: Instant, revoked: u64) -> Result<Opened, super::Pause> {
        let found = self.look_ahead(now, revoked)?;
        Ok(self.take_in_hand(found))
    }

    /// The message in hand, if it is still ours.
    pub(crate) fn in_hand(&self) -> Option<&InHand> {
        self.in_hand.as_ref()
    }

    /// One more record of the message in hand is handed out.
    pub(crate) fn hand_out_record(&mut self) {
        if let Some(in_hand) = &mut self.in_hand {
            in_hand.records += 1;
            self.tally.records += 1;
        }
    }

    /// The message in hand has no record left: it is part of the open epoch.
    pub(crate) fn finish(&mut self) {
        if let Some(in_hand) = self.in_hand.take() {
            self.handed.push(in_hand.delivery);
            if in_hand.told {
                self.finished.push(in_hand.key);
            }
            self.left.items += in_hand.size.items;
            self.left.bytes += in_hand.size.bytes;
        }
    }

    /// Lets go of the message in hand, which is not ours any more or whose source ends. What was
    /// handed out of it is not handed out again when it comes again.
    pub(super) fn put_back(&mut self, machine: &mut Machine, now: Instant) {
        if let Some(mut in_hand) = self.in_hand.take() {
            in_hand.report(machine, now);
            machine.withdraw(now, in_hand.delivery, in_hand.size);
        }
    }

    /// Gives the message in hand back at once, since it cannot be decoded. What was handed out of
    /// it is not handed out again when it comes again.
    pub(crate) fn turn_down(&mut self, machine: &mut Machine, now: Instant) {
        if let Some(mut in_hand) = self.in_hand.take() {
            in_hand.report(machine, now);
            machine.turn_down(now, in_hand.delivery, in_hand.size);
        }
    }

    /// What decoding did and the machine does not know of yet.
    pub(crate) fn untold_tally(&self) -> Tally {
        self.tally
    }

    /// Counts what decoding did.
    pub(crate) fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }
}
