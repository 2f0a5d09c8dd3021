//! What is on its way between a client and the server, and what becomes of it.

use std::time::Duration;

use bytes::Bytes;
use gcp_emulator::pubsub::proto::{
    AcknowledgeRequest, ModifyAckDeadlineRequest, StreamingPullRequest, StreamingPullResponse,
};
use prost::Message as _;

use super::{
    Violation,
    bugs::Bug,
    chance::Rates,
    event::{Event, Fate},
    server::{Line, Sent},
    world::World,
};
use crate::machine::{Answer, CallId, CallMethod, StreamEnd};

/// The driver's own time-out of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

impl World {
    pub(super) fn open(&mut self, line: Line, first: &StreamingPullRequest) {
        self.server.open(self.now, line, first);
        let lives = self
            .client
            .as_ref()
            .is_some_and(|client| client.incarnation == line.0);
        if !lives {
            let delay = self.chance.millis(1..3000);
            self.schedule(delay, Event::HangUp(line));
        }
    }

    /// The server notices that a process is gone, line by line, now or later.
    pub(super) fn hang_up_everything(&mut self) {
        for line in self.server.lines() {
            let delay = self.chance.millis(1..3000);
            self.schedule(delay, Event::HangUp(line));
        }
    }

    /// What the server sends leaves.
    pub(super) fn pump_server(&mut self) {
        while let Some((line, sent)) = self.server.poll(self.now) {
            match sent {
                Sent::Response(response) => {
                    let numbers: Vec<u64> = response
                        .received_messages
                        .iter()
                        .filter_map(|one| one.message.as_ref())
                        .filter_map(|message| self.server.number(&message.message_id))
                        .filter(|number| !self.truth.acked.contains(number))
                        .collect();
                    trace!("{:?} sent {line:?} {numbers:?}", self.now);
                    self.send_to_client(line, Event::Response(line, response, numbers));
                }
                Sent::End => self.send_to_client(line, Event::End(line)),
            }
        }
    }

    pub(super) fn send_to_client(&mut self, line: Line, event: Event) {
        let mut delay = self.chance.millis(1..50);
        if self.chance.strikes(|rates: &Rates| rates.late_response) {
            self.chance.count("a response was late");
            delay = self.chance.millis(100..15_000);
        }
        // A line keeps the order.
        let earliest = self.last_arrival.get(&line).copied().unwrap_or_default();
        let at = (self.now + delay).max(earliest);
        self.last_arrival.insert(line, at);
        self.schedule(at - self.now, event);
    }

    pub(super) fn arrive(
        &mut self,
        line: Line,
        response: Box<StreamingPullResponse>,
        unacked: Vec<u64>,
    ) {
        let Some(reader) = self.reader(line) else {
            self.server.credit(line);
            return;
        };
        reader.inbox.push_back((response, unacked));
        if reader.inbox.len() > 1 {
            self.chance.count("two responses waited unread");
        }
    }

    pub(super) fn stream_ended(&mut self, line: Line) {
        let (at, random) = (self.base + self.now, self.chance.random().f64());
        let Some(reader) = self.reader(line) else {
            return;
        };
        // What arrived before the end is read first.
        if !reader.inbox.is_empty() {
            self.schedule(Duration::from_millis(100), Event::End(line));
            return;
        }
        let client = self.client.as_mut().expect("it has the reader");
        client.readers.remove(&line.1);
        client
            .machine
            .handle_stream_ended(at, random, line.1, StreamEnd::Again, None);
    }

    /// Requests on a line keep their order too.
    pub(super) fn send_to_server(&mut self, line: Line, event: Event) {
        let delay = self.chance.millis(1..30);
        let key = (line.0 | 1 << 31, line.1);
        let earliest = self.last_arrival.get(&key).copied().unwrap_or_default();
        let at = (self.now + delay).max(earliest);
        self.last_arrival.insert(key, at);
        self.schedule(at - self.now, event);
    }

