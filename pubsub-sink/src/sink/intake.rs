//! From a record to a message in the machine's hands.

use connector_core::{Cause, Limits, RejectedReason, Resolution};
use gcp_wire::TopicName;

use super::PubsubSink;
use crate::{
    PublishMessage, SinkError, clock,
    machine::{Machine, Refused, ReplyId},
    message,
    settings::MAX_BYTES,
    shared::State,
    staged::{Identity, Minting},
    trace::traced,
};

impl<R> PubsubSink<R> {
    /// Resolves, encodes, checks and hands over one record.
    pub(super) fn take(&mut self, record: &R, reply: Option<ReplyId>) -> Result<(), SinkError> {
        // The destination comes first: a record that names none is a mistake also when the encoder
        // would skip it.
        let resolution = self.resolver.resolve(record);
        let topic = if let Resolution::To(topic) = resolution {
            topic
        } else if let Resolution::Invalid(cause) = resolution {
            return self.reject(None, None, RejectedReason::Destination, cause, reply);
        } else {
            // Nothing, and whatever answer a later version adds.
            return self.fail(SinkError::NoDestination);
        };
        let message = match self.encoder.encode(record) {
            Ok(Some(message)) => message,
            Ok(None) => return self.shared.with(|state| state.machine.skip(reply)),
            Err(error) => {
                let cause = Cause::from(error);
                return self.reject(Some(topic), None, RejectedReason::Encoding, cause, reply);
            }
        };
        let mut message = message;
        if let Some(context_of) = &mut self.trace
            && let Some(context) = context_of(record)
        {
            message = traced(message, &context);
        }
        let identity = self.minting.as_mut().map(Minting::mint);
        if let (Some(names), Some(identity)) = (&self.identity_attributes, identity) {
            message = names.stamp(message, identity);
        }
        let header = message::topic_header_len(topic.as_str());
        match message::check(&message, header, MAX_BYTES) {
            Ok(bytes) => self.accept(&topic, &message, bytes, identity, reply),
            Err(error) => {
                let (reason, cause) = (RejectedReason::Limit, Cause::new(error));
                self.reject(Some(topic), Some(message), reason, cause, reply)
            }
        }
    }

    /// Gives a message to the machine.
    fn accept(
        &mut self,
        topic: &TopicName,
        message: &PublishMessage,
        bytes: usize,
        identity: Option<Identity>,
        reply: Option<ReplyId>,
    ) -> Result<(), SinkError> {
        self.charge(bytes);
        // Most messages only join a batch: nobody has to be told, and no clock be read.
        let joined = |machine: &mut Machine| machine.join(topic, message, bytes, reply);
        if identity.is_none() && self.shared.quietly(joined) {
            return Ok(());
        }
        self.hand_over(bytes, |state| {
            state
                .machine
                .accept(clock::now(), topic, message, bytes, identity, reply)
        })
    }

    fn reject(
        &mut self,
        topic: Option<TopicName>,
        message: Option<PublishMessage>,
        reason: RejectedReason,
        cause: Cause,
        reply: Option<ReplyId>,
    ) -> Result<(), SinkError> {
        let bytes = message.as_ref().map_or(0, message::frame_len);
        let refused = Refused {
            topic,
            message,
            reason,
            cause,
            bytes,
        };
        self.charge(bytes);
        self.hand_over(bytes, |state| {
            state.machine.reject(clock::now(), refused, reply)
        })
    }

    /// Charges the budget for a record. Before the machine has it: the driver may give the room back
    /// at any moment from then on.
    fn charge(&mut self, bytes: usize) {
        self.turn = self.turn.saturating_sub(bytes >> 11);
        self.admitted = self.shared.member.charge_and_admit(Limits::new(1, bytes));
    }

    /// Gives a record that is charged already to the machine.
    fn hand_over(
        &mut self,
        bytes: usize,
        give: impl FnOnce(&mut State) -> bool,
    ) -> Result<(), SinkError> {
        let taken = self.shared.with(give)?;
        if taken {
            return Ok(());
        }
        self.shared.member.release(Limits::new(1, bytes));
        Err(self.last_word())
    }

    fn fail(&mut self, error: SinkError) -> Result<(), SinkError> {
        self.shared.with(|state| state.machine.fail(error))?;
        Err(self.last_word())
    }
}
