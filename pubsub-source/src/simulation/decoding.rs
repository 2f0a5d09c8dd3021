//! A host that reads records: messages that decode to none, one or several.

use std::time::Duration;

use super::{Violation, bugs::Bug, world::World};
use crate::{delivery::DeliveryId, handout::Pause};

/// The message whose records are being handed out.
#[derive(Debug, Clone, Copy)]
pub(super) struct InHand {
    number: u64,
    delivery: DeliveryId,
    /// The number of records it has.
    total: u64,
    /// The next record to hand out, from 0.
    pub(super) next: u64,
}

/// How far a message was handed out, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unfinished {
    records: u64,
    at: Duration,
}

/// How long at least a source remembers how far it was.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What the decoder makes of a message. The same each time.
const fn records_of(number: u64) -> u64 {
    [3, 1, 0, 2, 5][(number % 5) as usize]
}

impl World {
    /// Takes one record as the handle does, and checks that it may come out.
    pub(super) fn read_record(&mut self) -> Result<bool, Violation> {
        let at = self.base + self.now;
        loop {
            let Some(client) = &mut self.client else {
                return Ok(false);
            };
            if client.out.is_stale(at, client.machine.revoked()) {
                client.out.refresh(&mut client.machine, at);
            }
            if let Some(in_hand) = client.in_hand.take() {
                if client.out.in_hand().is_none() {
                    self.chance.count("a message in hand was revoked");
                    continue;
                }
                return self.hand_out_record(in_hand).map(|()| true);
            }
            let opened = match client.out.open(at, client.machine.revoked()) {
                Ok(opened) => opened,
                Err(Pause::Stale | Pause::Empty) => {
                    client.out.refresh(&mut client.machine, at);
                    if !client.out.fill(&mut client.machine, at) {
                        return Ok(false);
                    }
                    continue;
                }
            };
            let text = std::str::from_utf8(opened.message.data()).unwrap();
            let number: u64 = text.parse().unwrap();
            let mut next = opened.skip;
            if next > 0 {
                self.chance.count("records were skipped");
                if self.bug == Some(Bug::OneRecordTooFar) {
                    next += 1;
                }
            }
            let in_hand = InHand {
                number,
                delivery: opened.message.delivery(),
                total: records_of(number),
                next,
            };
            trace!("{:?} open {in_hand:?}", self.now);
            if in_hand.next >= in_hand.total {
                self.finish_message(in_hand)?;
                continue;
            }
            client.in_hand = Some(in_hand);
        }
    }

    fn hand_out_record(&mut self, mut in_hand: InHand) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let InHand { number, next, .. } = in_hand;
        let known = client.unfinished.get(&number).copied();
        let expected = known.map_or(0, |known| known.records);
        if next > expected {
            return Err(format!(
                "record {next} of message {number} was handed out without {expected}"
            ));
        }
        if let Some(known) = known
            && next < expected
            && self.now - known.at < REMEMBERED
        {
            return Err(format!(
                "record {next} of message {number} was handed out again"
            ));
        }
        client.out.hand_out_record();
        in_hand.next += 1;
        let unfinished = Unfinished {
            records: in_hand.next,
            at: self.now,
        };
        client.unfinished.insert(number, unfinished);
        if in_hand.next == in_hand.total {
            return self.finish_message(in_hand);
        }
        if self.bug == Some(Bug::FinishedTooEarly) {
            client.out.finish();
            return Ok(());
        }
        client.in_hand = Some(in_hand);
        Ok(())
    }

    fn finish_message(&mut self, in_hand: InHand) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let InHand { number, total, .. } = in_hand;
        let records = client.unfinished.remove(&number).map_or(0, |it| it.records);
        if records != total {
            return Err(format!(
                "message {number} is finished with {records} of its {total} records"
            ));
        }
        let id = client.out.in_hand().map(|it| it.key().to_string());
        client.out.finish();
        self.handed_out(number, in_hand.delivery, &id.unwrap_or_default())
    }
}
