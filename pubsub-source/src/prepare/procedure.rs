//! Every decision of a start, without a clock, a random number or a network.
//!
//! Its order is what keeps a start harmless: everything is looked at before anything is changed,
//! everything is created and checked before anything is sought, what is sought is recorded before
//! it is sought, and that the start is over is recorded before anybody may read.

mod answers;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use gcp_wire::{SnapshotName, SubscriptionName, TopicName};

use super::{
    PrepareError, Prepared, admin::TopicStanding, facts::Facts, notice::Notice, rules,
    wishes::Wishes,
};
use crate::{
    creation::SubscriptionCreation,
    start::{Seek, SeekTarget, StartRecord},
};

/// Calls under way at once: enough that a hundred subscriptions are checked within seconds, far from
/// the service's limits on administrative calls.
const AT_ONCE: usize = 8;

/// Something that has to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    Load,
    Describe {
        subscription: SubscriptionName,
        /// Just now, by somebody else, so that it may not be known everywhere yet.
        created: bool,
    },
    LookAtTopic(TopicName),
    LookAtSnapshot(SnapshotName),
    Create {
        subscription: SubscriptionName,
        creation: SubscriptionCreation,
    },
    Save(StartRecord),
    Seek {
        subscription: SubscriptionName,
        target: SeekTarget,
        /// Just now, so that it may not be known everywhere yet.
        created: bool,
    },
    Tell(Notice),
}

/// What the start is at. Each phase begins when every answer of the one before is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Loading,
    /// Looking at everything.
    Looking,
    Creating,
    Intending,
    Seeking,
    Finishing,
    Over,
}

/// One start of a job.
#[derive(Debug)]
pub(super) struct Procedure {
    wishes: Wishes,
    phase: Phase,
    effects: VecDeque<Effect>,
    notices: VecDeque<Notice>,
    in_flight: usize,
    record: Option<StartRecord>,
    facts: BTreeMap<SubscriptionName, Facts>,
    topics: BTreeMap<TopicName, TopicStanding>,
    snapshot_topic: Option<String>,
    missing: BTreeSet<SubscriptionName>,
    created: Vec<SubscriptionName>,
    outcome: Option<Result<Prepared, PrepareError>>,
}

impl Procedure {
    pub(super) fn new(wishes: Wishes) -> Self {
        let mut procedure = Self {
            wishes,
            phase: Phase::Loading,
            effects: VecDeque::new(),
            notices: VecDeque::new(),
            in_flight: 0,
            record: None,
            facts: BTreeMap::new(),
            topics: BTreeMap::new(),
            snapshot_topic: None,
            missing: BTreeSet::new(),
            created: Vec::new(),
            outcome: None,
        };
        match procedure.wishes.check() {
            Ok(()) => procedure.effects.push_back(Effect::Load),
            Err(error) => procedure.end(Err(error)),
        }
        let plan = &procedure.wishes.plan;
        if plan.idle_readers() > 0 {
            procedure.notices.push_back(Notice::IdleReaders {
                idle: plan.idle_readers(),
                readers: plan.readers(),
                subscriptions: plan.subscriptions().len(),
            });
        }
        procedure
    }

