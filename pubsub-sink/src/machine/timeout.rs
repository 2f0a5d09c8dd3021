//! Time passing.

use std::time::Instant;

use connector_core::Limits;

use super::{Effect, LONG_WAIT_FOR_ROOM, Machine, Notice, Standing, stall::Finding};
use crate::SinkError;

impl Machine {
    /// When [`handle_timeout`](Self::handle_timeout) is due, if nothing happens before.
    pub(crate) fn poll_timeout(&mut self) -> Option<Instant> {
        self.timers_changed = false;
        let closing = match &self.standing {
            Standing::Closing(deadline) => *deadline,
            Standing::Running => None,
            Standing::Ended(_) => return None,
        };
        [
            closing,
            self.next_room_notice(),
            self.stall.next_look(),
            self.stage_full.next_look(),
            self.dismissed.next_flush(),
            self.quarantine.deadline(self.settings.close_timeout),
            self.requests.next_wake(),
            self.repairs.first().map(|(until, _)| *until),
            self.lingering.first().map(|(due, _, _)| *due),
            self.destinations.next_idle(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Time has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Standing::Closing(Some(deadline)) = &self.standing
            && *deadline <= now
        {
            let (items, within) = (self.owed(), self.settings.close_timeout);
            self.counters.closes_abandoned += 1;
            return self.fail(SinkError::Unsent { items, within });
        }
        self.look_for_a_stall(now);
        self.look_at_the_stage(now);
        if self.is_ended() {
            return;
        }
        self.look_again |= self.dismissed.wake(now);
        self.give_up_commits(now);
        if let Some(since) = self.room_wanted
            && self.next_room_notice().is_some_and(|at| at <= now)
        {
            self.room_told = true;
            let waited = now.saturating_duration_since(since);
            self.effects
                .push_back(Effect::Tell(Notice::WaitingForRoom { waited }));
        }
        self.requests.wake(now);
        self.resume_repairs(now);
        self.end_lingering(now);
        self.destinations.release_idle(now);
    }

    fn look_for_a_stall(&mut self, now: Instant) {
        match self.stall.look(now) {
            Finding::Fine => {}
            Finding::Slow(idle) => self.effects.push_back(Effect::Tell(Notice::Slow {
                idle,
                limit: self.settings.progress_timeout,
                items: self.owed(),
            })),
            Finding::Stalled(after) => {
                let oldest = self.requests.oldest();
                let error = SinkError::Stalled {
                    after,
                    items: self.owed(),
                    topic: oldest
                        .map(|request| self.destinations.get(request.destination).topic.clone()),
                    cause: oldest.and_then(|request| request.last_failure.clone()),
                };
                self.fail(error);
            }
        }
    }

    fn look_at_the_stage(&mut self, now: Instant) {
        let Limits { items, bytes, .. } = self.stage.waiting();
        match self.stage_full.look(now) {
            Finding::Fine => {}
            Finding::Slow(waited) => self.effects.push_back(Effect::Tell(Notice::StageFull {
                waited,
                limit: self.settings.progress_timeout,
                items,
            })),
            Finding::Stalled(after) => self.fail(SinkError::StageFull {
                after,
                items,
                bytes,
            }),
        }
    }

    fn next_room_notice(&self) -> Option<Instant> {
        let since = self.room_wanted.filter(|_| !self.room_told)?;
        since.checked_add(LONG_WAIT_FOR_ROOM)
    }
}
