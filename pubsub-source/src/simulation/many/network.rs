//! What is on its way between the readers and the server, and what becomes of it.

use std::time::Duration;

use bytes::Bytes;
use gcp_emulator::pubsub::proto::{StreamingPullRequest, StreamingPullResponse};

use super::{
    bugs::Bug,
    chance::Rates,
    event::{Address, Delivered, Event, Fate, Line},
    service::Sent,
    world::World,
};
use crate::{
    machine::{Answer, CallId, CallMethod},
    simulation::network::as_acknowledge,
};

/// The driver's own time-out of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

impl World {
    pub(super) fn open(&mut self, line: Line, first: &StreamingPullRequest) {
        self.service.open(self.now, line, first);
        if self.split(line.0).is_none() {
            let delay = self.chance.millis(1..3000);
            self.schedule(delay, Event::HangUp(line));
        }
    }

    /// What the server sends leaves.
    pub(super) fn pump_service(&mut self) {
        while let Some((line, sent)) = self.service.poll(self.now) {
            match sent {
                Sent::Response(response) => {
                    let subscription = line.0.subscription;
                    let unacked: Vec<Delivered> = response
                        .received_messages
                        .iter()
                        .filter_map(|one| one.message.as_ref())
                        .filter_map(|one| {
                            Some((subscription, self.service.number(&one.message_id)?))
                        })
                        .filter(|message| !self.truth.acked.contains(message))
                        .collect();
                    self.send_to_client(line, Event::Response(line, response, unacked));
                }
                Sent::End => self.send_to_client(line, Event::End(line)),
            }
        }
    }

    pub(super) fn send_to_client(&mut self, line: Line, event: Event) {
        let mut delay = self.chance.millis(1..50);
        if self.chance.strikes(|rates: &Rates| rates.late_response) {
            self.chance.count("a response was late");
            delay = self.chance.millis(100..10_000);
        }
        self.send(line, true, delay, event);
    }

    pub(super) fn send_to_server(&mut self, line: Line, event: Event) {
        let delay = self.chance.millis(1..30);
        self.send(line, false, delay, event);
    }

    /// A line keeps the order.
    fn send(&mut self, line: Line, to_client: bool, delay: Duration, event: Event) {
        let last = self.last_arrival.entry((line, to_client)).or_default();
        *last = (*last).max(self.now + delay);
        let delay = *last - self.now;
        self.schedule(delay, event);
    }

    pub(super) fn arrive(
        &mut self,
        line: Line,
        response: Box<StreamingPullResponse>,
        unacked: Vec<Delivered>,
    ) {
        let stream = self
            .split(line.0)
            .and_then(|it| it.streams.get_mut(&line.1));
        let Some(stream) = stream else {
            self.service.credit(line);
            return;
        };
        stream.inbox.push_back((response, unacked));
        self.touched.insert(line.0);
    }

    pub(super) fn stream_ended(&mut self, line: Line) {
        let Some(split) = self.split(line.0) else {
            return;
        };
        let Some(stream) = split.streams.get(&line.1) else {
            return;
        };
        // What arrived before the end is read first.
        if !stream.inbox.is_empty() {
            self.schedule(Duration::from_millis(100), Event::End(line));
            return;
        }
        split.streams.remove(&line.1);
        self.tell_end(line.0, line.1);
        self.touched.insert(line.0);
    }

    pub(super) fn call(
        &mut self,
        address: Address,
        call: CallId,
        mut method: CallMethod,
        mut body: Bytes,
    ) {
        let split = self.split(address);
        let gives_back = split.is_some_and(|split| split.machine.gives_back(call));
        let ending = self
            .jobs
            .get(&address.place.0)
            .is_some_and(|job| job.ending);
        if gives_back && ending && address.place.0 < self.runs {
            self.chance
                .count("a host that had lost its store gave back what it held");
            if self.bug == Some(Bug::DropAcknowledges) {
                method = CallMethod::Acknowledge;
                body = as_acknowledge(body);
            }
        }
        if self.chance.strikes(|rates: &Rates| rates.lose_request) {
            self.chance.count("a request was lost");
            self.give_up_waiting(address, call);
            return;
        }
        let fate = if self.chance.strikes(|rates: &Rates| rates.lose_answer) {
            self.chance.count("an answer was lost");
            Fate::AnswerLost
        } else if self.chance.strikes(|rates: &Rates| rates.unavailable) {
            self.chance.count("a call was answered UNAVAILABLE");
            self.chance
                .pick(&[Fate::Unavailable, Fate::UnavailableAfterEffect])
        } else {
            Fate::Served
        };
        let mut delay = self.chance.millis(1..50);
        if self.chance.strikes(|rates: &Rates| rates.late_call) {
            delay = self.chance.millis(200..60_000);
        }
        if fate == Fate::AnswerLost || delay >= CALL_TIMEOUT {
            self.give_up_waiting(address, call);
        }
        if delay >= CALL_TIMEOUT {
            self.chance
                .count("a call was evaluated after its client gave up");
        }
        let event = Event::Call {
            address,
            call,
            method,
            body,
            fate,
        };
        self.schedule(delay, event);
    }

    fn give_up_waiting(&mut self, address: Address, call: CallId) {
        let event = Event::Answer {
            address,
            call,
            answer: Answer::Again(None),
            effectless: Vec::new(),
        };
        self.schedule(CALL_TIMEOUT, event);
    }

    /// The server evaluates a call, whether or not anybody waits for the answer.
    pub(super) fn evaluate(
        &mut self,
        address: Address,
        call: CallId,
        method: CallMethod,
        body: Bytes,
        fate: Fate,
    ) {
        let subscription = address.subscription;
        let mut effectless = match method {
            CallMethod::Acknowledge => self.service.acknowledged_by(subscription, &body),
            CallMethod::ModifyAckDeadline => Vec::new(),
        };
        let answer = match fate {
            Fate::Unavailable => Answer::Again(None),
            Fate::Served => self.service.call(self.now, method, body),
            Fate::AnswerLost => {
                self.service.call(self.now, method, body);
                return;
            }
            Fate::UnavailableAfterEffect => {
                self.service.call(self.now, method, body);
                Answer::Again(None)
            }
        };
        if let Answer::Done = answer {
            let fresh = self.service.fresh_acked();
            effectless.retain(|it| !self.truth.acked.contains(it) && !fresh.contains(it));
        } else {
            effectless.clear();
        }
        let delay = self.chance.millis(1..50);
        let event = Event::Answer {
            address,
            call,
            answer,
            effectless,
        };
        self.schedule(delay, event);
    }

    pub(super) fn answered(
        &mut self,
        address: Address,
        call: CallId,
        answer: Answer,
        effectless: Vec<Delivered>,
    ) {
        let (now, at, random) = (self.now, self.at(), self.chance.random().f64());
        let Some(reader) = self.reader(address.place) else {
            return;
        };
        if now < reader.suspended_until {
            let wait = reader.suspended_until - now;
            let event = Event::Answer {
                address,
                call,
                answer,
                effectless,
            };
            self.schedule(wait, event);
            return;
        }
        if let Some(split) = reader.split(address.subscription) {
            split.machine.handle_answer(at, random, call, answer);
        }
        self.truth.effectless.extend(effectless);
        self.touched.insert(address);
    }
}