    /// The next thing to do, if there is room for it. Each but [`Effect::Tell`] is answered.
    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        if let Some(notice) = self.notices.pop_front() {
            return Some(Effect::Tell(notice));
        }
        if self.in_flight >= AT_ONCE {
            return None;
        }
        let effect = self.effects.pop_front()?;
        self.in_flight += 1;
        Some(effect)
    }

    /// How the start ended, once it has.
    pub(super) fn outcome(&mut self) -> Option<Result<Prepared, PrepareError>> {
        self.outcome.take()
    }

    fn end(&mut self, outcome: Result<Prepared, PrepareError>) {
        self.phase = Phase::Over;
        self.effects.clear();
        self.outcome = Some(outcome);
    }

    /// Goes on once every answer of a phase is there.
    fn advance(&mut self) {
        while self.in_flight == 0 && self.effects.is_empty() {
            let next = match self.phase {
                Phase::Loading => self.look(),
                Phase::Looking => self.create(),
                Phase::Creating => self.intend(),
                Phase::Intending => self.seek(),
                Phase::Seeking => self.finish(),
                Phase::Finishing => {
                    let prepared = self.prepared();
                    return self.end(Ok(prepared));
                }
                Phase::Over => return,
            };
            match next {
                Ok(phase) => self.phase = phase,
                Err(error) => return self.end(Err(error)),
            }
        }
    }

    /// The seek that this start has to make: the recorded one, or its own if it is the first.
    fn seek_to_make(&self) -> Option<Seek> {
        match &self.record {
            Some(record) if record.is_done() => None,
            Some(record) => record.seek().cloned(),
            None => self.wishes.target.clone().map(|target| Seek {
                id: self.wishes.fresh,
                target,
            }),
        }
    }

    fn look(&mut self) -> Result<Phase, PrepareError> {
        self.tell_of_record();
        for subscription in self.wishes.plan.subscriptions() {
            self.effects.push_back(Effect::Describe {
                subscription: subscription.clone(),
                created: false,
            });
        }
        if let Some(Seek {
            target: SeekTarget::Snapshot(name),
            ..
        }) = self.seek_to_make()
        {
            self.effects.push_back(Effect::LookAtSnapshot(name));
        }
        Ok(Phase::Looking)
    }

    fn tell_of_record(&mut self) {
        let Some(record) = &self.record else { return };
        let planned = || self.wishes.plan.subscriptions().to_vec();
        if record.is_done() {
            if self.reads_others(record) {
                self.notices.push_back(Notice::OtherSubscriptions {
                    recorded: record.subscriptions().to_vec(),
                    planned: planned(),
                });
            }
            if self.wishes.target.is_some() {
                self.notices.push_back(Notice::StartedBefore);
            }
        } else if let Some(seek) = record.seek() {
            // Those that have joined since are sought with the others, and not left where they stand.
            self.notices.push_back(Notice::Resumed {
                target: seek.target.clone(),
                planned: planned(),
            });
        }
    }

    /// Everything that exists has been looked at: judges it, and creates what may be created.
    fn create(&mut self) -> Result<Phase, PrepareError> {
        for subscription in self.wishes.plan.subscriptions() {
            match self.facts.get(subscription) {
                Some(facts) => rules::verify(&self.wishes, subscription, facts)?,
                None if self.wishes.creations.contains_key(subscription) => {}
                None => {
                    return Err(PrepareError::Missing {
                        subscription: subscription.clone(),
                    });
                }
            }
        }
        self.verify_snapshot()?;
        // Topics are looked at once it is known that something has to be created of them.
        let topics = self.topics_needed();
        let unseen = topics
            .keys()
            .filter(|topic| !self.topics.contains_key(*topic));
        let unseen: Vec<TopicName> = unseen.cloned().collect();
        if !unseen.is_empty() {
            self.effects
                .extend(unseen.into_iter().map(Effect::LookAtTopic));
            return Ok(Phase::Looking);
        }
        for (topic, subscription) in topics {
            if self.topics.get(&topic) == Some(&TopicStanding::Missing) {
                return Err(PrepareError::MissingTopic {
                    topic,
                    subscription,
                });
            }
        }
        for subscription in &self.missing {
            if let Some(creation) = self.wishes.creations.get(subscription) {
                self.effects.push_back(Effect::Create {
                    subscription: subscription.clone(),
                    creation: creation.clone(),
                });
            }
        }
        Ok(Phase::Creating)
    }

    /// The topics of what has to be created, each with a subscription that needs it.
    fn topics_needed(&self) -> BTreeMap<TopicName, SubscriptionName> {
        let mut topics = BTreeMap::new();
        for subscription in &self.missing {
            let Some(creation) = self.wishes.creations.get(subscription) else {
                continue;
            };
            let named = [Some(creation.topic()), creation.dead_letter_topic()];
            for topic in named.into_iter().flatten() {
                topics.insert(topic.clone(), subscription.clone());
            }
        }
        topics
    }

    /// A snapshot serves the subscriptions of its own topic only.
    fn verify_snapshot(&self) -> Result<(), PrepareError> {
        let (Some(of), Some(seek)) = (&self.snapshot_topic, self.seek_to_make()) else {
            return Ok(());
        };
        let SeekTarget::Snapshot(snapshot) = seek.target else {
            return Ok(());
        };
        for subscription in self.wishes.plan.subscriptions() {
            let existing = self
                .facts
                .get(subscription)
                .map(|facts| facts.topic.clone());
            let creation = self.wishes.creations.get(subscription);
            let to_create = creation.map(|creation| Some(creation.topic().to_string()));
            if let Some(Some(topic)) = existing.or(to_create)
                && topic != *of
            {
                return Err(PrepareError::ForeignSnapshot {
                    snapshot,
                    of: of.clone(),
                    subscription: subscription.clone(),
                    topic,
                });
            }
        }
        Ok(())
    }

    /// Everything is there: judges what was created, and records where it is to be sought.
    fn intend(&mut self) -> Result<Phase, PrepareError> {
        for subscription in self.wishes.plan.subscriptions() {
            let Some(facts) = self.facts.get(subscription) else {
                return Err(PrepareError::Vanished {
                    subscription: subscription.clone(),
                });
            };
            rules::verify(&self.wishes, subscription, facts)?;
        }
        let seek = self.seek_to_make();
        let target = seek.as_ref().map(|seek| &seek.target);
        let warnings = rules::warnings(&self.wishes, target, &self.facts, &self.created);
        self.notices.extend(warnings);
        if let Some(seek) = seek
            && self.record.is_none()
        {
            let record = StartRecord::intended(
                Arc::clone(&self.wishes.instance),
                self.wishes.plan.subscriptions().to_vec(),
                seek,
            );
            self.effects.push_back(Effect::Save(record.clone()));
            self.record = Some(record);
        }
        Ok(Phase::Intending)
    }

    fn seek(&mut self) -> Result<Phase, PrepareError> {
        if let Some(seek) = self.seek_to_make() {
            for subscription in self.wishes.plan.subscriptions() {
                self.effects.push_back(Effect::Seek {
                    subscription: subscription.clone(),
                    target: seek.target.clone(),
                    created: self.created.contains(subscription),
                });
            }
        }
        Ok(Phase::Seeking)
    }

    fn finish(&mut self) -> Result<Phase, PrepareError> {
        let recorded = self.record.as_ref();
        let over = recorded.is_some_and(|record| record.is_done() && !self.reads_others(record));
        if !over {
            // Also where nothing was sought: a position that is configured later is not that of this
            // job's start. And where the subscriptions have changed, so that it is told once.
            let record = StartRecord::done(
                Arc::clone(&self.wishes.instance),
                self.wishes.plan.subscriptions().to_vec(),
                recorded.and_then(StartRecord::seek).cloned(),
            );
            self.effects.push_back(Effect::Save(record.clone()));
            self.record = Some(record);
        }
        Ok(Phase::Finishing)
    }

    /// Whether the job reads other subscriptions than recorded, in whatever order.
    fn reads_others(&self, record: &StartRecord) -> bool {
        let recorded: BTreeSet<_> = record.subscriptions().iter().collect();
        let planned: BTreeSet<_> = self.wishes.plan.subscriptions().iter().collect();
        recorded != planned
    }

    fn prepared(&self) -> Prepared {
        let sought = self.record.as_ref().and_then(StartRecord::seek);
        Prepared::new(
            self.wishes.plan.clone(),
            Arc::clone(&self.wishes.instance),
            sought.map(|seek| seek.id),
            self.wishes.decode_failure,
        )
    }
}
