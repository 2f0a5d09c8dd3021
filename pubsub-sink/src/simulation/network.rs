//! What is on its way between a client and the server, and what becomes of it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use connector_core::Cause;
use gcp_emulator::pubsub::proto::PublishRequest;
use gcp_wire::{Code, TopicName};
use prost::Message as _;

use super::{
    Violation,
    bugs::Bug,
    server::{Evaluated, TOPICS, topic},
    truth::{Kind, number_of},
    world::{Event, Fate, World},
};
use crate::{
    MessageError,
    machine::{Answer, Class, Creation, Failure, RequestId},
};

fn failed(class: Class) -> Answer {
    Answer::Failed(Failure {
        class,
        code: Code::Unknown,
        retry_after: None,
        cause: Cause::new(MessageError::Empty),
    })
}

impl World {
    pub(super) fn publish(
        &mut self,
        id: RequestId,
        header: &Bytes,
        frames: &Bytes,
        deadline: Duration,
    ) -> Result<(), Violation> {
        let mut body = BytesMut::from(header.as_ref());
        body.extend_from_slice(frames);
        let request = Box::new(PublishRequest::decode(body.freeze()).unwrap());
        let keys = request.messages.windows(2);
        if keys
            .into_iter()
            .any(|pair| pair[0].ordering_key != pair[1].ordering_key)
        {
            return Err("a request has messages of two keys".to_owned());
        }
        let numbers: Vec<usize> = request.messages.iter().map(number_of).collect();
        let call = self.next_call;
        self.next_call += 1;
        let client = self.client.as_mut().expect("it publishes");
        let incarnation = client.incarnation;
        client.calls.insert(id, (call, numbers));
        let give_up = Event::GiveUp {
            incarnation,
            id,
            call,
        };
        self.schedule(deadline, give_up);
        if self.chance.strikes(|rates| rates.lose_request) {
            self.chance.count("a request was lost");
            return Ok(());
        }
        let fate = self.fate();
        let mut delay = self.chance.millis(1..60);
        if self.chance.strikes(|rates| rates.late) {
            delay = self.chance.millis(200..8_000);
        }
        let call = Event::Call {
            incarnation,
            id,
            call,
            request,
            fate,
        };
        self.schedule(delay, call);
        Ok(())
    }

    fn fate(&mut self) -> Fate {
        if self.chance.strikes(|rates| rates.lose_answer) {
            self.chance.count("an answer was lost");
            Fate::AnswerLost
        } else if self.chance.strikes(|rates| rates.quota) {
            self.chance.count("a quota was used up");
            Fate::Quota
        } else if !self.chance.strikes(|rates| rates.unavailable) {
            Fate::Served
        } else if self.chance.one_in(2) {
            self.chance
                .count("a request was answered UNAVAILABLE before it took effect");
            Fate::Unavailable
        } else {
            self.chance
                .count("a request was answered UNAVAILABLE after it took effect");
            Fate::UnavailableAfterEffect
        }
    }

    /// Whether the client that sent a request waits for its answer.
    fn is_awaited(&self, incarnation: u32, id: RequestId, call: u64) -> bool {
        self.client.as_ref().is_some_and(|client| {
            client.incarnation == incarnation
                && client
                    .calls
                    .get(&id)
                    .is_some_and(|(waiting, _)| *waiting == call)
        })
    }

    /// The server evaluates a request, whether or not anybody waits for the answer.
    pub(super) fn evaluate(
        &mut self,
        incarnation: u32,
        id: RequestId,
        call: u64,
        request: PublishRequest,
        fate: Fate,
    ) -> Result<(), Violation> {
        let awaited = self.is_awaited(incarnation, id, call);
        if !awaited {
            self.chance
                .count("a request was evaluated after its client gave up");
        }
        let answer = match fate {
            Fate::Unavailable => failed(Class::Transient),
            Fate::Quota => failed(Class::Exhausted),
            Fate::Served | Fate::AnswerLost | Fate::UnavailableAfterEffect => {
                self.take_effect(request, awaited)?
            }
        };
        let answer = match fate {
            Fate::AnswerLost => return Ok(()),
            Fate::UnavailableAfterEffect => {
                if let Answer::Stored(_) = answer
                    && let Some(client) = &self.client
                    && let Some((_, numbers)) = client.calls.get(&id).filter(|_| awaited)
                {
                    self.truth.excuse(numbers.clone());
                }
                failed(Class::Transient)
            }
            Fate::Served | Fate::Unavailable | Fate::Quota => answer,
        };
        let delay = self.chance.millis(1..60);
        if self.now + delay < self.last_answer {
            self.chance.count("an answer arrived before an earlier one");
        }
        self.last_answer = self.last_answer.max(self.now + delay);
        let answer = Event::Answer {
            incarnation,
            id,
            call,
            answer,
        };
        self.schedule(delay, answer);
        Ok(())
    }

