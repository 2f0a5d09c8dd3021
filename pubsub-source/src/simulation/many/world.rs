//! Everything together, in virtual time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use checkpoint_store::MemoryPlace;
use gcp_wire::SubscriptionName;

use super::{
    Counts, Violation,
    bugs::Bug,
    chance::{Chance, chance, settings},
    event::{Address, Event, Line, Place},
    job::Job,
    reader::{Reader, Split},
    service::Service,
    truth::Truth,
};
use crate::settings::Settings;

/// The most readers that a run of the job has.
pub(super) const READERS: usize = 4;

/// A run.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) bug: Option<Bug>,
    pub(super) base: Instant,
    pub(super) now: Duration,
    pub(super) settings: Settings,
    pub(super) subscriptions: Vec<SubscriptionName>,
    pub(super) service: Service,
    pub(super) truth: Truth,
    pub(super) place: MemoryPlace,
    /// What it shows: the index of a checkpoint.
    pub(super) durable: Option<usize>,
    /// The runs of the job that go on. The last is the newest.
    pub(super) jobs: BTreeMap<u32, Job>,
    pub(super) runs: u32,
    /// A successor is on its way.
    pub(super) starting: bool,
    pub(super) queue: BTreeMap<(Duration, u64), Event>,
    pub(super) next_event: u64,
    /// Splits whose driver has something to look at.
    pub(super) touched: BTreeSet<Address>,
    /// When the last thing sent on a line arrives, in each direction: a line keeps the order.
    pub(super) last_arrival: BTreeMap<(Line, bool), Duration>,
    pub(super) to_publish: u64,
    /// When the faults ended.
    pub(super) calm_since: Option<Duration>,
    /// Whoever was still paused then goes on.
    pub(super) all_resume: bool,
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut chance = chance(seed);
        let settings = settings(&mut chance);
        let count = chance.random().u32(1..4);
        let subscriptions: Vec<SubscriptionName> = (0..count)
            .map(|at| format!("projects/demo-project/subscriptions/orders-{at}"))
            .map(|name| name.parse().unwrap())
            .collect();
        let names = subscriptions.iter().map(|name| name.as_str().to_owned());
        let service = Service::new(&mut chance, names.collect());
        if chance.is_quiet() {
            chance.count("a quiet run");
        }
        let to_publish = chance.random().u64(10..60);
        Self {
            chance,
            bug,
            // Any instant will do: only differences count.
            base: crate::driver::now(),
            now: Duration::ZERO,
            settings,
            subscriptions,
            service,
            truth: Truth::default(),
            place: MemoryPlace::new(),
            durable: None,
            jobs: BTreeMap::new(),
            runs: 0,
            starting: true,
            queue: BTreeMap::new(),
            next_event: 0,
            touched: BTreeSet::new(),
            last_arrival: BTreeMap::new(),
            to_publish,
            calm_since: None,
            all_resume: false,
        }
    }

    pub(super) fn run(mut self) -> Result<Counts, Violation> {
        self.schedule(Duration::ZERO, Event::Start);
        self.schedule(Duration::ZERO, Event::Publish);
        self.schedule(Duration::from_millis(500), Event::Trouble);
        while !self.is_done()? {
            self.step()?;
        }
        self.finish()?;
        Ok(self.chance.into_counts())
    }

    pub(super) fn at(&self) -> Instant {
        self.base + self.now
    }

    pub(super) fn schedule(&mut self, after: Duration, event: Event) {
        self.queue
            .insert((self.now + after, self.next_event), event);
        self.next_event += 1;
    }

    pub(super) fn reader(&mut self, (job, reader): Place) -> Option<&mut Reader> {
        self.jobs.get_mut(&job)?.readers.get_mut(&reader)
    }

    pub(super) fn split(&mut self, address: Address) -> Option<&mut Split> {
        let reader = self.reader(address.place)?;
        reader.split(address.subscription)
    }

    pub(super) fn newest(&self) -> Option<&Job> {
        self.jobs.get(&self.runs)
    }

    /// Looks at what the store shows now.
    pub(super) fn look_into_store(&mut self) -> Option<usize> {
        self.durable = self.place.durable().map(|durable| {
            let index = std::str::from_utf8(&durable.state).unwrap();
            index.parse().unwrap()
        });
        self.durable
    }

    /// When something of a reader is due next, and every split for which it is.
    fn next_due(&self) -> Option<(Duration, Address)> {
        let jobs = self.jobs.values();
        let readers = jobs.flat_map(|job| {
            let readers = job.readers.iter();
            readers.map(|(reader, it)| ((job.number, *reader), it))
        });
        let due = readers.flat_map(|(place, reader)| {
            reader.splits.iter().filter_map(move |split| {
                let due = split.due?;
                let due = due.saturating_duration_since(self.base);
                let subscription = split.subscription;
                let address = Address {
                    place,
                    subscription,
                };
                Some((due.max(reader.suspended_until), address))
            })
        });
        due.min()
    }

    /// Lets the next thing happen.
    pub(super) fn step(&mut self) -> Result<(), Violation> {
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        let service = self.service.poll_timeout();
        let due = self.next_due();
        let next = [queued, service, due.map(|(due, _)| due)];
        let next = next.into_iter().flatten().min();
        let next = next.expect("trouble never ends").max(self.now);
        self.now = next;
        if service.is_some_and(|due| due <= next) {
            self.service.handle_timeout(next);
        }
        if let Some((due, address)) = due
            && due <= next
        {
            self.touched.insert(address);
        }
        if queued.is_some_and(|due| due <= next)
            && let Some((_, event)) = self.queue.pop_first()
        {
            self.happen(event)?;
        }
        self.pump_service();
        self.run_touched()?;
        self.pump_service();
        self.watch()
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Publish => self.publish(),
            Event::Trouble => self.trouble(),
            Event::Start => self.start()?,
            Event::Wake(place) => self.touch(place),
            Event::Host(place) => self.host_turn(place)?,
            Event::Word(place, word) => self.obey(place, word)?,
            Event::Coordinate(job) => self.coordinate(job),
            Event::State(place, epoch, state, handed) => {
                self.take_state(place, epoch, state, handed);
            }
            Event::Save(job, epoch) => self.save(job, epoch)?,
            Event::Saved(job, epoch) => self.saved(job, epoch)?,
            Event::Land => self.land(),
            Event::Open(line, first) => self.open(line, &first),
            Event::Request(line, request) => self.service.request(self.now, line, &request),
            Event::HalfClose(line) => self.service.half_close(self.now, line),
            Event::HangUp(line) => self.service.hang_up(self.now, line),
            Event::Call {
                address,
                call,
                method,
                body,
                fate,
            } => self.evaluate(address, call, method, body, fate),
            Event::Response(line, response, unacked) => self.arrive(line, response, unacked),
            Event::End(line) => self.stream_ended(line),
            Event::Answer {
                address,
                call,
                answer,
                effectless,
            } => self.answered(address, call, answer, effectless),
        }
        Ok(())
    }

    /// All splits of a reader have something to look at.
    pub(super) fn touch(&mut self, place: Place) {
        if let Some(reader) = self.reader(place) {
            let addresses = reader.addresses(place);
            self.touched.extend(addresses);
        }
    }

    fn publish(&mut self) {
        if self.to_publish == 0 {
            return;
        }
        let count = self.chance.random().u64(1..8).min(self.to_publish);
        self.to_publish -= count;
        let first = self.truth.published;
        let numbers: Vec<u64> = (first..first + count).collect();
        self.truth.published += count;
        self.service.publish(self.now, &numbers);
        let pause = self.chance.millis(1..5000);
        self.schedule(pause, Event::Publish);
    }

    /// Checks what is checked after every step.
    fn watch(&mut self) -> Result<(), Violation> {
        if let Some(job) = self.newest() {
            self.truth
                .check_owner(job.number, job.inherited, self.durable)?;
        }
        let fresh = self.service.take_acked();
        self.truth.check_acked(fresh, self.durable)?;
        let lapses = self.service.take_lapses();
        self.chance.count_many("a lapse at the server", lapses);
        if self.chance.is_quiet() && lapses > 0 {
            return Err("a lease lapsed in a quiet run".to_owned());
        }
        self.check_sharing()
    }
}
