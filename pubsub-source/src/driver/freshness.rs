//! How old what is read from a stream may be.

use std::{collections::VecDeque, time::Instant};

/// What a server may have sent that was not read, in windows of a stream or of a connection.
const WINDOWS: u64 = 4;

/// That of a stream, in bytes.
///
/// Flow control lets no more than one window be on its way; the rest is for what proxies between
/// the service and us hold, whose windows nobody tells. A server that lets more than this wait
/// unsent after it has leased it makes leases seem longer than they are, which the acknowledgement
/// of a lapsed lease shows as any other: the message comes again.
const UNREAD: u64 = WINDOWS * gcp_wire::channel::PULL_WINDOW as u64;

/// Marks are so many bytes apart, as a part of what may be unread: there are never more than a few
/// dozen.
const PARTS: u64 = 16;
const STEP: u64 = UNREAD / PARTS;

/// When the messages that are read from a stream can have been leased at the earliest.
///
/// A lease begins when the server sends. What is read was sent after the last instant at which
/// there was nothing to read; and where there always is, as with a backlog, it was sent after so
/// much before it was read as the server could have under way. The backlog may be another stream's
/// on the same connection: then what comes was sent after a look at the stream, which had nothing,
/// behind which the connection has received more than could be under way, and still nothing for
/// this one.
#[derive(Debug)]
pub(super) struct Freshness {
    drained: Instant,
    read: u64,
    /// How much was read by when, oldest first.
    marks: VecDeque<(u64, Instant)>,
    /// What may be unread on the connection, in bytes.
    unread: u64,
    /// How much the connection had received when the stream had nothing, oldest first.
    looks: VecDeque<(u64, Instant)>,
}

impl Freshness {
    /// Of a stream that is opened now, on a connection with this window.
    pub(super) const fn new(now: Instant, window: u32) -> Self {
        Self {
            drained: now,
            read: 0,
            marks: VecDeque::new(),
            unread: WINDOWS * window as u64,
            looks: VecDeque::new(),
        }
    }

    /// There is nothing to read.
    pub(super) fn handle_drained(&mut self, now: Instant) {
        self.drained = now;
        self.marks.clear();
        self.looks.clear();
    }

    /// The stream has nothing, but its connection, which has received so many bytes, may have
    /// something for it.
    pub(super) fn handle_quiet(&mut self, now: Instant, received: u64) {
        while let Some((by, at)) = self.looks.front()
            && by + self.unread < received
        {
            self.drained = self.drained.max(*at);
            self.looks.pop_front();
        }
        let last = self.looks.back().map(|(by, _)| *by);
        if last.is_none_or(|last| last + self.unread / PARTS <= received) {
            self.looks.push_back((received, now));
        }
    }

    /// A response of so many bytes was read. Answers the last instant at which it was certainly not
    /// sent.
    pub(super) fn handle_read(&mut self, now: Instant, bytes: u64) -> Instant {
        let begins = self.read;
        self.read += bytes;
        // The marks that the response is too far behind of; the last of them says most.
        while self
            .marks
            .get(1)
            .is_some_and(|(read, _)| read + UNREAD < begins)
        {
            self.marks.pop_front();
        }
        let since = match self.marks.front() {
            Some((read, at)) if read + UNREAD < begins => self.drained.max(*at),
            Some(_) | None => self.drained,
        };
        let last = self.marks.back().map(|(read, _)| *read);
        if last.is_none_or(|last| last + STEP <= self.read) {
            self.marks.push_back((self.read, now));
        }
        since
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// That of a connection with four streams, and with what reads of them while they open anew.
    const WINDOW: u32 = 17 << 20;

    #[test]
    fn what_comes_beside_a_backlog_of_another_stream_does_not_grow_old() {
        let start = crate::driver::now();
        let mut freshness = Freshness::new(start, WINDOW);
        let (mut now, mut received) = (start, 0);
        // A minute at 100 MB/s, in which the connection is never found empty.
        for _ in 0..600 {
            now += Duration::from_millis(100);
            received += 10_000_000;
            freshness.handle_quiet(now, received);
            assert!(freshness.looks.len() <= 20);
        }
        let since = freshness.handle_read(now, 100);
        let age = now.duration_since(since);
        // Four windows of 17 MiB are 0.71 s.
        assert!(age >= Duration::from_millis(700), "{age:?}");
        assert!(age <= Duration::from_millis(1_000), "{age:?}");
    }

    #[test]
    fn a_look_says_nothing_before_more_has_come_than_could_be_under_way() {
        let start = crate::driver::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut freshness = Freshness::new(start, WINDOW);
        let unread = WINDOWS * u64::from(WINDOW);
        freshness.handle_quiet(at(1), 7);
        freshness.handle_quiet(at(2), unread + 7);
        assert_eq!(freshness.handle_read(at(3), 100), start);
        freshness.handle_quiet(at(4), unread + 8);
        assert_eq!(freshness.handle_read(at(5), 100), at(1));
        freshness.handle_drained(at(6));
        freshness.handle_quiet(at(7), 10 * unread);
        assert_eq!(freshness.handle_read(at(8), 100), at(6));
    }

    #[test]
    fn what_is_read_after_silence_was_sent_after_it() {
        let start = crate::driver::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut freshness = Freshness::new(start, WINDOW);
        assert_eq!(freshness.handle_read(at(5), 100), start);
        freshness.handle_drained(at(7));
        assert_eq!(freshness.handle_read(at(9), 100), at(7));
        assert_eq!(freshness.handle_read(at(90), 100), at(7));
    }

    proptest! {
        #[test]
        fn what_is_read_without_pause_is_as_old_as_what_can_be_under_way(
            sizes in proptest::collection::vec(1u64..4_000_000, 1..200),
        ) {
            let start = crate::driver::now();
            let mut freshness = Freshness::new(start, WINDOW);
            let mut times = vec![(0, start)];
            let (mut now, mut read) = (start, 0);
            for bytes in sizes {
                now += Duration::from_millis(10);
                let since = freshness.handle_read(now, bytes);
                // At that time, less was read than lets the server send this.
                let by_then = times.iter().rev().find(|(_, at)| *at <= since);
                let by_then = by_then.map_or(0, |(read, _)| *read);
                prop_assert!(since == start || by_then + UNREAD < read);
                // And not much less.
                let largest = 4_000_000;
                let known = times.iter().rev().find(|(by, _)| by + UNREAD + STEP + largest < read);
                prop_assert!(known.is_none_or(|(_, at)| *at <= since));
                prop_assert!(freshness.marks.len() <= 20);
                read += bytes;
                times.push((read, now));
            }
        }
    }
}
