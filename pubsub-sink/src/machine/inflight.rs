//! Requests without a verdict, and when a failed one is sent again.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use connector_core::{Cause, backoff::Backoff};

use super::{
    Class, Failure, RequestId, batch::Batch, destinations::DestinationId, isolate::Runs,
    order::LaneKey,
};

/// When a failed request is sent again, and for how long in all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Retry {
    /// From the first attempt on. None: for as long as the sink makes progress.
    pub(crate) total: Option<Duration>,
    /// Pauses between attempts.
    pub(crate) delays: Backoff,
    /// Pauses after RESOURCE_EXHAUSTED: a quota refills over a minute, and early attempts count
    /// against it.
    pub(crate) quota_delays: Backoff,
    /// The time each attempt may take.
    pub(crate) deadlines: Backoff,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// At the service.
    Sending,
    /// Failed; the next attempt comes at this time.
    Waiting(Instant),
    /// To be sent as soon as there is room among the requests being sent.
    Due,
    /// Waits for the failure handler's verdict on a message of its ordering key.
    Held,
    /// Waits for its topic to exist.
    Parked,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) destination: DestinationId,
    pub(super) lane: LaneKey,
    pub(super) batch: Batch,
    pub(super) runs: Runs,
    pub(super) phase: Phase,
    /// Attempts to send the current run.
    pub(super) attempts: u32,
    first_sent: Option<Instant>,
    pub(super) last_failure: Option<Cause>,
}

impl Request {
    /// How long the current run has been tried.
    pub(super) fn tried_for(&self, now: Instant) -> Duration {
        self.first_sent
            .map_or(Duration::ZERO, |first| now.saturating_duration_since(first))
    }

    /// When to send again after a failure that may pass; none when that would exceed the budget.
    pub(super) fn next_attempt(
        &self,
        retry: &Retry,
        now: Instant,
        failure: &Failure,
        random: f64,
    ) -> Option<Instant> {
        let delays = match failure.class {
            Class::Exhausted => &retry.quota_delays,
            Class::Transient | Class::Invalid | Class::Missing | Class::Fatal => &retry.delays,
        };
        // What the service asks for is heeded as far as the schedule's own cap: a wish of an hour would
        // hold everything back for one, whatever the outage lasts.
        let wish = failure.retry_after.unwrap_or_default().min(delays.cap());
        let delay = delays.jittered(self.attempts, random).max(wish);
        let spent = self.tried_for(now).saturating_add(delay);
        if retry.total.is_some_and(|total| spent > total) {
            return None;
        }
        now.checked_add(delay)
    }
}

/// All requests without a verdict.
#[derive(Debug, Default)]
pub(super) struct Requests {
    next: u64,
    by_id: BTreeMap<RequestId, Request>,
    sending: usize,
    waiting: BTreeSet<(Instant, RequestId)>,
    due: VecDeque<RequestId>,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Requests at the service.
    pub(super) fn sending(&self) -> usize {
        self.sending
    }

    /// Adds a batch as a request that is due.
    pub(super) fn add(&mut self, destination: DestinationId, lane: LaneKey, batch: Batch) {
        let id = RequestId(self.next);
        self.next += 1;
        let runs = Runs::whole(batch.len());
        let request = Request {
            destination,
            lane,
            batch,
            runs,
            phase: Phase::Due,
            attempts: 0,
            first_sent: None,
            last_failure: None,
        };
        self.by_id.insert(id, request);
        self.due.push_back(id);
    }

    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    pub(super) fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.by_id.get_mut(&id)
    }

    /// The next request to send, which thereby is at the service.
    pub(super) fn send_next(&mut self, now: Instant) -> Option<(RequestId, &Request)> {
        let id = self.due.pop_front()?;
        let request = self.by_id.get_mut(&id)?;
        request.phase = Phase::Sending;
        request.attempts += 1;
        request.first_sent.get_or_insert(now);
        self.sending += 1;
        Some((id, request))
    }

    /// The answer for a request is there. None for a request that is not at the service, which
    /// only an answer after the sink's end can name.
    pub(super) fn answered(&mut self, id: RequestId) -> Option<&mut Request> {
        let request = self.by_id.get_mut(&id)?;
        if request.phase != Phase::Sending {
            return None;
        }
        self.sending -= 1;
        Some(request)
    }

    /// Sends the same bytes again at `at`.
    pub(super) fn wait(&mut self, id: RequestId, at: Instant) {
        if let Some(request) = self.by_id.get_mut(&id) {
            request.phase = Phase::Waiting(at);
            self.waiting.insert((at, id));
        }
    }

    /// Sends the current run, which is another one than before, as soon as possible.
    pub(super) fn renew(&mut self, id: RequestId) {
        if let Some(request) = self.by_id.get_mut(&id) {
            request.attempts = 0;
            request.first_sent = None;
            request.phase = Phase::Due;
            self.due.push_back(id);
        }
    }

    /// Keeps the request back until its key may go on.
    pub(super) fn hold(&mut self, id: RequestId) {
        if let Some(request) = self.by_id.get_mut(&id) {
            request.phase = Phase::Held;
        }
    }

    /// Keeps the request back until its topic exists.
    pub(super) fn park(&mut self, id: RequestId) {
        if let Some(request) = self.by_id.get_mut(&id) {
            request.phase = Phase::Parked;
        }
    }

    /// The destination's topic may exist now: what waited for it is sent, the oldest first.
    pub(super) fn unpark(&mut self, destination: DestinationId) {
        let waiting: Vec<RequestId> = self
            .by_id
            .iter()
            .filter(|(_, request)| {
                request.destination == destination && request.phase == Phase::Parked
            })
            .map(|(id, _)| *id)
            .collect();
        for id in waiting {
            self.renew(id);
        }
    }

    /// Messages that wait for their topic to exist.
    pub(super) fn parked(&self) -> usize {
        self.by_id
            .values()
            .filter(|request| request.phase == Phase::Parked)
            .map(|request| request.runs.rest().len())
            .sum()
    }

    /// Every message of the request has its verdict, or is with the failure handler.
    pub(super) fn remove(&mut self, id: RequestId) -> Option<Request> {
        self.by_id.remove(&id)
    }

    /// Makes due what has waited long enough.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((at, id)) = self.waiting.first().copied()
            && at <= now
        {
            self.waiting.pop_first();
            if let Some(request) = self.by_id.get_mut(&id) {
                request.phase = Phase::Due;
                self.due.push_back(id);
            }
        }
    }

    /// When the next request is to be sent again.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// The request that has been without a verdict for longest.
    pub(super) fn oldest(&self) -> Option<&Request> {
        self.by_id.values().next()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.by_id.iter().map(|(id, request)| (*id, request))
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        let phase = |wanted: fn(&Phase) -> bool| {
            self.by_id
                .values()
                .filter(|request| wanted(&request.phase))
                .count()
        };
        assert_eq!(phase(|p| matches!(p, Phase::Sending)), self.sending);
        assert_eq!(phase(|p| matches!(p, Phase::Due)), self.due.len());
        assert_eq!(
            phase(|p| matches!(p, Phase::Waiting(_))),
            self.waiting.len()
        );
        for request in self.by_id.values() {
            assert!(
                !request.runs.rest().is_empty(),
                "a request without messages is removed"
            );
        }
    }
}
