//! Commits without a result, and what is said about those that take long.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use connector_core::{CheckpointError, Epoch, ledger::CommitId};

use super::{Effect, Machine, Notice, calls::Errand};

/// What is due about a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Its receipt fails: the host asked for a confirmation within this time.
    Unconfirmed {
        commit: CommitId,
        epoch: Epoch,
        after: Duration,
    },
    /// An operator is told that it does not finish.
    Slow { epoch: Epoch, waited: Duration },
}

#[derive(Debug)]
struct Waiting {
    epoch: Epoch,
    since: Instant,
    /// When its receipt fails; `None` once it has, or where nothing was asked for.
    confirm_by: Option<Instant>,
    warn_at: Instant,
}

/// All commits whose deliveries do not all have a verdict.
#[derive(Debug)]
pub(super) struct Commits {
    waiting: BTreeMap<CommitId, Waiting>,
    /// How long a receipt waits for the service.
    confirm: Option<Duration>,
    /// How long a commit may take before an operator is told, once per doubling.
    patience: Duration,
}

impl Commits {
    pub(super) fn new(confirm: Option<Duration>, patience: Duration) -> Self {
        Self {
            waiting: BTreeMap::new(),
            confirm,
            patience,
        }
    }

    /// A commit was called.
    pub(super) fn begin(&mut self, now: Instant, commit: CommitId, epoch: Epoch) {
        let waiting = Waiting {
            epoch,
            since: now,
            confirm_by: self.confirm.and_then(|confirm| now.checked_add(confirm)),
            warn_at: now + self.patience,
        };
        self.waiting.insert(commit, waiting);
    }

    /// A commit has its result. Answers when it was called.
    pub(super) fn finish(&mut self, commit: CommitId) -> Option<Instant> {
        self.waiting.remove(&commit).map(|waiting| waiting.since)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Since when the oldest commit waits.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.since).min()
    }

    fn poll_due(&mut self, now: Instant) -> Option<Due> {
        for (commit, waiting) in &mut self.waiting {
            if waiting.confirm_by.is_some_and(|at| at <= now) {
                waiting.confirm_by = None;
                return Some(Due::Unconfirmed {
                    commit: *commit,
                    epoch: waiting.epoch,
                    after: self.confirm.unwrap_or_default(),
                });
            }
        }
        // One line for all of them: the younger ones wait for the same requests.
        let oldest = self.waiting.values_mut().next()?;
        if oldest.warn_at > now {
            return None;
        }
        let waited = now.saturating_duration_since(oldest.since);
        oldest.warn_at = now + waited.max(self.patience);
        Some(Due::Slow {
            epoch: oldest.epoch,
            waited,
        })
    }

    /// When there is something to say.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let confirm = self.waiting.values().filter_map(|one| one.confirm_by);
        let warn = self.waiting.values().next().map(|oldest| oldest.warn_at);
        confirm.chain(warn).min()
    }
}

impl Machine {
    /// Lets receipts fail whose time is over, and tells of commits that do not finish. The work
    /// goes on either way.
    pub(super) fn check_commits(&mut self, now: Instant) {
        self.poll_committed(now);
        while let Some(due) = self.commits.poll_due(now) {
            match due {
                Due::Unconfirmed {
                    commit,
                    epoch,
                    after,
                } => {
                    let pending = self.deliveries.ledger().unsettled(epoch);
                    self.stats.unconfirmed_commits += 1;
                    self.effects.push_back(Effect::Unconfirmed {
                        commit,
                        error: CheckpointError::Unconfirmed {
                            epoch,
                            pending,
                            after,
                        },
                    });
                }
                Due::Slow { epoch, waited } => {
                    let requests = self.calls.standing(Errand::Acknowledge);
                    self.tell(Notice::CommitSlow {
                        epoch,
                        waited,
                        unconfirmed: self.deliveries.ledger().unsettled(epoch),
                        in_flight: requests.in_flight,
                        failed: requests.waiting,
                        attempts: requests.attempts,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use connector_core::ledger::Ledger;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn commits(numbers: impl IntoIterator<Item = u64>) -> Vec<(CommitId, Epoch)> {
        let mut ledger = Ledger::new();
        let commit = |number| {
            let epoch = Epoch::new(number);
            ledger.add(number);
            ledger.seal(epoch).unwrap();
            (ledger.commit(epoch).unwrap().id, epoch)
        };
        numbers.into_iter().map(commit).collect()
    }

    #[test]
    fn a_receipt_fails_once_and_its_commit_goes_on() {
        let now = crate::driver::now();
        let mut commits_of = Commits::new(Some(SECOND), SECOND * 60);
        let (commit, epoch) = commits([1])[0];
        commits_of.begin(now, commit, epoch);
        assert_eq!(commits_of.next_timeout(), Some(now + SECOND));
        assert_eq!(commits_of.poll_due(now), None);
        let due = commits_of.poll_due(now + SECOND);
        assert!(matches!(due, Some(Due::Unconfirmed { after, .. }) if after == SECOND));
        assert_eq!(commits_of.poll_due(now + SECOND), None);
        assert_eq!(commits_of.finish(commit), Some(now));
        assert_eq!(commits_of.finish(commit), None);
    }

    #[test]
    fn a_commit_that_does_not_finish_is_told_once_per_doubling_and_only_the_oldest() {
        let start = crate::driver::now();
        let mut commits_of = Commits::new(None, SECOND);
        for (commit, epoch) in commits([1, 2, 3]) {
            commits_of.begin(start, commit, epoch);
        }
        let mut told = Vec::new();
        for second in 0..20u32 {
            while let Some(due) = commits_of.poll_due(start + SECOND * second) {
                told.push((second, due));
            }
        }
        let seconds: Vec<u32> = told.iter().map(|(second, _)| *second).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16]);
        for (_, due) in told {
            assert!(matches!(due, Due::Slow { epoch, .. } if epoch == Epoch::new(1)));
        }
    }
}