    pub(super) fn call(
        &mut self,
        incarnation: u32,
        call: CallId,
        method: CallMethod,
        mut body: Bytes,
    ) -> Result<(), Violation> {
        let is_ack = method == CallMethod::Acknowledge;
        let client = self.client.as_ref();
        let gives_back = client.is_some_and(|client| client.machine.gives_back(call));
        let is_extension = !is_ack && !gives_back;
        match self.bug {
            Some(Bug::ExtensionsSkipped) if is_extension => {
                self.answer(incarnation, call, Answer::Done, Vec::new());
                return Ok(());
            }
            Some(Bug::FirstAckIdKept) if is_ack => body = self.with_first_ack_ids(body),
            Some(Bug::ReleaseAcknowledges) if gives_back => {
                let event = Event::Call {
                    incarnation,
                    call,
                    method: CallMethod::Acknowledge,
                    body: as_acknowledge(body),
                    fate: Fate::Served,
                };
                self.schedule(Duration::from_millis(5), event);
                return Ok(());
            }
            _ => {}
        }
        self.check_newest(&body, method, gives_back)?;
        if is_extension && let Some(client) = &mut self.client {
            client.note_extension(call, &body);
        }
        if is_ack {
            let request = AcknowledgeRequest::decode(body.clone()).unwrap();
            let numbers = self.server.numbers_of(&request.ack_ids);
            if let Some(client) = &mut self.client {
                client.acknowledged.extend(numbers);
            }
        }
        if self.chance.strikes(|rates: &Rates| rates.lose_request) {
            self.chance.count("a request was lost");
            self.give_up_waiting(incarnation, call);
            return Ok(());
        }
        let fate = if self.chance.strikes(|rates: &Rates| rates.lose_answer) {
            self.chance.count("an answer was lost");
            Fate::AnswerLost
        } else if self.chance.strikes(|rates: &Rates| rates.unavailable) {
            if gives_back {
                self.chance.count("a release failed");
            }
            if self.chance.one_in(2) {
                self.chance
                    .count("a call was answered UNAVAILABLE before it took effect");
                Fate::Unavailable
            } else {
                self.chance
                    .count("a call was answered UNAVAILABLE after it took effect");
                Fate::UnavailableAfterEffect
            }
        } else if self.chance.strikes(|rates: &Rates| rates.no_effect) {
            Fate::NoEffect
        } else {
            Fate::Served
        };
        let mut delay = self.chance.millis(1..50);
        if self.chance.strikes(|rates: &Rates| rates.late_call) {
            delay = self.chance.millis(200..80_000);
        }
        if fate == Fate::AnswerLost || delay >= CALL_TIMEOUT {
            self.give_up_waiting(incarnation, call);
        }
        if delay >= CALL_TIMEOUT {
            self.chance
                .count("a call was evaluated after its client gave up");
        }
        let event = Event::Call {
            incarnation,
            call,
            method,
            body,
            fate,
        };
        self.schedule(delay, event);
        Ok(())
    }

