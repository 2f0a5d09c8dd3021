//! The sink without its network and its clock, for benches: what batching costs. It is no part of
//! the interface and promises nothing.

use std::time::Instant;

use gcp_wire::TopicName;

use crate::{
    PublishMessage, clock,
    machine::{Answer, Effect, Machine, RequestId},
    message,
    settings::Settings,
};

/// A sink whose requests are all stored.
#[derive(Debug)]
pub struct Rehearsal {
    machine: Machine,
    now: Instant,
    /// What was sent, with its number of messages.
    requests: Vec<(RequestId, usize)>,
    /// The length of a record, which is the same for all.
    frame: usize,
    ids: Vec<String>,
}

impl Rehearsal {
    /// A sink that sends at most so many messages in a request, and so many requests at once to a
    /// topic.
    #[must_use]
    pub fn new(batch_messages: usize, in_flight: usize) -> Self {
        let settings = Settings {
            batch_messages,
            in_flight,
            max_destinations: 10_000,
            ..Settings::default()
        };
        Self {
            machine: Machine::new(settings, None).0,
            now: clock::now(),
            requests: Vec::new(),
            frame: 1,
            ids: vec!["1234567890123456".to_owned(); batch_messages],
        }
    }

    /// Takes a record, and makes a request of what is ready to be sent. All records are of one
    /// length.
    pub fn accept(&mut self, topic: &TopicName, message: &PublishMessage) -> bool {
        let bytes = message::frame_len(message);
        self.frame = bytes;
        // As the sink does it: what only joins a batch has nothing sent.
        if self.machine.join(topic, message, bytes, None) {
            return true;
        }
        let taken = self
            .machine
            .accept(self.now, topic, message, bytes, None, None);
        self.send();
        taken
    }

    /// Has everything stored that was sent and everything sent that waits. Answers how many
    /// requests that took.
    pub fn store(&mut self) -> usize {
        let mut stored = 0;
        while let Some((request, messages)) = self.requests.pop() {
            let ids = self.ids.iter().take(messages).cloned();
            let answer = Answer::Stored(ids.collect());
            self.machine.handle_answer(self.now, request, answer, 0.5);
            stored += 1;
            self.send();
        }
        stored
    }

    /// What it has published.
    #[must_use]
    pub fn published(&self) -> u64 {
        self.machine.stats().records_published
    }

    fn send(&mut self) {
        while let Some(effect) = self.machine.poll_effect(self.now) {
            if let Effect::Publish { id, frames, .. } = effect {
                self.requests.push((id, frames.len() / self.frame));
                std::hint::black_box(frames);
            }
        }
    }
}
