//! Leases that count only when the service has confirmed them.

use bytes::Bytes;
use gcp_emulator::pubsub::proto::ModifyAckDeadlineRequest;
use prost::Message as _;

use super::{Violation, client::Client, world::World};
use crate::machine::{Answer, CallId};

impl Client {
    /// An extension is sent.
    pub(super) fn note_extension(&mut self, call: CallId, body: &Bytes) {
        let request = ModifyAckDeadlineRequest::decode(body.clone()).unwrap();
        self.extending.insert(call, request.ack_ids);
    }

    /// A request was answered: extensions that are done are confirmed.
    pub(super) fn note_confirmation(&mut self, call: CallId, answer: &Answer) {
        let Some(ack_ids) = self.extending.remove(&call) else {
            return;
        };
        let done = |ack_id: &String| match answer {
            Answer::Done => true,
            Answer::Mixed {
                verdicts,
                others_done,
            } => *others_done && !verdicts.contains_key(ack_id),
            Answer::Again(_) | Answer::Refused => false,
        };
        let messages = &self.messages;
        let confirmed = ack_ids.iter().filter(|ack_id| done(ack_id));
        self.confirmed
            .extend(confirmed.filter_map(|ack_id| messages.get(ack_id).cloned()));
    }
}

impl World {
    /// With exactly-once delivery nothing comes out whose lease was not confirmed.
    pub(super) fn check_confirmed(&self, number: u64, id: &str) -> Result<(), Violation> {
        let Some(client) = &self.client else {
            return Ok(());
        };
        let must = self.server.is_exactly_once() && !self.truth.switched;
        if must && !client.confirmed.contains(id) {
            return Err(format!(
                "message {number} was handed out before its lease was confirmed"
            ));
        }
        Ok(())
    }
}
