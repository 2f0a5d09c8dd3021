//! One run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use connector_core::{Epoch, Limits, Verdict};
use gcp_emulator::Time;
use gcp_emulator::cloudtasks::state::TasksState;
use gcp_emulator::pubsub::state::History;
use gcp_wire::{Code, QueueName};

use super::bugs::Bug;
use super::chance::{Chance, chance};
use super::client::Client;
use super::network::{Call, What};
use super::truth::{Kind, Truth};
use super::{Counts, Violation};
use crate::machine::{Batch, JobId};
use crate::state::SinkState;

/// How long the service remembers the name of a task that has run.
pub(super) const RETENTION: Duration = Duration::from_secs(1_200);

/// How long after its seal a task may be sent: the retention less the margin.
pub(super) const WINDOW: Duration = Duration::from_secs(600);

/// When the faults end, and when everything must have come to rest.
const FAULTS_END: Duration = Duration::from_secs(3_000);
const END: Duration = Duration::from_secs(60_000);

/// Midday, by the service's clock.
const NOON: Duration = Duration::from_secs(1_800_000_000);

#[derive(Debug)]
pub(super) enum Event {
    Host,
    Send {
        client: u64,
        call: Call,
    },
    Arrive {
        client: Option<u64>,
        call: Call,
    },
    Answer {
        client: u64,
        what: What,
        said: Result<bytes::Bytes, (Code, String)>,
    },
    Verdict {
        client: u64,
        job: JobId,
        verdict: Verdict,
    },
    Flushed {
        client: u64,
        job: JobId,
        upto: usize,
        is_ok: bool,
    },
    Saved {
        client: u64,
        saved: Durable,
    },
    Mark {
        client: u64,
        epoch: Epoch,
    },
    Executed {
        name: String,
    },
    Dies {
        client: u64,
    },
    Restart,
    Timer {
        client: u64,
    },
}

impl Event {
    /// Whether it happens at the service, which never sleeps.
    const fn is_outside(&self) -> bool {
        matches!(self, Self::Arrive { .. } | Self::Executed { .. })
    }
}

/// How far the newest saved epoch is known to have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    Saved,
    Committing,
    Settled,
}

/// What the store has.
#[derive(Debug)]
pub(super) struct Durable {
    pub(super) epoch: Epoch,
    pub(super) position: usize,
    pub(super) state: Vec<u8>,
    pub(super) progress: Progress,
    /// How many commits there had been at its cut.
    pub(super) commits: u64,
}

impl Durable {
    pub(super) fn opened(&self) -> SinkState {
        postcard::from_bytes(&self.state).expect("what was saved")
    }
}

