//! Everything together, in virtual time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use connector_core::{Epoch, Limits, Verdict};
use gcp_emulator::pubsub::proto::PublishRequest;
use gcp_wire::TopicName;

use super::{
    Counts, Violation,
    bugs::Bug,
    chance::{Chance, chance, settings},
    client::Client,
    server::{Server, TOPICS, topic},
    truth::{Kind, Record, Saved, Truth},
};
use crate::{
    clock,
    machine::{Answer, Creation, RejectionId, RequestId},
    settings::Settings,
};

/// The faults end at this time at the latest.
const TROUBLE: Duration = Duration::from_secs(60);

/// After the faults everything must be done within this time.
const PATIENCE: Duration = Duration::from_secs(600);

/// What becomes of a request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Served,
    AnswerLost,
    Unavailable,
    UnavailableAfterEffect,
    Quota,
}

/// What happens at some time. What concerns one incarnation names it.
pub(super) enum Event {
    Feed,
    Checkpoint,
    DeleteTopic,
    Restart,
    /// The server evaluates a request.
    Call {
        incarnation: u32,
        id: RequestId,
        call: u64,
        request: Box<PublishRequest>,
        fate: Fate,
    },
    Answer {
        incarnation: u32,
        id: RequestId,
        call: u64,
        answer: Answer,
    },
    /// The client waits for an answer no longer.
    GiveUp {
        incarnation: u32,
        id: RequestId,
        call: u64,
    },
    Create(u32, TopicName),
    Created(u32, TopicName, Creation),
    Verdict(u32, RejectionId, usize, Verdict),
    Flushed(u32, bool),
    /// The store's answer: whether it says that the save succeeded, and whether it did.
    Saved {
        incarnation: u32,
        saved: Box<Saved>,
        says: bool,
        durable: bool,
    },
    Mark(Epoch),
}

pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) bug: Option<Bug>,
    pub(super) settings: Settings,
    /// What a flushing sink may hold.
    pub(super) limits: Limits,
    pub(super) base: Instant,
    pub(super) now: Duration,
    events: BTreeMap<(Duration, u64), Event>,
    next_event: u64,
    pub(super) next_call: u64,
    pub(super) last_answer: Duration,
    pub(super) server: Server,
    pub(super) truth: Truth,
    pub(super) client: Option<Client>,
    pub(super) incarnations: u32,
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut chance = chance(seed);
        let settings = settings(&mut chance);
        let limits = if settings.delivery.is_staged() {
            settings.stage
        } else {
            Limits::items(chance.pick(&[1, 8, 1_000]))
        };
        let mut truth = Truth::default();
        for _ in 0..chance.random().usize(20..200) {
            let kind = if chance.strikes(|rates| rates.poison) {
                Kind::Poison
            } else if chance.strikes(|rates| rates.broken) {
                Kind::Broken
            } else {
                Kind::Good
            };
            truth.records.push(Record {
                topic: chance.random().usize(0..TOPICS),
                key: chance.pick(&["", "a", "b"]),
                kind,
            });
        }
        let mut world = Self {
            chance,
            bug,
            settings,
            limits,
            base: clock::now(),
            now: Duration::ZERO,
            events: BTreeMap::new(),
            next_event: 0,
            next_call: 0,
            last_answer: Duration::ZERO,
            server: Server::new(),
            truth,
            client: None,
            incarnations: 0,
        };
        for number in 0..TOPICS {
            if world.chance.one_in(2) {
                world.server.create(Duration::ZERO, &topic(number));
            }
        }
        if world.chance.is_quiet() {
            world.chance.count("a quiet run");
        }
        world
    }

    pub(super) fn at(&self) -> Instant {
        self.base + self.now
    }

    pub(super) fn schedule(&mut self, delay: Duration, event: Event) {
        self.events
            .insert((self.now + delay, self.next_event), event);
        self.next_event += 1;
    }

    pub(super) fn run(mut self) -> Result<Counts, Violation> {
        self.restart()?;
        self.schedule(Duration::ZERO, Event::Feed);
        self.schedule(Duration::from_millis(500), Event::Checkpoint);
        self.schedule(Duration::from_secs(1), Event::DeleteTopic);
        loop {
            self.run_client()?;
            if !self.chance.is_calm() && (self.now >= TROUBLE || self.has_fed_everything()) {
                self.chance.calm_down();
            }
            if self.chance.is_calm() && self.is_done() {
                return self.finish();
            }
            if self.now > TROUBLE + PATIENCE {
                return Err(self.standstill());
            }
            self.advance()?;
        }
    }

    fn has_fed_everything(&self) -> bool {
        let all = self.truth.records.len();
        self.client
            .as_ref()
            .is_some_and(|client| client.position == all)
            && self.now >= TROUBLE / 2
    }

    fn is_done(&mut self) -> bool {
        let (at, all) = (self.at(), self.truth.records.len());
        self.truth.newest_position() == all
            && self
                .client
                .as_mut()
                .is_some_and(|client| client.position == all && client.is_at_rest(at))
    }

    fn standstill(&self) -> Violation {
        match &self.client {
            None => "the host never came back".to_owned(),
            Some(client) => format!(
                "nothing ends: position {}, cuts {:?}, commits {:?}, {:?}",
                client.position,
                client.cuts,
                client.commits,
                client.machine.stats()
            ),
        }
    }

    /// Goes on to the next event or timer.
    fn advance(&mut self) -> Result<(), Violation> {
        let timer = self
            .client
            .as_mut()
            .and_then(|client| client.machine.poll_timeout())
            .map(|due| due.saturating_duration_since(self.base));
        let next = self.events.first_key_value().map(|((at, _), _)| *at);
        let Some(next) = timer.into_iter().chain(next).min() else {
            return Err("nothing is left to happen".to_owned());
        };
        self.now = self.now.max(next);
        if let Some((at, _)) = self.events.first_key_value().map(|(key, _)| *key)
            && at <= self.now
            && let Some((_, event)) = self.events.pop_first()
        {
            self.happen(event)?;
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Feed => self.feed(),
            Event::Checkpoint => self.periodic_checkpoint(),
            Event::DeleteTopic => {
                self.delete_a_topic();
                Ok(())
            }
            Event::Restart => self.restart(),
            Event::Call {
                incarnation,
                id,
                call,
                request,
                fate,
            } => self.evaluate(incarnation, id, call, *request, fate),
            Event::Answer {
                incarnation,
                id,
                call,
                answer,
            } => {
                self.answered(incarnation, id, call, answer);
                Ok(())
            }
            Event::GiveUp {
                incarnation,
                id,
                call,
            } => {
                self.give_up(incarnation, id, call);
                Ok(())
            }
            Event::Create(incarnation, topic) => {
                self.create(incarnation, topic);
                Ok(())
            }
            Event::Created(incarnation, topic, creation) => {
                self.created(incarnation, &topic, creation);
                Ok(())
            }
            Event::Verdict(incarnation, id, number, verdict) => {
                self.decided(incarnation, id, number, verdict)
            }
            Event::Flushed(incarnation, succeeded) => self.flushed(incarnation, succeeded),
            Event::Saved {
                incarnation,
                saved,
                says,
                durable,
            } => self.saved(incarnation, *saved, says, durable),
            Event::Mark(epoch) => {
                self.mark(epoch);
                Ok(())
            }
        }
    }

    /// Everything is over: whatever must hold in the end does.
    fn finish(mut self) -> Result<Counts, Violation> {
        let at = self.at();
        let Some(client) = &mut self.client else {
            return Err("the host never came back".to_owned());
        };
        if !client.replies.is_empty() {
            return Err(format!("{:?} were never told", client.replies));
        }
        let kept = client.machine.quarantined();
        let aside = kept
            .iter()
            .map(|kept| super::truth::number(kept.message.clone()))
            .collect();
        // At rest nothing is pending but the release of idle destinations, and then nothing.
        let later = at + self.settings.idle_destinations + Duration::from_secs(1);
        client.machine.stop_awaiting_room(later);
        client.machine.handle_timeout(later);
        client.machine.check_invariants();
        if client.machine.poll_timeout().is_some() || client.machine.needs_driver() {
            return Err("a sink at rest has something to do".to_owned());
        }
        self.truth.check_end(aside)?;
        Ok(self.chance.into_counts())
    }
}
