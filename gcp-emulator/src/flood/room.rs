//! How many more messages the pull streams may send.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
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
    open: BTreeMap<u64, Part>,
    next: u64,
    rate: Option<NonZeroU32>,
    began: Option<Duration>,
    sent: u64,
}

/// The part of one stream.
#[derive(Debug)]
struct Part {
    /// What its client allows; `None` for no bound.
    limit: Option<u64>,
    out: u64,
}

/// An open stream. Dropped, it takes back what its client allowed and what it still had out, however
/// its call or its connection ended.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    room: &'a Room,
    number: u64,
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
    pub(super) fn new(rate: Option<NonZeroU32>) -> Self {
        let state = State {
            open: BTreeMap::new(),
            next: 0,
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
    pub(super) fn open(&self, limit: u64) -> Stream<'_> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let limit = (limit > 0).then_some(limit);
        state.open.insert(number, Part { limit, out: 0 });
        Stream { room: self, number }
    }

    /// So many ids were acknowledged or given back. Requests are counted and not read, so nobody
    /// knows which streams the ids came by: each is taken to have got some in proportion to what it
    /// has out. The sum, which is what room depends on, is exact while no stream ends.
    pub(super) fn give(&self, messages: u64) {
        let mut state = self.lock();
        let mut out = state.out();
        let mut left = messages.min(out);
        for part in state.open.values_mut() {
            let share = left.saturating_mul(part.out).checked_div(out).unwrap_or(0);
            out -= part.out;
            part.out -= share;
            left -= share;
        }
        drop(state);
        self.wake.notify_waiters();
    }

    /// Something is given back. To be enabled before [`take`](Stream::take), or it may be missed.
    pub(super) fn given(&self) -> Notified<'_> {
        self.wake.notified()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn out(&self) -> u64 {
        self.open.values().map(|part| part.out).sum()
    }

    /// What the clients of all open streams allow together.
    fn limit(&self) -> Option<u64> {
        self.open.values().try_fold(0_u64, |sum, part| {
            part.limit.map(|limit| sum.saturating_add(limit))
        })
    }
}

impl Stream<'_> {
    /// Takes room for `messages`, if there is any at `now`, a time on the server's own clock.
    pub(super) fn take(&self, messages: u64, now: Duration) -> Turn {
        let mut state = self.room.lock();
        let admitted = state.limit().map(|limit| limit.max(messages));
        if admitted.is_some_and(|admitted| state.out() + messages > admitted) {
            return Turn::Later;
        }
        if let Some(rate) = state.rate {
            let began = *state.began.get_or_insert(now);
            let due = began + Duration::from_secs(1).mul_f64(per(state.sent, rate));
            if due > now {
                return Turn::At(due);
            }
        }
        if let Some(part) = state.open.get_mut(&self.number) {
            part.out += messages;
        }
        state.sent += messages;
        Turn::Send
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.room.lock().open.remove(&self.number);
        // What it had out may be what others waited for.
        self.room.wake.notify_waiters();
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a pace, exact enough for some 10^15 messages"
)]
fn per(sent: u64, rate: NonZeroU32) -> f64 {
    sent as f64 / f64::from(rate.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn no_more_is_out_than_all_streams_together_allow() {
        let room = Room::new(None);
        let (one, other) = (room.open(150), room.open(100));
        assert_eq!(one.take(100, NOW), Turn::Send);
        assert_eq!(other.take(100, NOW), Turn::Send);
        assert_eq!(one.take(100, NOW), Turn::Later);
        room.give(100);
        assert_eq!(one.take(100, NOW), Turn::Send);
        room.give(1_000);
        assert_eq!(one.take(100, NOW), Turn::Send);
        assert_eq!(other.take(100, NOW), Turn::Send);
        assert_eq!(other.take(100, NOW), Turn::Later);
    }

    #[test]
    fn a_stream_that_ends_takes_back_its_limit_and_what_it_had_out() {
        let room = Room::new(None);
        let (one, other) = (room.open(200), room.open(300));
        for stream in [&one, &one, &other, &other] {
            assert_eq!(stream.take(100, NOW), Turn::Send);
        }
        // A quarter of each: 150 stay with one of them, and 150 with the other.
        room.give(100);
        drop(one);
        assert_eq!(other.take(100, NOW), Turn::Send);
        assert_eq!(other.take(100, NOW), Turn::Later, "250 of 300 are out");
        drop(other);
        let next = room.open(100);
        assert_eq!(next.take(100, NOW), Turn::Send);
        assert_eq!(next.take(100, NOW), Turn::Later);
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_the_end_of_another_stream() {
        let room = Room::new(None);
        let (one, other) = (room.open(100), room.open(100));
        assert_eq!(one.take(200, NOW), Turn::Send);
        let given = room.given();
        tokio::pin!(given);
        given.as_mut().enable();
        assert_eq!(other.take(100, NOW), Turn::Later);
        drop(one);
        given.await;
        assert_eq!(other.take(100, NOW), Turn::Send);
    }

    #[test]
    fn a_limit_below_one_response_still_gets_one() {
        let room = Room::new(None);
        let stream = room.open(10);
        assert_eq!(stream.take(100, NOW), Turn::Send);
        assert_eq!(stream.take(100, NOW), Turn::Later);
    }

    #[test]
    fn the_pace_is_kept() {
        let room = Room::new(NonZeroU32::new(1000));
        let stream = room.open(0);
        assert_eq!(stream.take(100, NOW), Turn::Send);
        let due = NOW + Duration::from_millis(100);
        assert_eq!(stream.take(100, NOW), Turn::At(due));
        assert_eq!(stream.take(100, due), Turn::Send);
    }
}
