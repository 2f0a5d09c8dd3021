//! Everything together, in virtual time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    Counts, Violation,
    bugs::Bug,
    chance::{Chance, Rates, chance, settings},
    client::Client,
    event::Event,
    order::Order,
    server::{Line, Server},
    truth::Truth,
};
use crate::{settings::Settings, state::SavedDeliveries};

/// What a lease lasts at least with exactly-once delivery, whatever the settings say.
const LONGEST_LEAST_LEASE: Duration = Duration::from_secs(60);

/// A run.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) bug: Option<Bug>,
    /// The host reads records, not messages.
    pub(super) decodes: bool,
    pub(super) base: Instant,
    pub(super) now: Duration,
    pub(super) client: Option<Client>,
    pub(super) truth: Truth,
    pub(super) settings: Settings,
    pub(super) server: Server,
    pub(super) queue: BTreeMap<(Duration, u64), Event>,
    pub(super) next_event: u64,
    pub(super) incarnations: u32,
    /// When the last thing sent on a line arrives: a line keeps the order.
    pub(super) last_arrival: BTreeMap<Line, Duration>,
    pub(super) last_answer: Duration,
    pub(super) next_number: u64,
    pub(super) to_publish: u64,
    pub(super) generations: u32,
    /// How far the time of day is ahead of the simulation's, in milliseconds.
    pub(super) wall_ahead: u64,
    pub(super) turns_now: (Duration, u32),
    /// The last incarnation is being closed.
    pub(super) finishing: bool,
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut chance = chance(seed);
        let ordered = chance.one_in(3);
        if ordered {
            chance.count("the order of keys was kept");
        }
        let mut settings = settings(&mut chance, ordered);
        let server = Server::new(&mut chance, ordered);
        if bug == Some(Bug::OrderNotKept) {
            settings.message_ordering = false;
        }
        // By the seed itself: the other runs stay what they were.
        if seed % 5 == 1 {
            settings.seen_limit = 4;
        }
        if chance.is_quiet() {
            chance.count("a quiet run");
        }
        // Any instant will do: only differences count.
        let base = crate::driver::now();
        let to_publish = chance.random().u64(5..80);
        // By the seed itself: the other runs stay what they were.
        let decodes = seed.is_multiple_of(3) && !ordered;
        Self {
            chance,
            bug,
            decodes,
            base,
            now: Duration::ZERO,
            client: None,
            truth: Truth {
                order: ordered.then(Order::default),
                ..Truth::default()
            },
            settings,
            server,
            queue: BTreeMap::new(),
            next_event: 0,
            incarnations: 0,
            last_arrival: BTreeMap::new(),
            last_answer: Duration::ZERO,
            next_number: 0,
            to_publish,
            generations: 0,
            wall_ahead: 100_000,
            turns_now: (Duration::ZERO, 0),
            finishing: false,
        }
    }

    pub(super) fn run(mut self) -> Result<Counts, Violation> {
        self.restart();
        self.schedule(Duration::ZERO, Event::Host);
        self.schedule(Duration::ZERO, Event::Publish);
        self.schedule(Duration::from_millis(500), Event::Trouble);
        while !self.is_done()? {
            self.step()?;
        }
        if self.chance.one_in(3) {
            self.start_server_again();
            while !self.is_done()? {
                self.step()?;
            }
        }
        self.finish()?;
        if let Some(client) = &self.client {
            let stats = client.machine.stats(self.base + self.now);
            if self.chance.is_quiet() && stats.redelivered + stats.lapsed > 0 {
                return Err(format!("something lapsed in a quiet run: {stats:?}"));
            }
        }
        self.retire();
        Ok(self.chance.into_counts())
    }

    pub(super) fn schedule(&mut self, after: Duration, event: Event) {
        self.queue
            .insert((self.now + after, self.next_event), event);
        self.next_event += 1;
    }

    /// Lets the next thing happen.
    pub(super) fn step(&mut self) -> Result<(), Violation> {
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        let server = self.server.poll_timeout();
        let client = self.client.as_ref().and_then(|client| {
            let due = client.machine.poll_timeout()?;
            let due = due.saturating_duration_since(self.base);
            Some(due.max(client.suspended_until))
        });
        let next = [queued, server, client].into_iter().flatten().min();
        let next = next.expect("the host's loop never ends").max(self.now);
        self.now = next;
        if server.is_some_and(|due| due <= next) {
            self.server.handle_timeout(next);
        }
        if queued.is_some_and(|due| due <= next)
            && let Some((_, event)) = self.queue.pop_first()
        {
            self.happen(event)?;
        }
        self.pump_server();
        self.run_client()?;
        self.pump_server();
        self.watch()
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Host => self.host_turn()?,
            Event::Publish => self.publish(),
            Event::Trouble => self.trouble(),
            Event::Open(line, first) => self.open(line, &first),
            Event::Request(line, request) => self.server.request(self.now, line, &request),
            Event::HalfClose(line) => self.server.half_close(self.now, line),
            Event::HangUp(line) => self.server.hang_up(self.now, line),
            Event::Call {
                incarnation,
                call,
                method,
                body,
                fate,
            } => self.evaluate(incarnation, call, method, body, fate),
            Event::Response(line, response, numbers) => self.arrive(line, response, numbers),
            Event::End(line) => self.stream_ended(line),
            Event::Answer {
                incarnation,
                call,
                answer,
                effectless,
            } => self.answered(incarnation, call, answer, effectless),
            Event::Durable(incarnation, saved, fails) => self.durable(incarnation, *saved, fails),
            Event::Restart => self.restart(),
            Event::Other(ack_ids, done) => self.settle_other(&ack_ids, done),
        }
        Ok(())
    }

    fn publish(&mut self) {
        if self.to_publish == 0 {
            return;
        }
        let count = self.chance.random().u64(1..6).min(self.to_publish);
        self.to_publish -= count;
        let numbers: Vec<u64> = (self.next_number..self.next_number + count).collect();
        self.next_number += count;
        self.truth.published.extend(&numbers);
        let mut keys = Vec::new();
        for number in &numbers {
            let key = match &mut self.truth.order {
                Some(order) => order.publish(*number, self.chance.pick(&["a", "a", "b", "c", ""])),
                None => "",
            };
            keys.push((*number, key));
        }
        self.server.publish(self.now, &keys);
        let pause = self.chance.millis(1..6000);
        self.schedule(pause, Event::Publish);
    }

    /// Faults that come by themselves.
    fn trouble(&mut self) {
        self.schedule(Duration::from_millis(500), Event::Trouble);
        if self.next_number > 0 && self.chance.strikes(|rates: &Rates| rates.redeliver) {
            let number = self.chance.random().u64(0..self.next_number);
            if self.server.redeliver_early(self.now, number) {
                self.chance
                    .count("a message was redelivered under a live lease");
            }
        }
        if self.chance.strikes(|rates: &Rates| rates.end_stream) {
            let lines = self.server.lines();
            if !lines.is_empty() {
                let line = self.chance.pick(&lines);
                if self.chance.one_in(2) {
                    self.chance.count("a stream ended clean");
                    self.server.half_close(self.now, line);
                } else {
                    self.chance.count("a stream ended with an error");
                    self.server.hang_up(self.now, line);
                    self.send_to_client(line, Event::End(line));
                }
            }
        }
        if self.chance.strikes(|rates: &Rates| rates.suspend)
            && let Some(client) = &mut self.client
        {
            self.chance.count("the process was suspended");
            client.suspended_until = self.now + self.chance.millis(1_000..120_000);
        }
        if self.chance.strikes(|rates: &Rates| rates.take_away) {
            self.take_away();
        }
        if self.chance.strikes(|rates: &Rates| rates.step) {
            self.chance.count("the time of day was put back or forward");
            self.wall_ahead = self.chance.random().u64(0..200_000);
        }
        if self.chance.strikes(|rates: &Rates| rates.switch) {
            self.chance.count("exactly-once delivery was switched");
            self.truth.switched = true;
            self.server.switch_exactly_once(self.now);
        }
        if self.chance.strikes(|rates: &Rates| rates.crash) {
            self.crash();
        }
    }

    /// The process is gone, from one moment to the next.
    pub(super) fn crash(&mut self) {
        if self.retire() {
            self.chance.count("a crash");
            self.hang_up_everything();
            let pause = self.chance.millis(10..20_000);
            self.schedule(pause, Event::Restart);
        }
    }

    /// Takes the last figures of an incarnation that is over.
    pub(super) fn retire(&mut self) -> bool {
        self.note_overflow();
        let Some(client) = self.client.take() else {
            return false;
        };
        let stats = client.machine.stats(self.base + self.now);
        self.chance
            .count_many("a redelivery of a held message", stats.redelivered);
        self.chance
            .count_many("a redelivery recognised after a restore", stats.recognised);
        self.chance
            .count_many("a held message was handed out again", stats.repeated);
        self.chance
            .count_many("a message was dropped behind another", stats.dropped_behind);
        true
    }

    /// Google's emulator forgets everything and gives the same ids again.
    fn start_server_again(&mut self) {
        self.chance.count("ids started again");
        self.generations += 1;
        self.now += Duration::from_secs(5);
        if self.settings.saved_deliveries == SavedDeliveries::AckIds {
            // It gives the same ack ids again too, which no real service does: a saved one must be
            // over, or it acknowledges a message that has nothing to do with it.
            self.now += self.settings.max_extension.max(LONGEST_LEAST_LEASE);
        }
        self.retire();
        self.queue
            .retain(|_, event| matches!(event, Event::Host | Event::Trouble));
        self.server.start_again(self.now);
        self.to_publish = self.chance.random().u64(5..40);
        self.schedule(Duration::ZERO, Event::Restart);
        self.schedule(Duration::from_millis(1), Event::Publish);
    }

    /// Checks what is checked after every step.
    fn watch(&mut self) -> Result<(), Violation> {
        self.note_acked();
        self.note_dead();
        self.truth.check_acked()?;
        let lapses = self.server.take_lapses() as u64;
        self.chance.count_many("a lapse at the server", lapses);
        if self.chance.is_quiet() && lapses > 0 {
            return Err("a lease lapsed in a quiet run".to_owned());
        }
        Ok(())
    }
}
