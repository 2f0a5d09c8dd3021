//! Room for one more record.

use std::task::{Context, Poll, ready};

use connector_core::{
    Cause,
    host::{Admission, Room},
};

use super::PubsubSink;
use crate::{SinkError, clock};

/// Records, and besides each 2 KiB of one, taken for one unit of the host's cooperative budget, of which a task has
/// 128 at a time: a unit stands for an operation with others outside, and a record that only joins a
/// batch is a small part of one. So a host has some 1,000 records before the driver has its turn, and
/// requests are filled; that takes a fraction of a millisecond.
const TURN: usize = 8;

impl<R> PubsubSink<R> {
    pub(super) fn poll_admitted(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        if self.shared.is_ended() {
            return Poll::Ready(Err(self.last_word()));
        }
        // On a current-thread runtime a host that never has to wait would otherwise keep the
        // driver from running until the budget is full.
        if self.turn == 0 {
            ready!(tokio::task::coop::poll_proceed(cx)).made_progress();
            self.turn = TURN;
        }
        let admitted = !self.shared.is_crowded()
            && (self.admitted || self.shared.member.poll_admit(cx).is_ready());
        if !admitted && self.wait_for_room(cx)?.is_pending() {
            return Poll::Pending;
        }
        if std::mem::take(&mut self.waiting) {
            self.shared
                .with(|state| state.machine.stop_awaiting_room(clock::now()))?;
        }
        self.admitted = true;
        Poll::Ready(Ok(()))
    }

    /// There was no room at first sight: registers for whatever may make some, then looks again.
    fn wait_for_room(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, SinkError> {
        self.waiting = true;
        let crowded = self.shared.with(|state| {
            state.room = Some(cx.waker().clone());
            state.machine.await_room(clock::now());
            state.machine.is_crowded()
        })?;
        if self.shared.is_ended() {
            return Err(self.last_word());
        }
        if crowded {
            return Ok(Poll::Pending);
        }
        Ok(self.shared.member.poll_admit(cx))
    }

    /// Uses up the room that `poll_ready` found.
    pub(super) fn take_room(&mut self) -> Result<(), SinkError> {
        if self.shared.is_ended() {
            return Err(self.last_word());
        }
        if self.closing.is_some() || self.closed {
            return Err(SinkError::Closed {
                cause: Cause::new(SinkError::ClosedByHost),
            });
        }
        let admitted = std::mem::take(&mut self.admitted)
            || (!self.shared.is_crowded() && self.shared.member.try_admit());
        self.turn = self.turn.saturating_sub(1);
        if admitted {
            Ok(())
        } else {
            Err(SinkError::NotReady)
        }
    }
}

impl<R> Admission for PubsubSink<R> {
    type Error = SinkError;

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, SinkError>> {
        self.shared.end().register(cx.waker());
        if self.shared.wants_checkpoint() {
            self.shared.with(|state| state.machine.checkpoint_asked())?;
            return Poll::Ready(Ok(Room::CheckpointWanted));
        }
        self.poll_admitted(cx).map_ok(|()| Room::Ready)
    }
}
