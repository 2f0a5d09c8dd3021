//! Batches leaving as requests.

use std::time::Instant;

use super::{Effect, Machine, destinations::DestinationId, order::LaneKey};

/// Requests at the service at a time on one connection, over all destinations. It admits 100;
/// beyond it a request's time would run while it queues inside the connection.
const SENDING_PER_CHANNEL: usize = 100;

impl Machine {
    /// Whether a request can leave now.
    pub(super) fn can_send(&self) -> bool {
        self.may_send() && (self.requests.has_due() || !self.ready.is_empty())
    }

    fn may_send(&self) -> bool {
        let most = SENDING_PER_CHANNEL.saturating_mul(self.settings.channels);
        self.requests.sending() < most
    }

    /// The next request to send. Those that were interrupted come first: they are the oldest.
    pub(super) fn send_next(&mut self, now: Instant) -> Option<Effect> {
        if !self.may_send() {
            return None;
        }
        while !self.requests.has_due() {
            let id = self.ready.pop_front()?;
            self.make_request(now, id);
        }
        let (id, request) = self.requests.send_next(now)?;
        let destination = self.destinations.get(request.destination);
        self.counters.requests_sent += 1;
        Some(Effect::Publish {
            id,
            topic: destination.topic.clone(),
            header: destination.header.clone(),
            frames: request.batch.frames(request.runs.current()),
            deadline: self.settings.retry.deadlines.delay(request.attempts),
        })
    }

    /// Makes one request of the destination's next lane, and queues both again if they have more.
    fn make_request(&mut self, now: Instant, id: DestinationId) {
        let destination = self.destinations.get_mut(id);
        destination.queued = false;
        if destination.repair.is_some() {
            return;
        }
        let Some(key) = destination.wanting.pop_front() else {
            return;
        };
        let lane = destination.lanes.open(&key);
        lane.queued = false;
        // Whatever queued the lane may have been taken back since: a message of its key may have
        // gone to the failure handler.
        let limit = if key.is_some() {
            1
        } else {
            self.settings.in_flight
        };
        if lane.is_sendable(limit, |_| true) {
            let since = lane
                .closed
                .is_empty()
                .then(|| lane.open.as_ref().map(|open| open.since))
                .flatten();
            if let Some(batch) = lane.take() {
                lane.in_flight += 1;
                destination.in_flight += 1;
                self.requests.add(id, key.clone(), batch);
            }
            if let Some(since) = since {
                self.forget_linger(since, id, &key);
            }
        }
        self.enqueue(now, id, &key);
    }

    /// Queues the lanes whose open batch has waited long enough for company.
    pub(super) fn end_lingering(&mut self, now: Instant) {
        while let Some((due, id, key)) = self.lingering.first()
            && *due <= now
        {
            let (id, key) = (*id, key.clone());
            self.lingering.pop_first();
            self.enqueue(now, id, &key);
        }
    }

    /// The open batch that was begun at `since` waits no longer.
    pub(super) fn forget_linger(&mut self, since: Instant, id: DestinationId, key: &LaneKey) {
        if !self.lingering.is_empty()
            && let Some(due) = since.checked_add(self.settings.linger)
        {
            self.lingering.remove(&(due, id, key.clone()));
        }
    }
}
