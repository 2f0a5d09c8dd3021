//! Commits without a result, and what is said about those that take long.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use connector_core::{CheckpointError, Epoch, ledger::CommitId};

use super::{Effect, Machine, Notice, calls::Errand};

/// This many checkpoints in a row without a commit are no accident: after a single lost notification the
/// next commit makes up for it.
const MISSED: u64 = 3;

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
    /// How long a commit may take before an operator is told, once per doubling; and how long it may be
    /// before one is called.
    patience: Duration,
    uncommitted: Option<Uncommitted>,
}

/// The checkpoints since the last commit that something waits for.
#[derive(Debug)]
struct Uncommitted {
    /// When the first of them was taken.
    since: Instant,
    checkpoints: u64,
    told: bool,
}

impl Commits {
    pub(super) fn new(confirm: Option<Duration>, patience: Duration) -> Self {
        Self {
            waiting: BTreeMap::new(),
            confirm,
            patience,
            uncommitted: None,
        }
    }

    /// A checkpoint was taken, after which so many deliveries wait for a commit. Says, once until a commit
    /// is called, that none comes.
    pub(super) fn handle_checkpoint(&mut self, now: Instant, waiting: usize) -> Option<Notice> {
        if waiting == 0 && self.uncommitted.is_none() {
            return None;
        }
        let uncommitted = self.uncommitted.get_or_insert(Uncommitted {
            since: now,
            checkpoints: 0,
            told: false,
        });
        uncommitted.checkpoints += 1;
        let waited = now.saturating_duration_since(uncommitted.since);
        if uncommitted.told || uncommitted.checkpoints < MISSED || waited < self.patience {
            return None;
        }
        uncommitted.told = true;
        Some(Notice::NothingCommitted {
            checkpoints: uncommitted.checkpoints,
            waited,
            unacknowledged: waiting,
        })
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
        self.uncommitted = None;
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

    /// What is told at the checkpoints that are taken every `interval`, by their number from 1.
    fn told_at(commits_of: &mut Commits, start: Instant, interval: Duration) -> Vec<u32> {
        (1..=200)
            .filter(|number| {
                let now = start + interval * (number - 1);
                commits_of.handle_checkpoint(now, 5).is_some()
            })
            .collect()
    }

    #[test]
    fn checkpoints_without_a_commit_are_told_once_there_are_three_and_the_patience_is_over() {
        let start = crate::driver::now();
        for (interval, number) in [(1, 61), (10, 7), (29, 4), (30, 3), (1800, 3)] {
            let mut commits_of = Commits::new(None, SECOND * 60);
            let told = told_at(&mut commits_of, start, SECOND * interval);
            assert_eq!(told, [number], "every {interval} s");
        }
    }

    #[test]
    fn a_commit_begins_the_count_again_and_with_it_the_telling() {
        let start = crate::driver::now();
        let mut commits_of = Commits::new(None, SECOND * 60);
        for (number, (commit, epoch)) in (1..).zip(commits(1..10)) {
            let now = start + SECOND * 100 * number;
            assert_eq!(commits_of.handle_checkpoint(now, 5), None);
            assert_eq!(commits_of.handle_checkpoint(now + SECOND * 90, 5), None);
            commits_of.begin(now + SECOND * 90, commit, epoch);
        }
        let later = start + SECOND * 1000;
        assert_eq!(told_at(&mut commits_of, later, SECOND * 30), [3]);
        let (commit, epoch) = commits([1])[0];
        commits_of.begin(later, commit, epoch);
        assert_eq!(told_at(&mut commits_of, later, SECOND * 30), [3]);
    }

    #[test]
    fn checkpoints_that_nothing_waits_for_do_not_count() {
        let start = crate::driver::now();
        let mut commits_of = Commits::new(None, SECOND * 60);
        for number in 0..100 {
            let now = start + SECOND * number;
            assert_eq!(commits_of.handle_checkpoint(now, 0), None);
        }
        let later = start + SECOND * 100;
        assert_eq!(told_at(&mut commits_of, later, SECOND * 10), [7]);
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

    #[test]
    fn a_commit_is_counted_until_it_has_its_result_and_the_oldest_is_known() {
        let start = crate::driver::now();
        let mut commits_of = Commits::new(None, SECOND);
        let waits = |commits_of: &Commits| (commits_of.len(), commits_of.oldest());
        assert_eq!(waits(&commits_of), (0, None));
        let called: Vec<_> = (0u32..)
            .map(|second| start + SECOND * second)
            .zip(commits([1, 2]))
            .collect();
        for (at, (commit, epoch)) in &called {
            commits_of.begin(*at, *commit, *epoch);
        }
        assert_eq!(waits(&commits_of), (2, Some(start)));
        commits_of.finish(called[0].1.0);
        assert_eq!(waits(&commits_of), (1, Some(start + SECOND)));
        commits_of.finish(called[1].1.0);
        assert_eq!(waits(&commits_of), (0, None));
    }
}
