//! A run of the job begins: from the newest state in the store, with more or fewer readers.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use checkpoint_store::CheckpointStore;
use connector_core::{Epoch, Restored, Versioned};
use futures::FutureExt;

use super::{
    Violation,
    bugs::Bug,
    event::{Delivered, Event},
    job::Job,
    reader::{Reader, Split},
    world::{READERS, World},
};
use crate::{
    SplitPlan,
    machine::{Machine, MessageKey, Restoration, RestoredGroup},
    settings::Settings,
    shared::Seat,
    source::Pool,
    state::SourceState,
};

/// The name under which every reader saves.
const INSTANCE: &str = "simulated";

/// The time of day, which runs with the simulation.
pub(super) fn wall(now: Duration) -> SystemTime {
    UNIX_EPOCH + now
}

impl World {
    pub(super) fn start(&mut self) -> Result<(), Violation> {
        self.starting = false;
        // A third run does not wait for the first.
        if self.jobs.len() > 1
            && let Some((&eldest, _)) = self.jobs.first_key_value()
        {
            self.crash(eldest);
        }
        let store = self.place.open();
        let newest = store.newest().now_or_never().expect("it is in memory");
        let newest = newest.map_err(|error| error.to_string())?;
        let inherited = self.look_into_store();
        let epoch = newest.map_or_else(Epoch::default, |newest| newest.epoch);
        let mut states: Vec<Restored<SourceState>> = Vec::new();
        let mut restored = BTreeSet::new();
        if let Some(taken) = inherited.map(|index| &self.truth.taken[index]) {
            if taken.epoch != epoch {
                return Err(format!("the store says {epoch}, and shows {}", taken.epoch));
            }
            restored.clone_from(&taken.covered);
            for state in &taken.states {
                let state = SourceState::decode_body(SourceState::VERSION, INSTANCE, state.clone());
                states.push(Restored::new(
                    epoch,
                    state.map_err(|error| error.to_string())?,
                ));
            }
        }
        let width = self.chance.random().usize(1..=READERS);
        if !states.is_empty() {
            self.chance.count(match states.len().cmp(&width) {
                std::cmp::Ordering::Less => "a restart with more readers",
                std::cmp::Ordering::Equal => "a restart with as many readers",
                std::cmp::Ordering::Greater => "a restart with fewer readers",
            });
        }
        self.runs += 1;
        let mut job = Job {
            number: self.runs,
            readers: (0..width)
                .map(|reader| (reader, self.build(reader, width, &states)))
                .collect(),
            width,
            store,
            epoch,
            pending: None,
            restored,
            named: BTreeSet::new(),
            inherited,
            ending: false,
        };
        job.named = self.named_by(&states);
        trace!(
            "{:?} run {} from {epoch} with {width}",
            self.now, job.number
        );
        let (number, places) = (job.number, job.places());
        self.jobs.insert(number, job);
        for place in places {
            let pause = self.chance.millis(1..1000);
            self.schedule(pause, Event::Host(place));
        }
        let pause = self.chance.millis(500..5000);
        self.schedule(pause, Event::Coordinate(number));
        Ok(())
    }

    /// A reader, given the states of all readers there were.
    fn build(&mut self, reader: usize, width: usize, states: &[Restored<SourceState>]) -> Reader {
        let plan = SplitPlan::new(self.subscriptions.clone(), width).unwrap();
        let mine: BTreeSet<usize> = plan
            .reader(reader)
            .unwrap()
            .iter()
            .map(|split| split.index() % self.subscriptions.len())
            .collect();
        if mine.len() > 1 {
            self.chance.count("a reader read several subscriptions");
        }
        if width > self.subscriptions.len() {
            self.chance.count("a subscription had several readers");
        }
        let given = match self.bug {
            Some(Bug::OwnStateOnly) => states.get(reader..=reader).unwrap_or_default(),
            Some(Bug::NewReadersKnowNothing) if reader >= states.len() => &[],
            Some(Bug::GoneReadersForgotten) => &states[..states.len().min(width)],
            _ => states,
        };
        let pool = Pool::new(
            self.settings.buffer,
            self.settings.paused_limit(),
            mine.len(),
        );
        let splits = mine.into_iter().enumerate().map(|(at, subscription)| {
            let mut restoration = self.restoration(subscription, given);
            if restoration.epoch.is_none() {
                // Epochs go on, whatever else is forgotten.
                restoration.epoch = states.first().map(|state| state.epoch);
            }
            if self.bug == Some(Bug::SubscriptionsMixedUp) {
                for other in (0..self.subscriptions.len()).filter(|it| *it != subscription) {
                    let other = self.restoration(other, given);
                    restoration.groups.extend(other.groups);
                }
            }
            for group in &restoration.groups {
                let held = group.held.as_ref().map_or(0, |held| held.keys.len());
                self.chance
                    .count_many("an ack id was restored", held as u64);
            }
            let machine = Machine::new(
                self.at(),
                self.subscriptions[subscription].clone(),
                INSTANCE.into(),
                Settings::clone(&self.settings),
                restoration,
            );
            let pool = Arc::clone(&pool);
            Split::new(subscription, machine, Seat { pool, split: at })
        });
        Reader::new(splits.collect())
    }

    fn restoration(&self, subscription: usize, states: &[Restored<SourceState>]) -> Restoration {
        let restoration = Restoration::of(
            &self.subscriptions[subscription],
            INSTANCE,
            None,
            states,
            self.settings.saved_deliveries,
            wall(self.now),
        );
        restoration.expect("they are all of one source")
    }

    /// What states name, whoever took them.
    fn named_by(&self, states: &[Restored<SourceState>]) -> BTreeSet<Delivered> {
        let mut named = BTreeSet::new();
        for subscription in 0..self.subscriptions.len() {
            for group in self.restoration(subscription, states).groups {
                let numbers = self.numbers_of(&group);
                named.extend(numbers.into_iter().map(|number| (subscription, number)));
            }
        }
        named
    }

    fn numbers_of(&self, group: &RestoredGroup) -> Vec<u64> {
        let ids = group.ids.iter().filter_map(|id| match id {
            MessageKey::Number(id) => self.service.number(&id.to_string()),
            MessageKey::Text(_) => None,
        });
        ids.collect()
    }
}
