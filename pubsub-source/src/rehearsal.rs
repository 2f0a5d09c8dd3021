//! The source without its network and its clock, for benches: what a response, a checkpoint and
//! the passing of time cost. It is no part of the interface and promises nothing.

use std::time::{Duration, Instant};

use bytes::Bytes;
use connector_core::{Epoch, Limits};
use gcp_wire::{PulledResponse, SubscriptionName};

use crate::{
    driver::take_apart,
    handout::HandOut,
    machine::{Answer, CallId, Effect, Machine, Pulled, Restoration, StreamId},
    settings::Settings,
    stats::Stats,
};

/// No draw of luck: the middle of the range.
const RANDOM: f64 = 0.5;

/// A source with one open pull stream whose requests are all answered well.
#[derive(Debug)]
pub struct Rehearsal {
    subscription: SubscriptionName,
    machine: Machine,
    out: HandOut,
    now: Instant,
    stream: StreamId,
    calls: Vec<CallId>,
    epoch: Epoch,
}

impl Rehearsal {
    /// A source of which so many deliveries may be outstanding.
    ///
    /// # Panics
    ///
    /// When the source opens no stream, which would be a fault of its own.
    #[must_use]
    pub fn new(outstanding: usize) -> Self {
        let settings = Settings {
            outstanding,
            first_outstanding: outstanding,
            buffer: Limits::items(outstanding),
            stall_after: Duration::ZERO,
            ..Settings::default()
        };
        let subscription: SubscriptionName = "projects/demo-project/subscriptions/bench"
            .parse()
            .expect("a name as the service has them");
        let now = crate::driver::now();
        let restoration = Restoration::default();
        let mut machine = Machine::new(
            now,
            subscription.clone(),
            "bench".into(),
            settings,
            restoration,
        );
        machine.start(now);
        let mut stream = None;
        while let Some(effect) = machine.poll_effect(now) {
            if let Effect::Open { stream: opened, .. } = effect {
                stream = Some(opened);
            }
        }
        let stream = stream.expect("a source that was started opens a stream");
        machine.handle_opened(now, stream);
        Self {
            subscription,
            machine,
            out: HandOut::default(),
            now,
            stream,
            calls: Vec::new(),
            epoch: Epoch::default(),
        }
    }

    /// Takes an encoded response apart, and hands out what is in it. Answers how many messages.
    ///
    /// # Panics
    ///
    /// When it is no response.
    pub fn receive(&mut self, response: Bytes) -> usize {
        let pulled = self.pulled(response);
        self.machine
            .handle_response(self.now, RANDOM, self.stream, pulled);
        let mut messages = 0;
        while self.out.fill(&mut self.machine, self.now) {
            while let Ok(message) = self.out.pop(self.now, self.machine.revoked()) {
                std::hint::black_box(message);
                messages += 1;
            }
        }
        self.out.report(&mut self.machine, self.now);
        self.serve();
        messages
    }

    fn pulled(&self, response: Bytes) -> Pulled {
        let response = PulledResponse::decode(response).expect("an encoded response");
        take_apart(&self.subscription, &response, 0..response.len(), self.now)
    }

    /// Takes a checkpoint, and acknowledges what it covers.
    ///
    /// # Panics
    ///
    /// When the source refuses, which would be a fault of its own.
    pub fn checkpoint(&mut self) {
        self.epoch = self.epoch.next();
        let state = self.machine.snapshot(self.now, self.epoch);
        std::hint::black_box(state.expect("epochs ascend"));
        self.machine
            .commit(self.now, self.epoch)
            .expect("sealed above");
        self.serve();
    }

    /// Lets so much time pass, timer by timer.
    pub fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(due) = self.machine.poll_timeout().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.machine.handle_timeout(self.now);
            self.serve();
        }
        self.now = until;
    }

    /// What it has counted.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.machine.stats(self.now)
    }

    /// Answers every request, until none is left.
    fn serve(&mut self) {
        loop {
            while let Some(effect) = self.machine.poll_effect(self.now) {
                if let Effect::Call { call, body, .. } = effect {
                    std::hint::black_box(body);
                    self.calls.push(call);
                }
            }
            let Some(call) = self.calls.pop() else {
                return;
            };
            self.machine
                .handle_answer(self.now, RANDOM, call, Answer::Done);
        }
    }
}
