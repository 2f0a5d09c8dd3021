//! How many more messages the pull streams may send.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, futures::Notified};

/// Flow control over all streams, and the pace.
#[derive(Debug)]
pub(super) struct Room {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Debug)]
struct State {
    /// What the clients of all open streams allow together; `None` for no bound.
    limits: Vec<(u64, Option<u64>)>,
    next: u64,
    out: u64,
    rate: Option<u32>,
    began: Option<Duration>,
    sent: u64,
}

/// What a stream that wants to send is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Send,
    /// Nothing before this time.
    At(Duration),
    /// Nothing before something is acknowledged.
    Later,
}

impl Room {
    pub(super) fn new(rate: Option<u32>) -> Self {
        let state = State {
            limits: Vec::new(),
            next: 0,
            out: 0,
            rate,
            began: None,
            sent: 0,
        };
        Self {
            state: Mutex::new(state),
            wake: Notify::new(),
        }
    }

    /// A stream opened whose client allows so many messages outstanding; 0 means any number.
    pub(super) fn open(&self, limit: u64) -> u64 {
        let mut state = self.lock();
        let stream = state.next;
        state.next += 1;
        state.limits.push((stream, (limit > 0).then_some(limit)));
        stream
    }

    pub(super) fn close(&self, stream: u64) {
        self.lock().limits.retain(|(other, _)| *other != stream);
    }

    /// Takes room for `messages`, if there is any at `now`, a time on the server's own clock.
    pub(super) fn take(&self, messages: u64, now: Duration) -> Turn {
        let mut state = self.lock();
        let limit = state.limits.iter().try_fold(0_u64, |sum, (_, limit)| {
            limit.map(|limit| sum.saturating_add(limit))
        });
        if limit.is_some_and(|limit| state.out + messages > limit.max(messages)) {
            return Turn::Later;
        }
        if let Some(rate) = state.rate {
            let began = *state.began.get_or_insert(now);
            let due = began + Duration::from_secs(1).mul_f64(per(state.sent, rate));
            if due > now {
                return Turn::At(due);
            }
        }
        state.out += messages;
        state.sent += messages;
        Turn::Send
    }

    /// So many ids were acknowledged or given back.
    pub(super) fn give(&self, messages: u64) {
        let mut state = self.lock();
        state.out = state.out.saturating_sub(messages);
        drop(state);
        self.wake.notify_waiters();
    }

    /// Something is given back. To be enabled before [`take`](Self::take), or it may be missed.
    pub(super) fn given(&self) -> Notified<'_> {
        self.wake.notified()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a pace, exact enough for some 10^15 messages"
)]
fn per(sent: u64, rate: u32) -> f64 {
    sent as f64 / f64::from(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_out_than_all_streams_together_allow() {
        let room = Room::new(None);
        let now = Duration::ZERO;
        let one = room.open(150);
        room.open(100);
        assert_eq!(room.take(100, now), Turn::Send);
        assert_eq!(room.take(100, now), Turn::Send);
        assert_eq!(room.take(100, now), Turn::Later);
        room.give(100);
        assert_eq!(room.take(100, now), Turn::Send);
        room.give(200);
        room.close(one);
        assert_eq!(room.take(100, now), Turn::Send);
        assert_eq!(room.take(100, now), Turn::Later);
    }

    #[test]
    fn a_limit_below_one_response_still_gets_one() {
        let room = Room::new(None);
        room.open(10);
        assert_eq!(room.take(100, Duration::ZERO), Turn::Send);
        assert_eq!(room.take(100, Duration::ZERO), Turn::Later);
    }

    #[test]
    fn the_pace_is_kept() {
        let room = Room::new(Some(1000));
        room.open(0);
        let now = Duration::ZERO;
        assert_eq!(room.take(100, now), Turn::Send);
        let due = now + Duration::from_millis(100);
        assert_eq!(room.take(100, now), Turn::At(due));
        assert_eq!(room.take(100, due), Turn::Send);
    }
}
