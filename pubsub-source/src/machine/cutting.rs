//! Requests, cut from what is due.

use std::time::Instant;

use connector_core::ledger::{Outcome, Place};

use super::{
    CallMethod, Effect, Machine, MessageKey, acks,
    batch::{Marks, Stage},
    calls::{Call, Errand},
    request::RequestBody,
};
use crate::delivery::DeliveryId;

impl Machine {
    /// The next request to send: what failed first, then acknowledgements, releases, extensions.
    pub(super) fn cut(&mut self, now: Instant) -> Option<Effect> {
        while let Some(call) = self.calls.poll_retry(now) {
            if let Some(effect) = self.send_again(now, call) {
                return Some(effect);
            }
        }
        self.cut_acks(now)
            .or_else(|| self.cut_releases(now))
            .or_else(|| self.cut_extensions(now))
    }

    fn cut_acks(&mut self, now: Instant) -> Option<Effect> {
        let room = self.calls.has_room(Errand::Acknowledge);
        if !room || self.acks.is_empty() || self.look_again.is_some() {
            return None;
        }
        let (effect, given_up) = if self.runs.is_some() {
            self.cut_acks_in_lanes(now)
        } else {
            // What waits was looked at, and none of it needs a request.
            (self.cut_acks_in_turn(now), true)
        };
        // No answer will bring the next turn. There may be more to look at, or a closing source may
        // have nothing left to wait for.
        self.look_again = (given_up && effect.is_none()).then_some(now);
        effect
    }

    fn cut_acks_in_turn(&mut self, now: Instant) -> Option<Effect> {
        let mut body = RequestBody::acknowledge(self.subscription.as_str());
        let mut ids = Vec::new();
        let mut late = Vec::new();
        // Of those that are looked at one by one: what lies in runs fills the request.
        let mut looked = 0;
        while looked < acks::PER_TURN && body.room() > 0 {
            if self.start_run(&mut body, &mut ids) {
                continue;
            }
            let Some(next) = self.acks.pop() else { break };
            looked += 1;
            let id = match next {
                acks::Next::Delivery(id) => is_acking(self.deliveries.stage(id)).then_some(id),
                acks::Next::Released(place, key) => self.start_ack(place, key, &mut late),
            };
            let Some(id) = id else { continue };
            let Some(ack_id) = self.deliveries.ack_id(id) else {
                continue;
            };
            if !body.push(ack_id) {
                self.acks.unpop(id, None);
                break;
            }
            ids.push(id);
        }
        self.remember_lapsed(now, late);
        self.send(now, Errand::Acknowledge, ids, body)
    }

    /// Takes released deliveries into a request that lie one after the other, as they mostly do.
    /// Answers whether there were any.
    fn start_run(&mut self, body: &mut RequestBody, ids: &mut Vec<DeliveryId>) -> bool {
        let Some((place, most)) = self.deliveries.expected_run(body.room()) else {
            return false;
        };
        let count = self.acks.pop_run(place, most);
        if count == 0 {
            return false;
        }
        let Some((first, ack_ids)) = self.deliveries.start_run(count) else {
            // Going on without what was just taken out would lose its acknowledgements.
            unreachable!("the run was found in a batch that is held");
        };
        for (at, ack_id) in ack_ids.enumerate() {
            let id = first.after(at);
            if body.push(ack_id) {
                ids.push(id);
            } else {
                // Of very long ids fewer fit than there is room for by their number.
                self.acks.push(id, None);
            }
        }
        true
    }

    /// The next request where a key's messages are acknowledged in order: each key has its lane, and
    /// each lane one request under way. And whether items were looked at that need none.
    fn cut_acks_in_lanes(&mut self, now: Instant) -> (Option<Effect>, bool) {
        let mut late = Vec::new();
        let (mut looked, mut waiting) = (0, 0);
        while looked < acks::PER_TURN
            && let Some((place, key)) = self.acks.poll_released()
        {
            looked += 1;
            if let Some(id) = self.start_ack(place, key, &mut late) {
                let lane = self.lane(id);
                self.acks.push_released(id, lane);
                waiting += 1;
            }
        }
        self.remember_lapsed(now, late);
        (self.cut_a_lane(now), waiting < looked)
    }

    /// The next acknowledgement of the first lane that may send one.
    fn cut_a_lane(&mut self, now: Instant) -> Option<Effect> {
        for lane in self.acks.lanes() {
            if lane.is_some_and(|lane| self.calls.is_busy(lane)) {
                continue;
            }
            let mut body = RequestBody::acknowledge(self.subscription.as_str());
            let mut ids = Vec::new();
            while let Some(id) = self.acks.pop_lane(lane) {
                if !is_acking(self.deliveries.stage(id)) {
                    continue;
                }
                let Some(ack_id) = self.deliveries.ack_id(id) else {
                    continue;
                };
                if !body.push(ack_id) {
                    self.acks.unpop(id, lane);
                    break;
                }
                ids.push(id);
            }
            if !ids.is_empty() {
                self.acks.end_turn(lane);
                let call = Call {
                    errand: Errand::Acknowledge,
                    ids,
                    attempts: 0,
                    lane,
                };
                return Some(self.sent(now, call, body));
            }
        }
        None
    }

    /// The delivery that stands for an item of a committed epoch. An item without one has had its
    /// lease given up: it comes again, and is recognised then.
    fn start_ack(
        &mut self,
        place: Place,
        key: MessageKey,
        late: &mut Vec<MessageKey>,
    ) -> Option<DeliveryId> {
        if let Some(id) = self.deliveries.start_released(place, &key) {
            return Some(id);
        }
        if self.deliveries.settle_place(place, Outcome::Lapsed) {
            self.stats.lapsed += 1;
            late.push(key);
        }
        None
    }

