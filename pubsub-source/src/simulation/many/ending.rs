//! When a run is over, and how it ends.

use std::time::Duration;

use super::{Violation, event::Event, world::World};

/// The faults end at this time at the latest.
const TROUBLE: Duration = Duration::from_secs(120);

/// After the faults everything must be done within this time: several of the longest leases.
const PATIENCE: Duration = Duration::from_secs(400);

impl World {
    /// Whether the faults are over and everything is settled.
    pub(super) fn is_done(&mut self) -> Result<bool, Violation> {
        let all_published = self.to_publish == 0;
        let since = match self.calm_since {
            Some(since) => since,
            None if self.now >= TROUBLE || (all_published && self.backlog() == 0) => {
                self.chance.calm_down();
                *self.calm_since.insert(self.now)
            }
            None => return Ok(false),
        };
        // Somebody goes on.
        if !self.starting && self.newest().is_none_or(|job| job.ending) {
            self.starting = true;
            self.schedule(Duration::from_secs(1), Event::Start);
        }
        if !all_published || self.starting {
            return Ok(false);
        }
        let waited = self.now - since;
        if !self.all_resume {
            self.resume_once_the_others_have_everything(waited)?;
            return Ok(false);
        }
        let at = self.at();
        let newest = self.newest();
        let drained =
            newest.is_some_and(|job| job.readers.values().all(|reader| reader.is_drained(at)));
        let done = drained && self.backlog() == 0 && self.jobs.len() == 1;
        if !done && waited > 2 * PATIENCE {
            return Err(format!(
                "nothing is lost, but it does not end: backlog {}, {} runs, drained: {drained}",
                self.backlog(),
                self.jobs.len()
            ));
        }
        if done {
            let covered = newest.map(|job| job.covered()).unwrap_or_default();
            self.truth
                .check_no_loss(self.subscriptions.len(), &covered)?;
        }
        Ok(done)
    }

    fn backlog(&self) -> usize {
        let subscriptions = 0..self.subscriptions.len();
        subscriptions.map(|at| self.service.backlog(at)).sum()
    }

    /// What nobody has paused comes out, whoever else is paused.
    fn resume_once_the_others_have_everything(
        &mut self,
        waited: Duration,
    ) -> Result<(), Violation> {
        let splits = self.jobs.values().flat_map(|job| job.readers.values());
        let splits = splits.flat_map(|reader| &reader.splits);
        let paused: Vec<usize> = splits
            .filter(|split| split.paused)
            .map(|split| split.subscription)
            .collect();
        let subscriptions = 0..self.subscriptions.len();
        let waiting: Vec<usize> = subscriptions
            .filter(|at| !paused.contains(at) && self.service.backlog(*at) > 0)
            .collect();
        if waiting.is_empty() {
            if !paused.is_empty() && self.backlog() > 0 {
                self.chance
                    .count("splits stayed paused until the others had everything");
            }
            self.all_resume = true;
        } else if waited > PATIENCE {
            return Err(format!(
                "subscriptions {waiting:?} do not end while {paused:?} are paused"
            ));
        }
        Ok(())
    }

    /// Ends the last run in good order.
    pub(super) fn finish(&mut self) -> Result<(), Violation> {
        self.end(self.runs);
        let limit = self.now + Duration::from_secs(60);
        while !self.jobs.is_empty() {
            if self.now > limit {
                return Err("the sources do not close".to_owned());
            }
            self.step()?;
        }
        Ok(())
    }
}
