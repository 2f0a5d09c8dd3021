//! A run: the servers, the disk, the trouble, and one host after the other.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use checkpoint_store::SimulatedDisk;
use gcp_emulator::{Emulator, FaultPlan};
use tokio::{
    runtime,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    Counts,
    bugs::Bug,
    chance::{Chance, chance},
    circles::Circles,
    connectors::{NAMES_KEPT, noon},
    host::{Ended, Host, RESPONSE},
    plan::Plan,
    story::Story,
    trouble,
    truth::{SUBSCRIPTION, Truth},
};

/// Once nothing goes wrong any more, everything is done within this.
const RECOVERY: Duration = Duration::from_secs(30 * 60);

/// How a run went.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) counts: Counts,
    pub(crate) story: u64,
}

/// What the servers' faults share with the host.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) chance: Mutex<Chance>,
    pub(crate) truth: Mutex<Truth>,
    pub(crate) story: Story,
    /// When a connection fell silent that nobody has ended yet.
    pub(crate) silent: Mutex<Option<Instant>>,
    pub(crate) circles: Circles,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) shared: Arc<Shared>,
    pub(crate) plan: Plan,
    pub(crate) emulator: Emulator,
    pub(crate) disk: SimulatedDisk,
    pub(crate) bug: Option<Bug>,
    pub(crate) started: Instant,
}

/// Runs a seed. A law that is broken panics.
pub(crate) fn run(seed: u64, bug: Option<Bug>) -> Run {
    // What the connectors draw: delays between attempts.
    fastrand::seed(seed);
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = Arc::new(World::new(seed, bug));
        world.set_up();
        let [first, second, third, fourth] = [(); 4].map(|()| Arc::clone(&world));
        let beside = [
            tokio::spawn(async move { first.disturb_network().await }),
            tokio::spawn(async move { second.publish_all().await }),
            tokio::spawn(async move { third.run_tasks().await }),
            tokio::spawn(async move { fourth.end_silence().await }),
        ];
        tokio::select! { biased;
            () = world.shared.circles.noticed() => panic!("calls without end at one instant"),
            () = world.live() => {}
        }
        for task in beside {
            task.abort();
            if let Err(error) = task.await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        world.check_end().await;
        let story = world.shared.story.digest();
        // The rules hold what they share with the world.
        world.emulator.faults().clear();
        let shared = Arc::clone(&world.shared);
        drop(world);
        let shared = Arc::into_inner(shared).expect("nobody else has it");
        let counts = shared.chance.into_inner().unwrap().into_counts();
        Run { counts, story }
    })
}

impl World {
    fn new(seed: u64, bug: Option<Bug>) -> Self {
        let started = Instant::now();
        let mut chance = chance(seed, bug.is_some());
        let plan = Plan::new(&mut chance, bug.is_some());
        if chance.is_quiet() {
            chance.count("a quiet run");
        }
        if plan.exactly_once {
            chance.count("an exactly-once subscription");
        }
        if plan.marks {
            chance.count("a host that marks its commits");
        }
        if plan.tasks == crate::plan::Tasks::ByKey && !plan.publish_staged {
            chance.count("a flushing host with tasks by key");
        }
        let story = Story::begin(started, std::env::var_os("SEED").is_some());
        story.tell(format_args!("{plan:?}"));
        let shared = Arc::new(Shared {
            truth: Mutex::new(Truth::new(plan.clone())),
            plan: plan.clone(),
            chance: Mutex::new(chance),
            story,
            silent: Mutex::default(),
            circles: Circles::begin(started),
        });
        let faults = trouble::rules(&shared).into_iter();
        let emulator = Emulator::builder()
            .faults(faults.fold(FaultPlan::new(), FaultPlan::rule))
            .wall_clock(noon())
            .task_names_kept(NAMES_KEPT)
            .operations_take(Duration::from_millis(300))
            .request_history(1)
            .response_messages(RESPONSE)
            .start();
        let disk = SimulatedDisk::new();
        if bug == Some(Bug::SyncsLie) {
            disk.lie_about_syncs();
        }
        Self {
            shared,
            plan,
            emulator,
            disk,
            bug,
            started,
        }
    }

