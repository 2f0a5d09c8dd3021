//! Requests under way, and those that wait to be sent again.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use connector_core::backoff::Backoff;

use super::acks::Lane;
use crate::delivery::DeliveryId;

/// Names one sending of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallId(u64);

/// What a request does to its deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Errand {
    /// Acknowledges them.
    Acknowledge,
    /// Gives them back, to come again after so many seconds.
    Release(u32),
    /// Makes their leases last so many seconds from now.
    Extend(u32),
}

impl Errand {
    const KINDS: usize = 3;

    const fn kind(self) -> usize {
        match self {
            Self::Acknowledge => 0,
            Self::Release(_) => 1,
            Self::Extend(_) => 2,
        }
    }

    /// Requests of one kind under way at once. With 1000 ids each and answers within 50 ms, eight
    /// carry 160,000 acknowledgements a second; extensions and releases are the exception.
    const fn at_once(self) -> usize {
        match self {
            Self::Acknowledge => 8,
            Self::Release(_) | Self::Extend(_) => 4,
        }
    }
}

/// A request: what it does, to which deliveries, and how often it was tried.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) errand: Errand,
    pub(super) ids: Vec<DeliveryId>,
    /// Sendings so far.
    pub(super) attempts: u32,
    /// Where its deliveries' keys are acknowledged in order.
    pub(super) lane: Option<Lane>,
}

/// A request that was answered, with when it was sent.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) call: Call,
    pub(super) sent: Instant,
}

/// How the requests of one kind stand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallsStanding {
    /// Sent and not answered.
    pub(super) in_flight: usize,
    /// Failed, and to be sent again.
    pub(super) waiting: usize,
    /// Sendings of the one that was sent most often.
    pub(super) attempts: u32,
}

/// First delay, factor and cap of sending again: the service's own retry settings for these
/// methods are 100 ms × 1.3 up to 60 s; a lease of 10 s leaves no time for such a cap.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), 2.0, Duration::from_secs(5));

/// All requests, by kind bounded in number. What fails is sent again alone: the others stand.
#[derive(Debug, Default)]
pub(super) struct Calls {
    in_flight: BTreeMap<CallId, (Call, Instant)>,
    waiting: BTreeMap<(Instant, u64), Call>,
    counts: [usize; Errand::KINDS],
    next: u64,
}

impl Calls {
    /// Whether one more request of this kind may leave.
    pub(super) fn has_room(&self, errand: Errand) -> bool {
        self.counts[errand.kind()] < errand.at_once()
    }

    /// A request leaves.
    pub(super) fn send(&mut self, now: Instant, mut call: Call) -> CallId {
        let id = CallId(self.next);
        self.next += 1;
        call.attempts += 1;
        self.counts[call.errand.kind()] += 1;
        self.in_flight.insert(id, (call, now));
        id
    }

    /// Whether a request that is under way gives messages back.
    #[cfg(test)]
    pub(super) fn gives_back(&self, id: CallId) -> bool {
        let call = self.in_flight.get(&id);
        call.is_some_and(|(call, _)| matches!(call.errand, Errand::Release(_)))
    }

    /// A request was answered. `None` when it was answered before.
    pub(super) fn handle_answer(&mut self, id: CallId) -> Option<Answered> {
        let (call, sent) = self.in_flight.remove(&id)?;
        self.counts[call.errand.kind()] -= 1;
        Some(Answered { call, sent })
    }

    /// Sends a request again after its backoff, but not before `least`.
    pub(super) fn retry(&mut self, now: Instant, random: f64, call: Call, least: Option<Duration>) {
        let delay = RETRY
            .jittered(call.attempts.max(1), random)
            .max(least.unwrap_or_default().min(RETRY.delay(u32::MAX)));
        let key = (now + delay, self.next);
        self.next += 1;
        self.waiting.insert(key, call);
    }

    /// A request whose time to be sent again has come, if its kind has room.
    pub(super) fn poll_retry(&mut self, now: Instant) -> Option<Call> {
        let key = self
            .waiting
            .range(..=(now, u64::MAX))
            .find(|(_, call)| self.has_room(call.errand))
            .map(|(key, _)| *key)?;
        self.waiting.remove(&key)
    }

    /// When the next request is sent again; `None` while all that is due waits for room.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waiting
            .iter()
            .find(|(_, call)| self.has_room(call.errand))
            .map(|((at, _), _)| *at)
    }

    /// How the requests of one kind stand.
    pub(super) fn standing(&self, errand: Errand) -> CallsStanding {
        let mut standing = CallsStanding {
            in_flight: self.counts[errand.kind()],
            ..CallsStanding::default()
        };
        for call in self.waiting.values() {
            if call.errand.kind() == errand.kind() {
                standing.waiting += 1;
                standing.attempts = standing.attempts.max(call.attempts);
            }
        }
        for (call, _) in self.in_flight.values() {
            if call.errand.kind() == errand.kind() {
                standing.attempts = standing.attempts.max(call.attempts);
            }
        }
        standing
    }

    /// Requests of one kind that are under way or wait.
    pub(super) fn open(&self, errand: Errand) -> usize {
        let waiting = self.waiting.values();
        let alike = waiting.filter(|call| call.errand.kind() == errand.kind());
        self.counts[errand.kind()] + alike.count()
    }

    /// Whether a request of this lane is under way or waits to be sent again.
    pub(super) fn is_busy(&self, lane: Lane) -> bool {
        let in_flight = self.in_flight.values().map(|(call, _)| call);
        in_flight
            .chain(self.waiting.values())
            .any(|call| call.lane == Some(lane))
    }

    /// The lanes of all requests.
    #[cfg(any(test, fuzzing))]
    pub(super) fn lanes(&self) -> impl Iterator<Item = Lane> + '_ {
        let in_flight = self.in_flight.values().map(|(call, _)| call);
        let calls = in_flight.chain(self.waiting.values());
        calls.filter_map(|call| call.lane)
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn deliveries(&self) -> impl Iterator<Item = (Errand, DeliveryId)> + '_ {
        let in_flight = self.in_flight.values().map(|(call, _)| call);
        in_flight
            .chain(self.waiting.values())
            .flat_map(|call| call.ids.iter().map(|id| (call.errand, *id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(errand: Errand) -> Call {
        Call {
            errand,
            ids: vec![DeliveryId::new(0, 0)],
            attempts: 0,
            lane: None,
        }
    }

    #[test]
    fn each_kind_has_its_own_bound() {
        let now = crate::driver::now();
        let mut calls = Calls::default();
        for _ in 0..8 {
            assert!(calls.has_room(Errand::Acknowledge));
            let _ = calls.send(now, call(Errand::Acknowledge));
        }
        assert!(!calls.has_room(Errand::Acknowledge));
        assert!(calls.has_room(Errand::Extend(30)));
    }

    #[test]
    fn a_failed_request_comes_again_after_a_growing_delay() {
        let now = crate::driver::now();
        let mut calls = Calls::default();
        let mut last = Duration::ZERO;
        let mut again = call(Errand::Acknowledge);
        for _ in 0..6 {
            let id = calls.send(now, again);
            let answered = calls.handle_answer(id).unwrap();
            assert!(calls.handle_answer(id).is_none(), "answered once");
            calls.retry(now, 0.5, answered.call, None);
            let at = calls.next_timeout().unwrap();
            assert!(calls.poll_retry(at - Duration::from_nanos(1)).is_none());
            again = calls.poll_retry(at).unwrap();
            assert!(at - now > last);
            last = at - now;
        }
    }
}
