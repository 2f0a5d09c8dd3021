//! The host: reads, cuts, saves, commits and marks.

use connector_core::{Epoch, Limits, Rejected, RejectedReason};

use super::Violation;
use super::bugs::Bug;
use super::chance::task_id;
use super::truth::Kind;
use super::world::{Durable, Event, Progress, World};
use crate::machine::Create;
use crate::naming::Named;
use crate::state::{CONNECTOR, SinkState};

impl World {
    /// The host has a turn.
    pub(super) fn host_acts(&mut self) -> Result<(), Violation> {
        let next = self.chance.millis(200..8_000);
        self.schedule(next, Event::Host);
        let Some(id) = self.owner else { return Ok(()) };
        if self.chance.strikes(|rates| rates.crash) {
            self.crash();
            return Ok(());
        }
        for _ in 0..=self.chance.random().u32(..6) {
            if self.position == self.truth.kinds.len() {
                break;
            }
            let Some(client) = self.clients.get(&id) else {
                return Ok(());
            };
            if !self.stage.admits(client.machine.held()) {
                self.chance.count("the host waited for room");
                break;
            }
            self.feed(id)?;
        }
        self.run_client(id)?;
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(());
        };
        let wanted = client.machine.wants_checkpoint();
        if wanted {
            self.chance.count("a checkpoint was asked for");
        }
        // A host that is deaf to the wish for a while.
        let hears = self.chance.is_calm() || !self.chance.one_in(4);
        if (wanted && hears) || self.chance.one_in(5) {
            self.cut(id)?;
        }
        self.run_client(id)
    }

    fn feed(&mut self, id: u64) -> Result<(), Violation> {
        let number = self.position;
        self.position += 1;
        let kind = self.truth.kinds[number];
        let queue = self.queues[number % 2].clone();
        let named = if self.truth.staged || self.minted {
            Named::Minted
        } else {
            Named::ByService
        };
        let name = match named {
            Named::ByService => String::new(),
            Named::Minted | Named::ByKey => {
                format!("{}/tasks/{}", queue.as_str(), task_id(&mut self.chance))
            }
        };
        let task = crate::Task::from(Self::encoded(number, kind));
        let request = task.into_request(&queue, name);
        let now = self.monotonic();
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(());
        };
        let taken = if kind == Kind::Door {
            let bytes = request.task_len();
            client.held = sum(client.held, Limits::new(1, bytes));
            let rejected = Rejected::new(CONNECTOR, queue.as_str(), RejectedReason::Limit);
            client
                .machine
                .reject(now, rejected.payload(request.task()), false)
        } else {
            client.held = sum(client.held, Limits::new(1, request.bytes.len()));
            let create = Create {
                queue,
                request,
                named,
            };
            client.machine.accept(now, create, false)
        };
        client.machine.check_invariants();
        taken.map(drop).map_err(|error| error.to_string())
    }

    /// Takes a checkpoint.
    pub(super) fn cut(&mut self, id: u64) -> Result<(), Violation> {
        self.epoch = self.epoch.next();
        let (epoch, position) = (self.epoch, self.position);
        let (now, wall) = (self.monotonic(), self.wall());
        let forgets = self.bug == Some(Bug::StateWithoutSettling);
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(());
        };
        client.machine.handle_time_of_day(wall);
        let sealed = client.machine.snapshot(now, epoch);
        client.machine.check_invariants();
        sealed.map_err(|error| error.to_string())?;
        let state = match client.machine.saved_tasks() {
            Some((mut tasks, kept)) => {
                if forgets {
                    tasks.retain(|task| !task.released);
                }
                SinkState::staged("0", tasks, kept)
            }
            None => SinkState::flushed("0"),
        };
        client.snapshots.insert(epoch, (position, state.clone()));
        self.commits_at_cut.insert(epoch, self.commits);
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(());
        };
        if self.bug == Some(Bug::CommitAtSeal) {
            let commit = client.machine.commit(epoch).map_err(|e| e.to_string())?;
            client.commits.insert(commit, epoch);
        }
        if self.bug == Some(Bug::SavedAtCut) {
            self.save(id, epoch, position, state);
        }
        if self.chance.strikes(|rates| rates.abort) {
            self.abort(id, epoch);
        }
        Ok(())
    }

    fn abort(&mut self, id: u64, epoch: Epoch) {
        self.chance.count("a checkpoint was aborted");
        self.aborted.insert(epoch);
        let leaks = self.bug == Some(Bug::AbortCommits);
        if let Some(client) = self.clients.get_mut(&id) {
            if leaks && let Ok(commit) = client.machine.commit(epoch) {
                client.commits.insert(commit, epoch);
            }
            client.machine.abort(epoch);
            client.machine.check_invariants();
        }
    }

    /// The state is on its way to the disk.
    pub(super) fn save(&mut self, client: u64, epoch: Epoch, position: usize, state: SinkState) {
        let most = if self.chance.one_in(5) { 30_000 } else { 500 };
        let after = self.chance.millis(1..most);
        let saved = Durable {
            epoch,
            position,
            // As a disk has it.
            state: postcard::to_stdvec(&state).expect("it encodes"),
            progress: Progress::Saved,
            commits: self.commits_at_cut.get(&epoch).copied().unwrap_or_default(),
        };
        self.schedule(after, Event::Saved { client, saved });
    }

    /// The disk has answered.
    pub(super) fn saved(&mut self, id: u64, saved: Durable) -> Result<(), Violation> {
        let epoch = saved.epoch;
        // Whoever was replaced writes nothing any more.
        if self.owner != Some(id) {
            return Ok(());
        }
        if self.aborted.contains(&epoch) {
            // Given up while it was on its way: it may still land, and nobody commits or marks it.
            let is_newer = self
                .durable
                .as_ref()
                .is_none_or(|durable| durable.epoch < epoch);
            if is_newer && self.chance.one_in(2) {
                self.truth.saved(&saved.opened());
                self.durable = Some(self.seen_by_marks(saved));
            }
            return Ok(());
        }
        let is_older = self
            .durable
            .as_ref()
            .is_some_and(|durable| durable.epoch >= epoch);
        let fails = self.chance.strikes(|rates| rates.save_trouble);
        let in_secret = fails && self.chance.one_in(2);
        if !is_older && (!fails || in_secret) {
            self.truth.saved(&saved.opened());
            self.durable = Some(self.seen_by_marks(saved));
        }
        if in_secret && !is_older {
            self.chance.count("a save failed though it was durable");
        } else if fails {
            self.chance.count("a save failed");
        }
        if fails || is_older {
            self.abort(id, epoch);
            return self.run_client(id);
        }
        if self.chance.strikes(|rates| rates.skip_commit) {
            self.chance.count("a checkpoint was skipped by the commits");
            return Ok(());
        }
        self.commit(id, epoch)
    }

    /// A state that was cut before the last commit cannot be claimed to be untouched.
    const fn seen_by_marks(&self, mut saved: Durable) -> Durable {
        if self.commits > saved.commits {
            saved.progress = Progress::Committing;
        }
        saved
    }

    fn commit(&mut self, id: u64, epoch: Epoch) -> Result<(), Violation> {
        self.commits += 1;
        if let Some(durable) = &mut self.durable {
            durable.progress = match self.bug {
                Some(Bug::MarkedEarly) => Progress::Settled,
                Some(Bug::NoMarkBeforeCommits) => durable.progress,
                _ => durable.progress.max(Progress::Committing),
            };
        }
        let again = self.chance.one_in(8);
        if again {
            self.chance.count("a commit was repeated");
        }
        for _ in 0..=u32::from(again) {
            let Some(client) = self.clients.get_mut(&id) else {
                return Ok(());
            };
            let commit = client.machine.commit(epoch).map_err(|e| e.to_string())?;
            client.machine.check_invariants();
            client.commits.insert(commit, epoch);
        }
        self.run_client(id)
    }

    /// Everything of an epoch is settled.
    pub(super) fn mark(&mut self, id: u64, epoch: Epoch) {
        if self.owner != Some(id) {
            return;
        }
        if self.chance.strikes(|rates| rates.lose_mark) {
            self.chance.count("a mark was lost");
            return;
        }
        if let Some(durable) = &mut self.durable
            && durable.epoch == epoch
        {
            durable.progress = Progress::Settled;
        }
    }
}

fn sum(a: Limits, b: Limits) -> Limits {
    Limits::new(a.items + b.items, a.bytes + b.bytes)
}
