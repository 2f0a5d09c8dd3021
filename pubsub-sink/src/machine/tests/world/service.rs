//! The service: what it stores, refuses and creates, and what never leaves for it.

use connector_core::Cause;
use gcp_wire::{
    Code, TopicName,
    proto::pubsub::{PublishRequest, PubsubMessage},
};

use super::{Record, World, topic};
use crate::{
    MessageError,
    machine::{Answer, Class, Creation, Failure, RequestId},
};

pub(in crate::machine::tests) fn failure(class: Class) -> Failure {
    let code = match class {
        Class::Transient => Code::Unavailable,
        Class::Exhausted => Code::ResourceExhausted,
        Class::Invalid => Code::InvalidArgument,
        Class::Missing => Code::NotFound,
        Class::Fatal => Code::PermissionDenied,
    };
    Failure {
        class,
        code,
        retry_after: None,
        cause: Cause::new(MessageError::Empty),
    }
}

impl World {
    /// Nothing of a key is published behind a message for which the handler may yet end the sink.
    pub(super) fn stands_behind_no_verdict(&self, request: &PublishRequest) {
        let last = request.messages.iter().map(number_of).max().unwrap();
        let Record { topic, key, .. } = &self.records[last as usize];
        let before = self.undecided.range(..last);
        for undecided in before.map(|number| &self.records[*number as usize]) {
            assert!(
                key.is_none() || undecided.key != *key || undecided.topic != *topic,
                "{undecided:?} has no verdict and is overtaken by {last}"
            );
        }
    }

    /// While a topic is missing nothing goes there but what was on its way already.
    pub(super) fn overtakes_no_repair(&mut self, id: RequestId, topic: &TopicName) {
        let destinations = &self.machine.destinations;
        let destination = destinations.get(destinations.find(topic).unwrap());
        assert!(
            destination.repair.is_none() || self.known.contains(&id),
            "a repair is overtaken"
        );
        self.known.insert(id);
    }

    /// The service takes in a call; the answer may be lost.
    pub(in crate::machine::tests) fn serve(&mut self, at: usize, lose_answer: bool) {
        if self.missing.contains(&self.calls[at].request.topic) {
            return self.refuse(at, Class::Missing);
        }
        let call = self.calls.remove(at);
        let poisoned = call
            .request
            .messages
            .iter()
            .any(|message| self.records[number_of(message) as usize].poisoned);
        let answer = if poisoned {
            Answer::Failed(failure(Class::Invalid))
        } else {
            for message in &call.request.messages {
                let number = number_of(message);
                self.stored.push(number);
                self.stored_by_key
                    .entry((call.request.topic.clone(), message.ordering_key.clone()))
                    .or_default()
                    .push(number);
            }
            let ids = call.request.messages.iter();
            Answer::Stored(ids.map(|message| number_of(message).to_string()).collect())
        };
        if poisoned && !lose_answer && call.request.messages.len() == 1 {
            self.undecided.insert(number_of(&call.request.messages[0]));
        }
        let answer = if lose_answer {
            Answer::Failed(failure(Class::Transient))
        } else {
            answer
        };
        self.answer(call.id, answer);
    }

    /// A call fails without effect.
    pub(in crate::machine::tests) fn refuse(&mut self, at: usize, class: Class) {
        let call = self.calls.remove(at);
        self.answer(call.id, Answer::Failed(failure(class)));
    }

    fn answer(&mut self, id: RequestId, answer: Answer) {
        self.machine.handle_answer(self.now, id, answer, 0.5);
        self.machine.check_invariants();
    }

    /// Someone else creates a topic.
    pub(in crate::machine::tests) fn appear(&mut self, number: u8) {
        self.missing.remove(topic(number).as_str());
    }

    pub(in crate::machine::tests) fn delete(&mut self, number: u8) {
        self.missing.insert(topic(number).to_string());
    }

    /// The service creates a topic, or fails to.
    pub(in crate::machine::tests) fn create(&mut self, at: usize, works: bool) {
        let topic = self.creating.remove(at);
        let creation = if !works {
            Creation::Failed(Cause::new(MessageError::Empty))
        } else if self.missing.remove(topic.as_str()) {
            Creation::Made
        } else {
            Creation::Existed
        };
        self.machine.handle_created(self.now, &topic, creation, 0.5);
        self.machine.check_invariants();
    }

    /// Numbers of a request's messages.
    pub(in crate::machine::tests) fn numbers(request: &PublishRequest) -> Vec<u32> {
        request.messages.iter().map(number_of).collect()
    }
}

pub(super) fn number_of(message: &PubsubMessage) -> u32 {
    u32::from_be_bytes(message.data.as_ref().try_into().unwrap())
}