pub(super) struct World {
    pub(super) bug: Option<Bug>,
    pub(super) chance: Chance,
    pub(super) t: Duration,
    next: u64,
    events: BTreeMap<(Duration, u64), Event>,
    base: Instant,
    /// Seconds by which our time of day is wrong.
    wrong: i64,
    pub(super) awake_at: Duration,
    /// How long the monotonic clock will have stopped when the machine wakes up.
    pub(super) stopped: Duration,
    lag: Duration,
    pub(super) server: TasksState,
    pub(super) seen: BTreeMap<String, usize>,
    pub(super) gone: BTreeMap<String, Duration>,
    pub(super) trouble: BTreeMap<String, (Duration, Code)>,
    pub(super) queues: [QueueName; 2],
    pub(super) truth: Truth,
    pub(super) batch: Option<Batch>,
    pub(super) minted: bool,
    pub(super) stage: Limits,
    pub(super) clients: BTreeMap<u64, Client>,
    pub(super) owner: Option<u64>,
    pub(super) incarnations: u64,
    pub(super) epoch: Epoch,
    pub(super) position: usize,
    pub(super) durable: Option<Durable>,
    pub(super) aborted: BTreeSet<Epoch>,
    pub(super) commits: u64,
    pub(super) commits_at_cut: BTreeMap<Epoch, u64>,
    pub(super) calm_since: Duration,
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut chance = chance(seed);
        let staged = bug != Some(Bug::SavedAtCut) && !chance.one_in(4);
        let batch = chance.pick(&[None, Some(Batch::up_to(1)), Some(Batch::up_to(5))]);
        let records = 20 + chance.random().u32(..40);
        let kinds: Vec<Kind> = (0..records)
            .map(|_| match chance.random().u32(..12) {
                0 => Kind::Poison,
                1 => Kind::Door,
                _ => Kind::Good,
            })
            .collect();
        let created = vec![0; kinds.len()];
        let queues = ["a", "b"].map(|id| {
            format!("projects/p/locations/l/queues/{id}")
                .parse::<QueueName>()
                .expect("a queue")
        });
        let mut server = TasksState::new(History::default()).names_kept(RETENTION);
        for queue in &queues {
            let made = server.create_queue_named(Time::from_unix(NOON), queue.as_str());
            made.expect("a new queue");
        }
        let stage = Limits::items(chance.pick(&[2usize, 6, 30]));
        Self {
            bug,
            t: Duration::ZERO,
            next: 0,
            events: BTreeMap::new(),
            base: crate::driver::clock::now(),
            wrong: 0,
            awake_at: Duration::ZERO,
            stopped: Duration::ZERO,
            lag: Duration::ZERO,
            server,
            seen: BTreeMap::new(),
            gone: BTreeMap::new(),
            trouble: BTreeMap::new(),
            queues,
            truth: Truth::new(staged, kinds, created),
            batch,
            minted: chance.one_in(2),
            stage,
            clients: BTreeMap::new(),
            owner: None,
            incarnations: 0,
            epoch: Epoch::default(),
            position: 0,
            durable: None,
            aborted: BTreeSet::new(),
            commits: 0,
            commits_at_cut: BTreeMap::new(),
            calm_since: Duration::ZERO,
            chance,
        }
    }

    pub(super) fn schedule(&mut self, after: Duration, event: Event) {
        self.next += 1;
        self.events.insert((self.t + after, self.next), event);
    }

    pub(super) fn monotonic(&self) -> Instant {
        if self.bug == Some(Bug::ClockStands) && self.truth.staged {
            // Goes on for everything but the deadlines, which are far off.
            return self.base + (self.t - self.lag) / 100;
        }
        self.base + (self.t - self.lag)
    }

    pub(super) fn wall(&self) -> SystemTime {
        if self.bug == Some(Bug::ClockStands) {
            return SystemTime::UNIX_EPOCH + NOON;
        }
        let wrong = Duration::from_secs(self.wrong.unsigned_abs());
        let now = SystemTime::UNIX_EPOCH + NOON + self.t;
        if self.wrong < 0 {
            now - wrong
        } else {
            now + wrong
        }
    }

    pub(super) fn server_time(&self) -> Time {
        Time::from_unix(NOON + self.t)
    }

    pub(super) fn run(mut self) -> Result<Counts, Violation> {
        self.schedule(Duration::ZERO, Event::Restart);
        self.schedule(Duration::from_millis(1), Event::Host);
        while self.t < END {
            self.look_at_clocks();
            let Some(((at, _), event)) = self.events.pop_first() else {
                return Err("nothing is left to happen, and something is owed".to_owned());
            };
            if !event.is_outside() && at < self.awake_at {
                let until = self.awake_at.saturating_sub(self.t);
                self.t = self.t.max(at);
                self.schedule(until, event);
                continue;
            }
            self.t = self.t.max(at);
            self.happen(event)?;
            self.arm_timers();
            if self.is_at_rest() {
                return self.finish();
            }
        }
        let owner = self.owner.and_then(|id| self.clients.get(&id));
        let stats = owner.map(|client| client.machine.stats());
        Err(format!("it does not come to rest: {stats:?}"))
    }

    fn look_at_clocks(&mut self) {
        if !self.stopped.is_zero() && self.t >= self.awake_at {
            self.lag += std::mem::take(&mut self.stopped);
        }
        if !self.chance.is_calm() && self.t > FAULTS_END {
            self.chance.calm_down();
            self.calm_since = self.t;
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        let now = self.monotonic();
        match event {
            Event::Host => {
                if self.chance.strikes(|rates| rates.sleep) {
                    self.sleep();
                }
                if self.chance.strikes(|rates| rates.clock) {
                    self.chance.count("a clock was set");
                    self.wrong = self.chance.random().i64(-25..25);
                }
                self.host_acts()
            }
            Event::Send { client, call } => self.send(client, call),
            Event::Arrive { client, call } => self.arrive(client, &call),
            Event::Answer { client, what, said } => self.answer(client, what, said),
            Event::Verdict {
                client: id,
                job,
                verdict,
            } => {
                if let Some(client) = self.clients.get_mut(&id) {
                    if verdict == Verdict::Fail {
                        self.chance.count("a refused task was kept aside");
                    }
                    client.machine.handle_verdict(now, job, Ok(verdict));
                    client.machine.check_invariants();
                }
                self.run_client(id)
            }
            Event::Flushed {
                client: id,
                job,
                upto,
                is_ok,
            } => {
                if !is_ok {
                    self.chance.count("a flush of the handler failed");
                }
                if let Some(client) = self.clients.get_mut(&id) {
                    if is_ok {
                        let durable = client.handled.iter().take(upto);
                        self.truth.dead_letters.extend(durable);
                    }
                    let counts = is_ok || self.bug == Some(Bug::FailedFlushCounts);
                    let outcome = if counts {
                        Ok(())
                    } else {
                        Err(connector_core::CheckpointError::driver_gone())
                    };
                    client.machine.handle_handler_flushed(now, job, outcome);
                    client.machine.check_invariants();
                }
                self.run_client(id)
            }
            Event::Saved { client, saved } => self.saved(client, saved),
            Event::Mark { client, epoch } => {
                self.mark(client, epoch);
                Ok(())
            }
            Event::Executed { name } => {
                self.executed(&name);
                Ok(())
            }
            Event::Dies { client } => {
                self.clients.remove(&client);
                Ok(())
            }
            Event::Restart => self.restart(),
            Event::Timer { client } => self.run_client(client),
        }
    }

    /// Every process comes up again when its machine said so.
    fn arm_timers(&mut self) {
        let now = self.monotonic();
        let due: Vec<(u64, Duration)> = self
            .clients
            .iter()
            .filter_map(|(id, client)| {
                let due = client.machine.poll_timeout()?;
                Some((*id, due.saturating_duration_since(now)))
            })
            .collect();
        for (client, after) in due {
            let at = self.t + after + Duration::from_millis(1);
            let armed = self.events.range((self.t, 0)..=(at, u64::MAX)).any(
                |(_, event)| matches!(event, Event::Timer { client: other } if *other == client),
            );
            if !armed {
                self.schedule(after + Duration::from_millis(1), Event::Timer { client });
            }
        }
    }
}
