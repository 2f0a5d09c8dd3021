//! Cuts: snapshots, commits, flushes and the end, and who waits for what before them.

use std::time::Instant;

use connector_core::ledger::CommitId;
use connector_core::{Cause, CheckpointError, Epoch};

use super::Machine;
use super::barrier::Waiter;
use super::effect::Effect;
use crate::error::SinkError;

/// What the host asks.
impl Machine {
    /// Seals the open epoch; an [`Effect::Snapshot`] follows when everything in it has its verdict
    /// and the failure handler has flushed.
    pub(crate) fn snapshot(&mut self, now: Instant, epoch: Epoch) -> Result<(), CheckpointError> {
        self.phase.check_alive()?;
        self.ledger.seal(epoch)?;
        self.cut_stage(now, epoch);
        self.barriers
            .add(Waiter::Snapshot(epoch), self.inflight.next_id());
        self.advance(now);
        Ok(())
    }

    /// Commits; an [`Effect::Committed`] follows when everything in it has its verdict.
    pub(crate) fn commit(&mut self, epoch: Epoch) -> Result<CommitId, CheckpointError> {
        self.phase.check_alive()?;
        let commit = self.ledger.commit(epoch)?;
        self.release(epoch, &commit);
        self.report_commits();
        Ok(commit.id)
    }

    /// Folds an epoch into the next one; its snapshot resolves to `Aborted`.
    pub(crate) fn abort(&mut self, epoch: Epoch) {
        if self.phase.check_alive().is_ok() && self.ledger.abort(epoch) {
            self.reopen_stage(epoch);
            self.give_up_snapshot(epoch);
        }
    }

    /// Starts waiting until everything accepted so far has its verdict.
    pub(crate) fn start_flush(&mut self, now: Instant) {
        self.cancel_flush();
        if self.phase.has_ended() {
            return;
        }
        self.barriers.add(Waiter::Flush, self.inflight.next_id());
        self.advance(now);
    }

    /// Stops waiting for a flush.
    pub(crate) fn cancel_flush(&mut self) {
        self.barriers.remove(Waiter::Flush);
        self.flushed = None;
    }

    /// The outcome of the flush, once there is one. The end of the sink is its outcome too.
    pub(crate) fn poll_flushed(&mut self) -> Option<Result<(), SinkError>> {
        if let Some(outcome) = self.flushed.take() {
            return Some(outcome.map_err(|source| SinkError::HandlerFlush { source }));
        }
        self.phase.ended()
    }

    /// Lets the sink end as soon as everything accepted has its verdict, and by its budget at the
    /// latest. Asked twice, the first call's deadline stands. Answers whether this was the first.
    pub(crate) fn close(&mut self, now: Instant) -> bool {
        let started = self.phase.start_closing(now, self.settings.close_timeout);
        if started {
            self.barriers.add(Waiter::Close, self.inflight.next_id());
            self.advance(now);
        }
        started
    }

    /// How the sink ended; nothing while it has not.
    pub(crate) fn poll_closed(&mut self) -> Option<Result<(), SinkError>> {
        self.phase.ended()
    }
}

impl Machine {
    /// Lets everyone pass who waits for nothing any more.
    pub(super) fn advance(&mut self, now: Instant) {
        self.report_commits();
        let oldest = self.oldest_for_cut();
        if self.handling.is_durable() {
            while let Some(waiter) = self.barriers.pop_passed(oldest) {
                self.pass(waiter, Ok(()));
            }
        } else {
            let handling = &mut self.handling;
            self.barriers.start_flush(oldest, || handling.flush(now));
        }
        // A snapshot may still wait for an earlier flush of the handler than closing does.
        if self.may_end && self.barriers.is_empty() && self.owes_only_uncommitted() {
            let staged = self.inflight.staged();
            if staged > 0 {
                self.fail(SinkError::Uncommitted { staged });
            } else if self.phase.finish_closing() {
                self.end();
            }
        }
    }

    pub(super) fn pass(&mut self, waiter: Waiter, outcome: Result<(), CheckpointError>) {
        match waiter {
            Waiter::Snapshot(epoch) => {
                let outcome = outcome.map_err(|error| CheckpointError::Incomplete {
                    epoch,
                    cause: Cause::new(error),
                });
                self.effects.push_back(Effect::Snapshot { epoch, outcome });
            }
            Waiter::Flush => {
                self.flushed = Some(outcome);
                self.effects.push_back(Effect::Wake);
            }
            Waiter::Close => match outcome {
                Ok(()) => self.may_end = true,
                Err(source) => self.fail(SinkError::HandlerFlush { source }),
            },
        }
    }

    pub(super) fn give_up_snapshot(&mut self, epoch: Epoch) {
        if self.barriers.remove(Waiter::Snapshot(epoch)) {
            let outcome = Err(CheckpointError::Aborted { epoch });
            self.effects.push_back(Effect::Snapshot { epoch, outcome });
        }
    }

    pub(super) fn report_commits(&mut self) {
        while let Some((commit, committed)) = self.ledger.poll_committed() {
            self.effects.push_back(match self.unconfirmed() {
                Some(error) => Effect::Unconfirmed { commit, error },
                None => Effect::Committed { commit, committed },
            });
        }
    }
}
