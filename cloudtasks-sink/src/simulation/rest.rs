//! The end of a run: everything has come to rest, and is where it belongs.

use std::collections::BTreeSet;
use std::time::Duration;

use connector_core::Limits;

use super::world::{Durable, Progress, RETENTION, World};
use super::{Counts, Violation, network};
use crate::resolution::Resolution;
use crate::state::KeptReason;

impl World {
    /// The faults are over, every process but one is gone, and nothing is owed.
    pub(super) fn is_at_rest(&mut self) -> bool {
        let late = self.calm_since + 2 * Duration::from_secs(1_500);
        if !self.chance.is_calm() || self.t < late || self.clients.len() > 1 {
            return false;
        }
        let all_read = self.position == self.truth.kinds.len();
        let Some(id) = self.owner.filter(|_| all_read) else {
            return false;
        };
        let Some(client) = self.clients.get(&id) else {
            return false;
        };
        let is_saved = self.durable.as_ref().is_some_and(|durable| {
            durable.position == self.truth.kinds.len() && durable.progress == Progress::Settled
        });
        if client.machine.pending() > 0 || !client.commits.is_empty() || !is_saved {
            return false;
        }
        self.resolve_expired(id)
    }

    /// An operator looks at what expired. Answers whether there was nothing.
    fn resolve_expired(&mut self, id: u64) -> bool {
        let (now, wall) = (self.monotonic(), self.wall());
        let Some(client) = self.clients.get_mut(&id) else {
            return true;
        };
        let kept = client.machine.kept();
        let expired = kept.iter().filter(|task| task.why() == KeptReason::Expired);
        let names: Vec<String> = expired.map(crate::KeptTask::name).collect();
        client.machine.handle_time_of_day(wall);
        for name in &names {
            let resolution = if self.truth.names.contains(name) {
                self.chance.count("an operator marked a task");
                Resolution::MarkCommitted
            } else {
                self.chance.count("an operator forced a task");
                Resolution::Force
            };
            self.chance.count("a task expired");
            let taken = client.machine.resolve(now, name, resolution).expect("kept");
            client.held.items += taken.items;
            client.held.bytes += taken.bytes;
            client.machine.check_invariants();
        }
        names.is_empty()
    }

    pub(super) fn finish(mut self) -> Result<Counts, Violation> {
        if self.gone.values().any(|gone| self.t > *gone + RETENTION) {
            self.chance.count("a name expired");
        }
        let state = self.durable.as_ref().map(Durable::opened);
        let kept = state.iter().flat_map(|state| state.kept().iter());
        let kept: BTreeSet<usize> = network::numbers(kept.map(crate::KeptTask::task))
            .into_iter()
            .collect();
        self.truth.check(&kept)?;
        let owner = self.owner.and_then(|id| self.clients.get(&id));
        if let Some(client) = owner
            && client.held != Limits::default()
        {
            return Err(format!("{:?} is held at rest", client.held));
        }
        Ok(self.chance.into_counts())
    }
}
