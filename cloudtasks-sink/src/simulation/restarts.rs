//! Processes that die, sleep, go on as zombies, and begin again.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use connector_core::{Epoch, Limits, Restored};

use super::Violation;
use super::bugs::Bug;
use super::chance::task_id;
use super::client::Client;
use super::world::{Event, Progress, WINDOW, World};
use crate::builder::restored;
use crate::machine::{Machine, RetryBudget, Settings, StagedSettings};
use crate::options::Options;

impl World {
    /// The owner dies, or is replaced while it sleeps and goes on later.
    pub(super) fn crash(&mut self) {
        let Some(id) = self.owner.take() else { return };
        self.chance.count("a crash");
        if self.truth.staged && self.chance.strikes(|rates| rates.zombie) {
            self.chance.count("a process went on after it was replaced");
            let after = self.chance.millis(1_000..1_500_000);
            self.schedule(after, Event::Dies { client: id });
        } else {
            self.clients.remove(&id);
        }
        let most = if self.chance.strikes(|rates| rates.long_stop) {
            4 * 1_000_000
        } else {
            20_000
        };
        let after = self.chance.millis(1..most);
        self.schedule(after, Event::Restart);
    }

    pub(super) fn restart(&mut self) -> Result<(), Violation> {
        if self.owner.is_some() {
            return Ok(());
        }
        self.incarnations += 1;
        let id = self.incarnations;
        let (now, wall) = (self.monotonic(), self.wall());
        let mut states = Vec::new();
        let mut newest = None;
        if let Some(durable) = &mut self.durable {
            let state = durable.opened();
            let untouched = durable.progress == Progress::Saved;
            let settled = durable.progress == Progress::Settled;
            if settled {
                self.chance.count("a settled state was restored");
            } else if !state.tasks().is_empty() {
                self.chance.count("a state that names tasks was restored");
                if untouched {
                    self.chance.count("an untouched state was restored");
                }
            }
            if untouched && self.bug != Some(Bug::NoMarkBeforeCommits) {
                // Before the machine, which commits by itself.
                durable.progress = Progress::Committing;
            }
            newest = Some(durable.epoch);
            let restored = Restored::new(durable.epoch, state)
                .settled(settled)
                .committing(!untouched);
            if self.chance.strikes(|rates| rates.twin) {
                self.chance.count("a state was restored twice");
                states.push(restored.clone());
            }
            states.push(restored);
            self.position = durable.position;
        } else {
            self.position = 0;
        }
        let settings = self.settings();
        let mut machine = Machine::new(settings, newest);
        if let Some(batch) = self.batch {
            machine = machine.batching(batch, format!("incarnation-{id}"));
        }
        let mut commits = BTreeMap::new();
        if self.truth.staged {
            if self.bug == Some(Bug::RestoreForgets) {
                states.clear();
            }
            let mut tasks =
                restored::tasks(states, now, wall, WINDOW, true).map_err(|e| e.to_string())?;
            match self.bug {
                Some(Bug::QuarantineForgotten) => tasks.kept.clear(),
                Some(Bug::NamesRemade) => self.remake_names(&mut tasks.tasks),
                _ => {}
            }
            let staged = StagedSettings {
                window: WINDOW,
                stage: self.stage,
                quarantine: Limits::items(10_000),
            };
            let commit;
            (machine, commit) = machine.staging(now, wall, staged, newest, tasks);
            commits.extend(commit.map(|commit| (commit, newest.unwrap_or_default())));
        }
        machine.check_invariants();
        let held = machine.held();
        let client = Client {
            machine,
            held,
            snapshots: BTreeMap::new(),
            commits,
            resolved: BTreeSet::new(),
            handled: Vec::new(),
        };
        self.clients.insert(id, client);
        self.owner = Some(id);
        // Numbers are never used again, not even those of cuts that nobody saved.
        self.epoch = self.epoch.max(newest.unwrap_or(Epoch::default()));
        self.run_client(id)
    }

    fn remake_names(
        &mut self,
        tasks: &mut [(crate::machine::Create, crate::machine::Release, bool)],
    ) {
        for (create, _, _) in tasks {
            let number = super::truth::number(&create.request.task());
            let name = format!(
                "{}/tasks/{}",
                create.queue.as_str(),
                task_id(&mut self.chance)
            );
            let task = crate::Task::from(Self::encoded(number, self.truth.kinds[number]));
            create.request = task.into_request(&create.queue, name);
            let task = crate::state::StagedTask {
                queue: create.queue.clone(),
                task: create.request.task(),
                named: create.named,
                since: self.wall(),
                released: true,
            };
            // What the mistake stages is not what is looked at.
            let state = crate::SinkState::staged("0", vec![task], Vec::new());
            self.truth.saved(&state);
        }
    }

    fn settings(&self) -> Settings {
        let millis = Duration::from_millis;
        Settings {
            queue_looks: false,
            streams: 4,
            transient: RetryBudget::new(u32::MAX, millis(100), millis(5_000)),
            missing: RetryBudget::new(u32::MAX, millis(500), millis(2_000)),
            // Longer than a flushing sink stands still here; short enough for what waits for a
            // checkpoint that never comes.
            progress_timeout: if self.truth.staged {
                Duration::from_secs(60)
            } else {
                Duration::from_secs(360_000)
            },
            max_consecutive_rejections: None::<NonZeroU32>,
            ..Options::default().machine()
        }
    }

    /// The machine on which everything of ours runs sleeps.
    pub(super) fn sleep(&mut self) {
        self.chance.count("a machine slept");
        let time = self.chance.millis(1_000..1_500_000);
        self.awake_at = self.t + time;
        // Some clocks stop meanwhile.
        if self.chance.one_in(2) {
            self.stopped = time;
        }
    }
}