    pub(crate) fn chance(&self) -> MutexGuard<'_, Chance> {
        self.shared.chance.lock().unwrap()
    }

    pub(crate) fn truth(&self) -> MutexGuard<'_, Truth> {
        self.shared.truth.lock().unwrap()
    }

    pub(crate) fn count(&self, what: &'static str) {
        self.tell(format_args!("{what}"));
        self.chance().count(what);
    }

    pub(crate) fn tell(&self, what: fmt::Arguments<'_>) {
        self.shared.story.tell(what);
    }

    /// Sees what the servers did, and holds it to the laws.
    pub(crate) fn look(&self) {
        let seen = self.emulator.observe();
        self.truth().look(&seen);
    }

    /// Whether every message is acknowledged.
    pub(crate) fn is_drained(&self) -> bool {
        let seen = self.emulator.observe();
        let record = seen.subscription(SUBSCRIPTION);
        record.acked_ids().len() == self.plan.messages
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.chance().is_calm()
    }

    async fn calm_down(&self) {
        if self.is_calm() {
            return;
        }
        self.tell(format_args!("calm"));
        self.chance().calm_down();
        self.disk.heal();
        self.emulator.refuse_connections(false).await.unwrap();
    }

    /// One host after the other, until everything is done.
    async fn live(self: &Arc<Self>) {
        let calm_at = self.started + self.plan.troubled;
        loop {
            if Instant::now() >= calm_at {
                self.calm_down().await;
            }
            let calm = self.is_calm();
            let host = match Host::start(self).await {
                Ok(host) => host,
                Err(ended) => {
                    assert!(!calm, "a host cannot start: {ended:?}");
                    self.after_death(ended).await;
                    continue;
                }
            };
            if self.lead(host, calm_at).await {
                return;
            }
        }
    }

    /// The life of a host. Answers whether everything is done.
    async fn lead(&self, mut host: Host<'_>, calm_at: Instant) -> bool {
        let fresh = self.is_calm();
        let life = self.chance().millis(300..30_000);
        let dies = !fresh && self.chance().strikes(|rates| rates.end);
        let until = if dies {
            calm_at.min(Instant::now() + life)
        } else {
            calm_at
        };
        let ended = {
            let living = std::pin::pin!(host.live());
            let mut living = living;
            let ended = if fresh {
                None
            } else {
                tokio::select! { biased;
                    ended = &mut living => Some(ended),
                    () = sleep_until(until) => None,
                }
            };
            match ended {
                Some(ended) => Some(ended),
                None if dies && until < calm_at => None,
                None => {
                    self.calm_down().await;
                    let rest = timeout(RECOVERY, living).await;
                    Some(rest.expect("everything is done in time"))
                }
            }
        };
        self.look();
        match ended {
            Some(Ok(())) => {
                host.finish().await;
                return true;
            }
            Some(Err(ended)) => {
                assert!(!fresh, "without any fault: {ended:?}");
                host.end(ended).await;
            }
            None => {
                self.count("death at any time");
                host.end(Ended::Died).await;
            }
        }
        false
    }

    /// The time until the next host.
    pub(crate) async fn after_death(&self, ended: Ended) {
        self.tell(format_args!("{ended:?}"));
        self.look();
        let mut pause = self.chance().millis(0..6_000);
        let hours = self.plan.tasks.staged() && !self.truth().state_lost;
        if hours && self.chance().strikes(|rates| rates.hours) {
            self.count("a restart after hours");
            self.truth().hours = true;
            pause = Duration::from_secs(2 * 3_600);
        }
        sleep(pause).await;
        self.look();
        let may_lose = {
            let truth = self.truth();
            !truth.hours && !truth.lives_on_the_state()
        };
        if may_lose && self.chance().strikes(|rates| rates.state_loss) {
            self.count("the state was lost");
            self.disk.clear();
            self.truth().state_lost = true;
        }
    }

    /// The laws of the end.
    async fn check_end(self: &Arc<Self>) {
        if self.chance().one_in(5) {
            self.count("a restart with nothing left to do");
            let before = self.shared.story.digest();
            Host::start(self).await.unwrap().idle().await;
            assert_ne!(before, self.shared.story.digest());
        }
        // What belonged to connections ends with them; a server never hears that a silent one ended.
        sleep(Duration::from_secs(120)).await;
        if self.shared.silent.lock().unwrap().is_some() {
            self.emulator.drop_connections();
            sleep(Duration::from_secs(1)).await;
        }
        self.look();
        let seen = self.emulator.observe();
        assert_eq!(seen.connections, 0, "a connection is left open");
        let tasks = runtime::Handle::current().metrics().num_alive_tasks();
        // The servers' timer.
        assert_eq!(tasks, 1, "something goes on");
        let subscription = seen.subscription(SUBSCRIPTION);
        assert_eq!(subscription.backlog, 0, "not everything is acknowledged");
        let taken: u64 = self.plan.queues().map(|name| seen.queue(&name).taken).sum();
        let truth = self.truth();
        truth.check_outputs();
        let mut chance = self.chance();
        chance.count_many("a lease lapsed", subscription.lapses);
        chance.count_many("a taken name was refused", taken);
        let (copies, again) = (truth.copies.iter(), truth.handed.iter());
        let copies = copies.filter(|copies| copies.len() > 1).count();
        let again = again.filter(|times| **times > 1).count();
        chance.count_many("a copy was published again", copies as u64);
        chance.count_many("a message was handed out again", again as u64);
    }
}