    /// Whatever is sent is sent under the newest ack id that was received.
    pub(super) fn check_newest(
        &self,
        body: &Bytes,
        method: CallMethod,
        gives_back: bool,
    ) -> Result<(), Violation> {
        let ack_ids = match method {
            CallMethod::Acknowledge => AcknowledgeRequest::decode(body.clone()).unwrap().ack_ids,
            CallMethod::ModifyAckDeadline => {
                ModifyAckDeadlineRequest::decode(body.clone())
                    .unwrap()
                    .ack_ids
            }
        };
        let Some(client) = &self.client else {
            return Ok(());
        };
        for ack_id in ack_ids {
            let Some(message) = client.messages.get(&ack_id) else {
                return Err(format!("{ack_id} was never received"));
            };
            let newest = &client.newest[message];
            // What is given back may have come again already: then it is another delivery.
            if *newest != ack_id && !gives_back {
                return Err(format!(
                    "message {message}: {method:?} was sent under an older ack id"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn give_up_waiting(&mut self, incarnation: u32, call: CallId) {
        let event = Event::Answer {
            incarnation,
            call,
            answer: Answer::Again(None),
            effectless: Vec::new(),
        };
        self.schedule(CALL_TIMEOUT, event);
    }

    /// The server evaluates a call, whether or not anybody waits for the answer.
    pub(super) fn evaluate(
        &mut self,
        incarnation: u32,
        call: CallId,
        method: CallMethod,
        body: Bytes,
        fate: Fate,
    ) {
        let named = match method {
            CallMethod::Acknowledge => {
                let request = AcknowledgeRequest::decode(body.clone()).unwrap();
                self.server.numbers_of(&request.ack_ids)
            }
            CallMethod::ModifyAckDeadline => Vec::new(),
        };
        let answer = match fate {
            Fate::Unavailable => Answer::Again(None),
            Fate::NoEffect => Answer::Done,
            Fate::Served | Fate::AnswerLost | Fate::UnavailableAfterEffect => {
                self.server.call(self.now, method, body)
            }
        };
        let answer = match fate {
            Fate::UnavailableAfterEffect => Answer::Again(None),
            Fate::Served | Fate::AnswerLost | Fate::Unavailable | Fate::NoEffect => answer,
        };
        if fate == Fate::AnswerLost {
            return;
        }
        self.note_acked();
        let mut effectless = named;
        effectless.retain(|number| !self.truth.acked.contains(number));
        if let Answer::Done = answer {
            if !effectless.is_empty() {
                self.chance
                    .count("an acknowledgement had no effect though answered OK");
            }
        } else {
            effectless.clear();
        }
        self.answer(incarnation, call, answer, effectless);
    }

    pub(super) fn answer(
        &mut self,
        incarnation: u32,
        call: CallId,
        answer: Answer,
        effectless: Vec<u64>,
    ) {
        let delay = self.chance.millis(1..50);
        if self.now + delay < self.last_answer {
            self.chance.count("an answer arrived before an earlier one");
        }
        self.last_answer = self.last_answer.max(self.now + delay);
        let event = Event::Answer {
            incarnation,
            call,
            answer,
            effectless,
        };
        self.schedule(delay, event);
    }

    pub(super) fn answered(
        &mut self,
        incarnation: u32,
        call: CallId,
        answer: Answer,
        effectless: Vec<u64>,
    ) {
        let (at, random) = (self.base + self.now, self.chance.random().f64());
        let Some(client) = &mut self.client else {
            return;
        };
        if client.incarnation != incarnation {
            return;
        }
        if self.now < client.suspended_until {
            let wait = client.suspended_until - self.now;
            let event = Event::Answer {
                incarnation,
                call,
                answer,
                effectless,
            };
            self.schedule(wait, event);
            return;
        }
        self.truth.effectless.extend(effectless);
        let answer = match (self.bug, answer) {
            (Some(Bug::FailedAckCounts), Answer::Again(_)) => Answer::Done,
            (_, answer) => answer,
        };
        trace!("{:?} answer {call:?} {answer:?}", self.now);
        client.note_confirmation(call, &answer);
        client.machine.handle_answer(at, random, call, answer);
        client.machine.check_invariants();
    }

    pub(super) fn note_acked(&mut self) {
        let acked = self.server.take_acked();
        self.truth.acked.extend(&acked);
        self.truth.fresh.extend(acked);
    }

    pub(super) fn with_first_ack_ids(&self, body: Bytes) -> Bytes {
        let mut request = AcknowledgeRequest::decode(body).unwrap();
        for ack_id in &mut request.ack_ids {
            *ack_id = self.server.first_ack_id(ack_id);
        }
        request.encode_to_vec().into()
    }
}

pub(super) fn as_acknowledge(body: Bytes) -> Bytes {
    let request = ModifyAckDeadlineRequest::decode(body).unwrap();
    AcknowledgeRequest {
        subscription: request.subscription,
        ack_ids: request.ack_ids,
    }
    .encode_to_vec()
    .into()
}
