//! The messages a handle has taken from the machine and hands out one by one.

mod in_hand;

pub(crate) use in_hand::{InHand, Opened};

use std::{collections::VecDeque, time::Instant};

use connector_core::Limits;

use crate::{
    decode::Tally,
    delivery::DeliveryId,
    machine::{Begun, Machine, MessageKey},
    message::Message,
};

/// Why [`HandOut`] has nothing to hand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// What is left may have been revoked, or its lease may be over: [`HandOut::refresh`] first.
    Stale,
    /// Nothing is left: [`HandOut::fill`] first.
    Empty,
}

/// Proof that the queue that was asked has a message to hand out.
///
/// Whoever takes one gives this up, so nobody takes what was not found. What is found stays until it
/// is taken: between the two the queue is told nothing.
#[derive(Debug)]
#[must_use = "what was found is there to be taken"]
pub(crate) struct Found(());

/// At most one response's messages, taken in bulk so that the machine is locked once for all of
/// them.
///
/// Knows exactly which were handed out, and tells the machine before anything that depends on it:
/// a cut, a settlement, the next response. Pure, so that the simulation drives it too.
#[derive(Debug, Default)]
pub(crate) struct HandOut {
    messages: VecDeque<Message>,
    /// Which of the messages were handed out in part before, and how far.
    begun: Begun,
    /// The message whose records are being handed out. It is none of `messages` any more, and for
    /// the machine it is buffered until its last record is out.
    in_hand: Option<InHand>,
    /// Messages that were handed out whole after the machine was told of a part.
    finished: Vec<MessageKey>,
    /// What decoding did since the machine was last told.
    tally: Tally,
    /// Handed out since the machine was last told.
    handed: Vec<DeliveryId>,
    left: Limits,
    /// When the first lease of what is left ends.
    fresh_until: Option<Instant>,
    /// The machine's count of revocations as of the last look.
    revoked: u64,
}

impl HandOut {
    /// Looks for a message to hand out.
    #[inline]
    pub(crate) fn look_ahead(&self, now: Instant, revoked: u64) -> Result<Found, Pause> {
        if self.messages.is_empty() {
            return Err(Pause::Empty);
        }
        if self.is_stale(now, revoked) {
            return Err(Pause::Stale);
        }
        Ok(Found(()))
    }

    /// Hands out the message that [`look_ahead`](Self::look_ahead) found, as a host knows it who
    /// reads several splits.
    // It leaves its queue with the return value and is moved nowhere else on its way: it is as large
    // as two cache lines. The number of the split is written before, and only where there are
    // several: a part that was just written makes the move wait for it.
    #[inline]
    pub(crate) fn take(&mut self, _: Found, split: usize) -> Message {
        let Some(message) = self.messages.front_mut() else {
            nothing_found()
        };
        self.handed.push(message.delivery);
        self.left = plus(self.left, message);
        if split > 0 {
            message.delivery = message.delivery.of_split(split);
        }
        self.messages.pop_front().unwrap_or_else(|| nothing_found())
    }

    /// Hands the next message out.
    #[cfg(any(test, fuzzing, feature = "bench"))]
    pub(crate) fn pop(&mut self, now: Instant, revoked: u64) -> Result<Message, Pause> {
        let found = self.look_ahead(now, revoked)?;
        Ok(self.take(found, 0))
    }

    /// Whether something of it may have been revoked or may have lapsed.
    pub(crate) fn is_stale(&self, now: Instant, revoked: u64) -> bool {
        let holds = !self.messages.is_empty() || self.in_hand.is_some();
        holds && (revoked != self.revoked || self.fresh_until.is_none_or(|until| now >= until))
    }

    /// Whether everything that was taken is handed out, or dropped.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether one message is all that is left.
    pub(crate) fn is_at_last(&self) -> bool {
        self.messages.len() == 1
    }

    /// What was handed out and the machine does not know of yet.
    pub(crate) fn left(&self) -> Limits {
        self.left
    }

    /// Tells the machine what was handed out.
    pub(crate) fn report(&mut self, machine: &mut Machine, now: Instant) {
        if !self.handed.is_empty() {
            machine.hand_out(now, &self.handed, std::mem::take(&mut self.left));
            self.handed.clear();
        }
        for key in self.finished.drain(..) {
            machine.finish_part(&key);
        }
        if let Some(in_hand) = &mut self.in_hand {
            in_hand.report(machine, now);
        }
        machine.count_decoding(std::mem::take(&mut self.tally));
    }

    /// Drops what was revoked or has lapsed.
    pub(crate) fn refresh(&mut self, machine: &mut Machine, now: Instant) {
        self.report(machine, now);
        machine.lapse(now);
        self.messages.retain(|message| {
            let keep = machine.is_deliverable(message.delivery);
            if !keep {
                machine.withdraw(now, message.delivery, plus(Limits::default(), message));
            }
            keep
        });
        if let Some(in_hand) = &self.in_hand
            && !machine.is_deliverable(in_hand.delivery())
        {
            self.put_back(machine, now);
        }
        self.look(machine);
    }

    /// Takes the next response's messages, if there are any. Answers whether something can be
    /// handed out.
    pub(crate) fn fill(&mut self, machine: &mut Machine, now: Instant) -> bool {
        self.report(machine, now);
        if self.messages.is_empty()
            && let Some(parcel) = machine.take(now)
        {
            self.begun = machine.begun(now, &parcel.messages);
            self.messages = parcel.messages.into();
            self.look(machine);
        }
        !self.messages.is_empty()
    }

    /// Gives everything back that was not handed out.
    pub(crate) fn clear(&mut self, machine: &mut Machine, now: Instant) {
        self.report(machine, now);
        self.put_back(machine, now);
        for message in std::mem::take(&mut self.messages) {
            machine.withdraw(now, message.delivery, plus(Limits::default(), &message));
        }
    }

    fn look(&mut self, machine: &Machine) {
        self.revoked = machine.revoked();
        let in_hand = self.in_hand.as_ref().map(InHand::delivery);
        let queued = self.messages.iter().map(|message| message.delivery);
        // All are of one batch, and then one speaks for all.
        let queued = queued.take(if machine.is_leased_by_batch() {
            1
        } else {
            usize::MAX
        });
        self.fresh_until = machine.fresh_until(in_hand.into_iter().chain(queued));
    }

    /// The deliveries that were taken and not handed out.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> impl Iterator<Item = DeliveryId> + '_ {
        self.messages.iter().map(|message| message.delivery)
    }
}

/// An end of the stream would be the wrong word for it: nobody would look for what was lost.
#[cold]
fn nothing_found() -> ! {
    unreachable!("what was found is taken before anything else is done with the queue")
}

fn plus(limits: Limits, message: &Message) -> Limits {
    Limits::new(limits.items + 1, limits.bytes + message.size())
}
