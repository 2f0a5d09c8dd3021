//! What the handle does: takes responses in, and hands messages out.

use std::time::Duration;

use gcp_wire::PulledResponse;

use super::{Host, Twice};
use crate::{
    delivery::DeliveryId,
    driver::take_apart,
    fuzzing::{operation::End, subscription},
    handout::Pause,
};

impl Host {
    /// A response is read whose messages may have left the server so long ago.
    pub(in crate::fuzzing) fn receive_response(
        &mut self,
        stream: u8,
        response: &PulledResponse,
        stale: Duration,
    ) {
        let Some(stream) = self.stream(stream) else {
            return;
        };
        let leased_since = self.now.checked_sub(stale).unwrap_or(self.now);
        let mut from = 0;
        loop {
            let part = from..response.len().min(from + DeliveryId::MAX_BATCH);
            from = part.end;
            let pulled = take_apart(&subscription(), response, part, leased_since);
            assert_eq!(pulled.messages.len(), pulled.keys.len());
            assert_eq!(pulled.messages.len(), pulled.ack_ids.len());
            self.machine.handle_response(self.now, 0.5, stream, pulled);
            self.machine.check_invariants();
            if from == response.len() {
                return;
            }
        }
    }

    /// Hands out so many messages, as far as there are any.
    pub(in crate::fuzzing) fn read(&mut self, most: usize) {
        for _ in 0..most {
            self.finish_record();
            match self.out.pop(self.now, self.machine.revoked()) {
                Ok(message) => self.hand_over(message.delivery),
                Err(Pause::Stale | Pause::Empty) => {
                    self.out.refresh(&mut self.machine, self.now);
                    if !self.out.fill(&mut self.machine, self.now) {
                        return;
                    }
                }
            }
        }
    }

    /// How many deliveries were handed out.
    pub(in crate::fuzzing) fn handed(&self) -> usize {
        self.handed.len()
    }

    fn hand_over(&mut self, delivery: DeliveryId) {
        if self.mistake == Some(Twice::HandedOut) {
            self.handed.insert(delivery);
        }
        assert!(
            self.handed.insert(delivery),
            "{delivery} is handed out twice"
        );
    }

    /// Hands out some records of the next message.
    pub(super) fn read_records(&mut self, records: u8, end: End) {
        if self.out.in_hand().is_none() {
            self.out.refresh(&mut self.machine, self.now);
            self.out.fill(&mut self.machine, self.now);
            if self.out.open(self.now, self.machine.revoked()).is_err() {
                return;
            }
        }
        for _ in 0..records {
            self.out.hand_out_record();
        }
        match end {
            End::Finished => self.finish_record(),
            End::TurnedDown => self.out.turn_down(&mut self.machine, self.now),
            End::Open => {}
        }
    }

    /// The message in hand has no record left, if it is still ours.
    fn finish_record(&mut self) {
        if self.out.is_stale(self.now, self.machine.revoked()) {
            self.out.refresh(&mut self.machine, self.now);
        }
        if let Some(delivery) = self.out.in_hand().map(|in_hand| in_hand.delivery()) {
            self.out.finish();
            self.hand_over(delivery);
        }
    }
}