    /// Whether something is to be given back, and may be. A server that has not taken notice of a
    /// half-close delivers what it is given back on the same stream again, at once, and each time
    /// that is another attempt: so it waits until the streams have ended or were dropped.
    pub(super) fn may_release(&self) -> bool {
        !self.releases.is_empty() && !self.streams.are_leaving()
    }

    fn cut_releases(&mut self, now: Instant) -> Option<Effect> {
        if !self.may_release() {
            return None;
        }
        while let Some((&seconds, _)) = self.releases.first_key_value() {
            let errand = Errand::Release(seconds);
            if !self.calls.has_room(errand) {
                return None;
            }
            let mut queue = self.releases.remove(&seconds)?;
            let mut body = RequestBody::modify(self.subscription.as_str(), seconds);
            let mut ids = Vec::new();
            while let Some(id) = queue.pop_front() {
                if self.deliveries.stage(id) != Stage::Releasing {
                    continue;
                }
                let Some(ack_id) = self.deliveries.ack_id(id) else {
                    continue;
                };
                if !body.push(ack_id) {
                    queue.push_front(id);
                    break;
                }
                ids.push(id);
            }
            if !queue.is_empty() {
                self.releases.insert(seconds, queue);
            }
            if !ids.is_empty() {
                return self.send(now, errand, ids, body);
            }
        }
        None
    }

    /// When the next extension is to be cut; an answer makes room first where none is.
    pub(super) fn next_extension(&self) -> Option<Instant> {
        let room = self.calls.has_room(Errand::Extend(0));
        self.leases.next_due().filter(|_| room)
    }

    fn cut_extensions(&mut self, now: Instant) -> Option<Effect> {
        let seconds = u32::try_from(self.lease.as_secs()).unwrap_or(u32::MAX);
        let errand = Errand::Extend(seconds);
        if !self.calls.has_room(errand) {
            return None;
        }
        while let Some(batch) = self.leases.poll_due(now) {
            let held: Vec<DeliveryId> = self
                .deliveries
                .ids_of(batch)
                .filter(|id| self.is_extendable(*id))
                .collect();
            self.leases.enqueue(batch, held);
        }
        if !self.leases.has_queued() {
            return None;
        }
        let mut body = RequestBody::modify(self.subscription.as_str(), seconds);
        let mut ids = Vec::new();
        while let Some(id) = self.leases.pop() {
            if !self.is_extendable(id) {
                self.extended(now, 0.0, &[id], None);
                continue;
            }
            let Some(ack_id) = self.deliveries.ack_id(id) else {
                continue;
            };
            if !body.push(ack_id) {
                self.leases.unpop(id);
                break;
            }
            ids.push(id);
        }
        self.send(now, errand, ids, body)
    }

    /// Whether a delivery's lease is to be kept alive: held, and not over.
    pub(super) fn is_extendable(&self, id: DeliveryId) -> bool {
        let (stage, marks) = self.deliveries.stage_and_marks(id);
        let held = match stage {
            Stage::Buffered | Stage::Out | Stage::Acking | Stage::HostAcking | Stage::ReAcking => {
                true
            }
            Stage::Superseded | Stage::Releasing | Stage::Gone => false,
        };
        held && !marks.has(Marks::LAPSED)
    }

    fn send(
        &mut self,
        now: Instant,
        errand: Errand,
        ids: Vec<DeliveryId>,
        body: RequestBody,
    ) -> Option<Effect> {
        if ids.is_empty() {
            return None;
        }
        let call = Call {
            errand,
            ids,
            attempts: 0,
            lane: None,
        };
        Some(self.sent(now, call, body))
    }

    fn sent(&mut self, now: Instant, call: Call, body: RequestBody) -> Effect {
        let method = match call.errand {
            Errand::Acknowledge => CallMethod::Acknowledge,
            Errand::Release(_) | Errand::Extend(_) => CallMethod::ModifyAckDeadline,
        };
        Effect::Call {
            call: self.calls.send(now, call),
            method,
            body: body.finish(),
        }
    }

    /// Sends what is left of a request again, under the ack ids that hold now.
    fn send_again(&mut self, now: Instant, mut call: Call) -> Option<Effect> {
        let subscription = self.subscription.as_str();
        let mut body = match call.errand {
            Errand::Acknowledge => RequestBody::acknowledge(subscription),
            Errand::Release(seconds) | Errand::Extend(seconds) => {
                RequestBody::modify(subscription, seconds)
            }
        };
        let errand = call.errand;
        let ids = std::mem::take(&mut call.ids);
        for id in ids {
            let wanted = match errand {
                Errand::Acknowledge => is_acking(self.deliveries.stage(id)),
                Errand::Release(_) => self.deliveries.stage(id) == Stage::Releasing,
                Errand::Extend(_) => self.is_extendable(id),
            };
            let fits = wanted
                && self
                    .deliveries
                    .ack_id(id)
                    .is_some_and(|ack_id| body.push(ack_id));
            if fits {
                call.ids.push(id);
                continue;
            }
            // The ids of a request stay the same, or become fewer, so what is wanted fits.
            debug_assert!(!wanted, "a request does not grow");
            if let Errand::Extend(_) = errand {
                self.extended(now, 0.0, &[id], None);
            }
        }
        if call.ids.is_empty() {
            return None;
        }
        self.stats.retried += 1;
        Some(self.sent(now, call, body))
    }
}

/// Whether a delivery's acknowledgement is on its way.
pub(super) fn is_acking(stage: Stage) -> bool {
    match stage {
        Stage::Acking | Stage::HostAcking | Stage::ReAcking => true,
        Stage::Buffered | Stage::Out | Stage::Superseded | Stage::Releasing | Stage::Gone => false,
    }
}
