//! Topics that do not exist: what was meant for one waits until it does.

use std::time::Instant;

use connector_core::Cause;
use gcp_wire::TopicName;

use super::{Effect, Machine, Notice, RequestId, destinations::DestinationId};
use crate::{MissingTopics, SinkError};

/// What came of creating a topic.
#[derive(Debug)]
pub(crate) enum Creation {
    /// It is new.
    Made,
    /// It was there already: another sink made it, or it was only not visible yet.
    Existed,
    /// It may go better next time.
    Failed(Cause),
    /// It will not.
    Refused(Cause),
}

/// A destination on its way to a topic. Nothing else is sent there meanwhile, so nothing
/// overtakes what waits.
#[derive(Debug)]
pub(super) struct Repair {
    step: Step,
    /// Attempts so far, to create the topic or to publish to it.
    attempts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Creating,
    Publishing,
    /// Until then. Whether the topic could not be created or did not show, the next attempt begins
    /// with creating it: it may have been deleted again, and otherwise the answer is that it exists.
    Waiting(Instant),
}

impl Machine {
    /// A request was refused because its topic does not exist.
    pub(super) fn missing(&mut self, now: Instant, id: RequestId, cause: Cause, random: f64) {
        if self.settings.missing_topics == MissingTopics::End {
            return self.end_for(id, |topic| SinkError::TopicMissing { topic, cause });
        }
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        request.last_failure = Some(cause.clone());
        let destination = request.destination;
        self.requests.park(id);
        let slot = self.destinations.get_mut(destination);
        match &slot.repair {
            None => {
                slot.repair = Some(Repair {
                    step: Step::Creating,
                    attempts: 1,
                });
                let topic = slot.topic.clone();
                self.effects.push_back(Effect::CreateTopic(topic));
            }
            Some(repair) => match repair.step {
                Step::Publishing => self.try_again(now, destination, random, |topic| {
                    SinkError::TopicMissing { topic, cause }
                }),
                Step::Creating | Step::Waiting(_) => {}
            },
        }
    }

    /// It is known what came of creating a topic. `random` is uniform in `0.0..1.0`.
    pub(crate) fn handle_created(
        &mut self,
        now: Instant,
        topic: &TopicName,
        creation: Creation,
        random: f64,
    ) {
        if matches!(creation, Creation::Made) {
            self.counters.topics_created += 1;
            let topic = topic.clone();
            self.effects
                .push_back(Effect::Tell(Notice::TopicCreated { topic }));
        }
        // By name: the destination may have found its topic, come clean, and made room meanwhile.
        let Some(id) = self.destinations.find(topic) else {
            return;
        };
        match &mut self.destinations.get_mut(id).repair {
            Some(repair) if repair.step == Step::Creating => repair.step = Step::Publishing,
            Some(_) | None => return,
        }
        match creation {
            Creation::Made | Creation::Existed => self.requests.unpark(id),
            Creation::Failed(cause) => self.try_again(now, id, random, |topic| {
                SinkError::TopicNotCreated { topic, cause }
            }),
            Creation::Refused(cause) => {
                let topic = topic.clone();
                self.fail(SinkError::TopicNotCreated { topic, cause });
            }
        }
    }

    /// Waits, or gives up.
    fn try_again(
        &mut self,
        now: Instant,
        id: DestinationId,
        random: f64,
        error: impl FnOnce(TopicName) -> SinkError,
    ) {
        let MissingTopics::Create(creation) = &self.settings.missing_topics else {
            return;
        };
        let slot = self.destinations.get_mut(id);
        let Some(repair) = &mut slot.repair else {
            return;
        };
        let delay = creation.delays.jittered(repair.attempts, random);
        let until = now.checked_add(delay);
        let (true, Some(until)) = (repair.attempts < creation.attempts.get(), until) else {
            let topic = slot.topic.clone();
            return self.fail(error(topic));
        };
        repair.attempts += 1;
        repair.step = Step::Waiting(until);
        self.repairs.insert((until, id));
    }

    /// The topic exists: what waited for it goes on, oldest first.
    pub(super) fn repaired(&mut self, id: DestinationId) {
        let Some(repair) = self.destinations.get_mut(id).repair.take() else {
            return;
        };
        if let Step::Waiting(until) = repair.step {
            self.repairs.remove(&(until, id));
        }
        self.requests.unpark(id);
        self.queue(id);
    }

    /// Goes on with the repairs that have waited long enough.
    pub(super) fn resume_repairs(&mut self, now: Instant) {
        while let Some((until, id)) = self.repairs.first().copied()
            && until <= now
        {
            self.repairs.pop_first();
            let slot = self.destinations.get_mut(id);
            let Some(repair) = &mut slot.repair else {
                continue;
            };
            repair.step = Step::Creating;
            let topic = slot.topic.clone();
            self.effects.push_back(Effect::CreateTopic(topic));
        }
    }
}