    fn take_effect(&mut self, request: PublishRequest, awaited: bool) -> Result<Answer, Violation> {
        let numbers: Vec<usize> = request.messages.iter().map(number_of).collect();
        let records = &self.truth.records;
        if numbers
            .iter()
            .any(|number| records[*number].kind != Kind::Good)
        {
            return Ok(failed(Class::Invalid));
        }
        match self
            .server
            .publish(self.now, &request.topic, request.messages)
        {
            Evaluated::Stored(ids) => {
                let staged = self.settings.delivery.is_staged();
                for number in numbers {
                    self.truth.store(number, staged, awaited)?;
                    if self.truth.stored[&number] > 1 {
                        self.chance.count("a message was published again");
                    }
                }
                Ok(Answer::Stored(ids.into_iter().collect()))
            }
            Evaluated::Missing => {
                self.chance.count("a topic did not exist");
                Ok(failed(Class::Missing))
            }
        }
    }

    pub(super) fn answered(
        &mut self,
        incarnation: u32,
        id: RequestId,
        call: u64,
        mut answer: Answer,
    ) {
        if !self.is_awaited(incarnation, id, call) {
            return;
        }
        let (at, random) = (self.at(), self.chance.random().f64());
        let client = self.client.as_mut().expect("it waits");
        let (_, numbers) = client.calls.remove(&id).expect("it waits");
        let class = match &answer {
            Answer::Stored(_) => None,
            Answer::Failed(failure) => Some(failure.class),
        };
        if class == Some(Class::Invalid) && numbers.len() > 1 {
            self.chance.count("a request was divided");
        }
        match (self.bug, class) {
            (Some(Bug::OutageCountsAsRefusal), Some(Class::Transient)) => {
                answer = failed(Class::Invalid);
            }
            (Some(Bug::MissingCountsAsStored), Some(Class::Missing)) => {
                answer = Answer::Stored(numbers.iter().map(ToString::to_string).collect());
            }
            _ => {}
        }
        client.machine.handle_answer(at, id, answer, random);
        client.machine.check_invariants();
    }

    /// The deadline of an attempt has passed.
    pub(super) fn give_up(&mut self, incarnation: u32, id: RequestId, call: u64) {
        if !self.is_awaited(incarnation, id, call) {
            return;
        }
        let (at, random) = (self.at(), self.chance.random().f64());
        let client = self.client.as_mut().expect("it waits");
        let (_, numbers) = client.calls.remove(&id).expect("it waits");
        let answer = if self.bug == Some(Bug::SilenceCountsAsStored) {
            Answer::Stored(numbers.iter().map(ToString::to_string).collect())
        } else {
            failed(Class::Transient)
        };
        self.truth.excuse(numbers);
        client.machine.handle_answer(at, id, answer, random);
        client.machine.check_invariants();
    }

    pub(super) fn create(&mut self, incarnation: u32, topic: TopicName) {
        let cause = || Cause::new(MessageError::Empty);
        let creation = if self.chance.strikes(|rates| rates.creation_trouble) {
            self.chance.count("a topic could not be created");
            Creation::Failed(cause())
        } else if self.server.create(self.now, &topic) {
            self.chance.count("a topic was created");
            Creation::Made
        } else {
            Creation::Existed
        };
        let delay = self.chance.millis(1..60);
        self.schedule(delay, Event::Created(incarnation, topic, creation));
    }

    pub(super) fn created(&mut self, incarnation: u32, topic: &TopicName, creation: Creation) {
        let (at, random) = (self.at(), self.chance.random().f64());
        if let Some(client) = &mut self.client
            && client.incarnation == incarnation
        {
            client.machine.handle_created(at, topic, creation, random);
            client.machine.check_invariants();
        }
    }

    pub(super) fn delete_a_topic(&mut self) {
        if self.chance.strikes(|rates| rates.delete_topic) {
            let gone = topic(self.chance.random().usize(0..TOPICS));
            if self.server.delete(self.now, &gone) {
                self.chance.count("a topic was deleted");
            }
        }
        let pause = self.chance.millis(200..2_000);
        self.schedule(pause, Event::DeleteTopic);
    }
}
