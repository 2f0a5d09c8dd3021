//! What happened outside: answers of the service and of the failure handler.

use std::{sync::Arc, time::Instant};

use connector_core::{Cause, CheckpointError, Rejected, RejectedReason, Verdict, ledger::Outcome};

use gcp_wire::PublishedIds;

use super::{
    Answer, Class, Effect, Failure, Machine, Notice, RejectionId, RequestId,
    cuts::{Covered, Cut},
    destinations::DestinationId,
    order::LaneKey,
    rejections::Rejection,
};
use crate::{Published, SinkError, staged::Entry};

/// Attempts after which it is worth a warning that a topic takes nothing.
const ATTEMPTS_BEFORE_WARNING: u32 = 4;

impl Machine {
    /// The answer to a request is there. `random` is uniform in `0.0..1.0`.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        id: RequestId,
        answer: Answer,
        random: f64,
    ) {
        if self.is_ended() {
            return;
        }
        let Some(request) = self.requests.answered(id) else {
            return;
        };
        match answer {
            Answer::Stored(ids) => self.stored(now, id, ids),
            Answer::Failed(failure) => {
                // A refusal of several messages says of none that it is at fault, and is divided.
                let divided = failure.class == Class::Invalid && request.runs.current().len() > 1;
                if !divided {
                    self.figures.failed(failure.code);
                }
                match failure.class {
                    Class::Transient | Class::Exhausted => self.retry(now, id, failure, random),
                    Class::Invalid => self.refused(now, id, failure.cause),
                    Class::Missing => self.missing(now, id, failure.cause, random),
                    Class::Fatal => self.end_for(id, |topic| SinkError::Refused {
                        topic,
                        cause: failure.cause,
                    }),
                }
            }
        }
    }

    /// The failure handler's verdict on a record is there.
    pub(crate) fn handle_verdict(
        &mut self,
        now: Instant,
        id: RejectionId,
        verdict: Result<Verdict, CheckpointError>,
    ) {
        let Some(pending) = self.rejections.take(id) else {
            return;
        };
        let rejection = pending.rejection;
        match (verdict, self.staged_at(rejection.place)) {
            (Ok(Verdict::Drop), None) => {
                self.settle(rejection.place, Outcome::Retained);
                self.release(1, rejection.bytes);
            }
            // Its source has forgotten it: it stays in the state, and keeps its room there, until
            // the handler has made it durable.
            (Ok(Verdict::Drop), Some(_)) => {
                self.dismissed.add(rejection.place);
                self.look_again = true;
            }
            // Fail, and whatever verdict a later version adds. Ending the sink over a message that
            // comes from the state would end it again after every restore.
            (Ok(_), Some(staged)) => {
                if !self.keep_aside(&staged, &rejection) {
                    return;
                }
            }
            (Ok(_), None) => {
                let rejected = rejection.rejected;
                return self.fail(SinkError::Rejected {
                    destination: rejected.destination,
                    reason: rejected.reason,
                    cause: rejected.source,
                });
            }
            (Err(error), _) => {
                return self.fail(SinkError::Handler {
                    cause: Cause::new(error),
                });
            }
        }
        if let Some(reply) = rejection.reply {
            let reason = rejection.rejected.reason;
            let cause = rejection.rejected.source;
            self.effects
                .push_back(Effect::Answer(reply, Published::Rejected { reason, cause }));
        }
        if let Some(id) = rejection.destination {
            self.resume_key(now, id, &rejection.key);
            self.destinations.let_go(now, id, 1);
        }
        if let Some(error) = pending.ends {
            return self.fail(error);
        }
        self.progress(now);
    }

    /// The failure handler's flush ended.
    /// `random` is uniform in `0.0..1.0`.
    pub(crate) fn handle_flushed(
        &mut self,
        now: Instant,
        outcome: Result<(), CheckpointError>,
        random: f64,
    ) {
        if self.is_ended() {
            return;
        }
        let covered = self.cuts.end_flush();
        self.look_again = true;
        let cause = outcome.err().map(Cause::new);
        let settled = self.end_dismissal(now, cause.as_ref(), random);
        // Beside a commit that stands still a staged sink's snapshots go on, and a flush that fails is
        // repeated for ever: neither may count as progress of what is committed.
        let stands_still = self.is_staged() && self.owed() > 0;
        let moved = settled > 0 || (!covered.is_empty() && !stands_still);
        let mut closed = false;
        for Covered { id, cut, named } in covered {
            closed |= cut == Cut::Close;
            let resolved = match (&cause, cut) {
                (None, Cut::Snapshot(_) | Cut::Flush | Cut::Close) => Ok(named),
                // The snapshot is not complete; what it covers stays owed to the next one, whose
                // flush covers everything ever handled.
                (Some(cause), Cut::Snapshot(epoch)) => Err(CheckpointError::Incomplete {
                    epoch,
                    cause: cause.clone(),
                }),
                (Some(cause), Cut::Flush | Cut::Close) => {
                    return self.fail(SinkError::Handler {
                        cause: cause.clone(),
                    });
                }
            };
            self.effects.push_back(Effect::Resolve(id, resolved));
        }
        if closed {
            return self.fail(SinkError::ClosedByHost);
        }
        if moved {
            self.progress(now);
        } else {
            self.watch(now);
        }
    }

    /// What the handler took over of the stage is durable there, or is owed to its next flush.
    /// Answers how many messages thereby have their verdict.
    fn end_dismissal(&mut self, now: Instant, failed: Option<&Cause>, random: f64) -> usize {
        let durable = self.dismissed.end_flush(now, failed.is_none(), random);
        let settled = durable.len();
        for place in durable {
            let bytes = self.staged_at(place).map_or(0, |staged| staged.bytes);
            self.settle(place, Outcome::Retained);
            self.release(1, bytes);
        }
        if let Some(cause) = failed
            && self.dismissed.len() > 0
        {
            self.effects
                .push_back(Effect::Tell(Notice::HandlerUnflushed {
                    items: self.dismissed.len(),
                    cause: cause.clone(),
                }));
        }
        settled
    }

    fn stored(&mut self, now: Instant, id: RequestId, ids: PublishedIds) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let run = request.runs.current();
        if ids.len() != run.len() {
            let (sent, named) = (run.len(), ids.len());
            return self.end_for(id, |topic| SinkError::IncompleteAnswer {
                topic,
                sent,
                named,
            });
        }
        if self.settings.delivery.is_staged() {
            for place in request.batch.places(run.clone()) {
                if let Some(Entry::Staged(staged)) = self.ledger.get(place) {
                    staged.let_go();
                }
            }
        }
        let places = request.batch.places(run.clone());
        self.ledger.settle_all(places, Outcome::Settled);
        let mut replies = request
            .batch
            .take_replies(run.clone())
            .into_iter()
            .peekable();
        for (index, id) in run.clone().zip(ids.iter()) {
            if replies.peek().is_none() {
                break;
            }
            if let Some((_, reply)) = replies.next_if(|(of, _)| *of == index) {
                let message_id = id.to_owned();
                self.effects
                    .push_back(Effect::Answer(reply, Published::Stored { message_id }));
            }
        }
        let bytes = request.batch.bytes(run.clone());
        request.last_failure = None;
        let destination = request.destination;
        self.counters.records_published += run.len() as u64;
        let topic = &self.destinations.get(destination).topic;
        let records = run.len() as u64;
        self.figures
            .count(topic, |stats| stats.records_published += records);
        self.counters.consecutive_rejections = 0;
        self.release(run.len(), bytes);
        self.repaired(destination);
        let slot = self.destinations.get_mut(destination);
        if std::mem::take(&mut slot.failing) {
            let topic = slot.topic.clone();
            self.effects
                .push_back(Effect::Tell(Notice::Recovered { topic }));
        }
        self.advance(now, id, run.len());
        self.progress(now);
    }

    fn retry(&mut self, now: Instant, id: RequestId, failure: Failure, random: f64) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let attempts = request.attempts;
        let next = request.next_attempt(&self.settings.retry, now, &failure, random);
        request.last_failure = Some(failure.cause.clone());
        let Some(at) = next else {
            let after = request.tried_for(now);
            return self.end_for(id, |topic| SinkError::RetriesExhausted {
                topic,
                attempts,
                after,
                cause: failure.cause,
            });
        };
        let slot = self.destinations.get_mut(request.destination);
        let (topic, cause) = (slot.topic.clone(), failure.cause);
        let notice = if attempts >= ATTEMPTS_BEFORE_WARNING && !slot.failing {
            slot.failing = true;
            Notice::Failing {
                topic,
                attempts,
                cause,
            }
        } else {
            Notice::Retrying {
                topic,
                attempt: attempts,
                cause,
            }
        };
        self.effects.push_back(Effect::Tell(notice));
        self.counters.requests_retried += 1;
        self.requests.wait(id, at);
    }

    /// Something in the request is wrong. Only a request of one message says which.
    fn refused(&mut self, now: Instant, id: RequestId, cause: Cause) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let run = request.runs.current();
        let destination = request.destination;
        let topic = self.destinations.get(destination).topic.clone();
        let halved = request.runs.halve();
        // Whatever is wrong with the request, its topic exists.
        self.repaired(destination);
        if halved {
            self.counters.requests_divided += 1;
            let messages = run.len();
            self.effects
                .push_back(Effect::Tell(Notice::Dividing { topic, messages }));
            return self.requests.renew(id);
        }
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let rejected = Rejected::new(crate::CONNECTOR, topic.as_str(), RejectedReason::Refused)
            .payload(request.batch.message(run.start))
            .source(cause.clone());
        let rejection = Rejection {
            place: request.batch.place(run.start),
            bytes: request.batch.bytes(run.clone()),
            destination: Some(destination),
            key: request.lane.clone(),
            reply: request.batch.take_reply(run.start),
            rejected,
        };
        if let Some(key) = &rejection.key {
            let lanes = &mut self.destinations.get_mut(destination).lanes;
            lanes.open(&Some(Arc::clone(key))).verdicts += 1;
        }
        self.counters.consecutive_rejections += 1;
        let count = u32::try_from(self.counters.consecutive_rejections).unwrap_or(u32::MAX);
        // What a staged sink sends is committed: no state would name any of it as dealt with, and
        // ending the sink would end every restart too.
        let most = self.settings.max_consecutive_rejections;
        let ends = most
            .filter(|most| !self.is_staged() && count >= most.get())
            .map(|_| SinkError::TooManyRejections {
                count,
                topic,
                cause,
            });
        self.rejections.add(rejection, ends);
        self.advance(now, id, 0);
        self.progress(now);
    }

    /// The request's current run is dealt with: goes on with the next one, or ends the request.
    /// `verdicts` of the destination's messages have theirs.
    fn advance(&mut self, now: Instant, id: RequestId, verdicts: usize) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let destination = request.destination;
        if request.runs.advance() {
            let lanes = &mut self.destinations.get_mut(destination).lanes;
            let lane = lanes.open(&request.lane);
            if lane.verdicts == 0 || request.lane.is_none() {
                self.requests.renew(id);
            } else {
                lane.held = Some(id);
                self.requests.hold(id);
            }
        } else if let Some(request) = self.requests.remove(id) {
            let slot = self.destinations.get_mut(destination);
            slot.in_flight -= 1;
            slot.lanes.open(&request.lane).in_flight -= 1;
            self.enqueue(now, destination, &request.lane);
            let slot = self.destinations.get_mut(destination);
            slot.lanes.prune(&request.lane);
            self.spares.give(request.batch);
        }
        self.destinations.let_go(now, destination, verdicts);
    }

    /// One verdict fewer stands in the way of an ordering key.
    fn resume_key(&mut self, now: Instant, id: DestinationId, key: &LaneKey) {
        if key.is_none() {
            return;
        }
        let lane = self.destinations.get_mut(id).lanes.open(key);
        lane.verdicts -= 1;
        if lane.verdicts > 0 {
            return;
        }
        if let Some(request) = lane.held.take() {
            self.requests.renew(request);
        } else {
            self.enqueue(now, id, key);
        }
        self.destinations.get_mut(id).lanes.prune(key);
    }

    pub(super) fn release(&mut self, items: usize, bytes: usize) {
        self.look_again = true;
        self.held.items -= items;
        self.held.bytes -= bytes;
        self.released.items += items;
        self.released.bytes += bytes;
    }

    /// Ends the sink with an error that names the request's topic.
    pub(super) fn end_for(
        &mut self,
        id: RequestId,
        error: impl FnOnce(gcp_wire::TopicName) -> SinkError,
    ) {
        if let Some(request) = self.requests.get_mut(id) {
            let topic = self.destinations.get(request.destination).topic.clone();
            self.fail(error(topic));
        }
    }
}
