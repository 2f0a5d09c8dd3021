//! What came of what a start did.

use connector_core::{StateError, Versioned};
use gcp_wire::{SnapshotName, SubscriptionName, TopicName};

use super::{Effect, Phase, Procedure};
use crate::{
    prepare::{
        PrepareError,
        admin::{Created, TopicStanding},
        facts::Facts,
        notice::Notice,
    },
    start::{SeekTarget, StartRecord},
};

impl Procedure {
    /// The record was read.
    pub(in crate::prepare) fn handle_loaded(&mut self, record: Option<StartRecord>) {
        self.in_flight -= 1;
        if let Some(record) = &record
            && record.instance() != &*self.wishes.instance
        {
            let cause = StateError::OtherInstance {
                connector: StartRecord::CONNECTOR,
                found: record.instance().to_owned(),
                expected: self.wishes.instance.to_string(),
            };
            return self.end(Err(PrepareError::Foreign { cause }));
        }
        self.record = record;
        self.advance();
    }

    /// A subscription was looked at; `None` if it does not exist.
    pub(in crate::prepare) fn handle_described(
        &mut self,
        subscription: SubscriptionName,
        facts: Option<Facts>,
    ) {
        self.in_flight -= 1;
        match (facts, self.phase) {
            (Some(facts), _) => {
                self.facts.insert(subscription, facts);
            }
            // It existed when it was to be created, and was not found for as long as the start is
            // patient.
            (None, Phase::Creating) => {
                return self.end(Err(PrepareError::Vanished { subscription }));
            }
            (None, _) => {
                self.missing.insert(subscription);
            }
        }
        self.advance();
    }

    /// A topic was looked at.
    pub(in crate::prepare) fn handle_topic(&mut self, topic: TopicName, standing: TopicStanding) {
        self.in_flight -= 1;
        self.topics.insert(topic, standing);
        self.advance();
    }

    /// The snapshot was looked at: its topic, or `None` if it does not exist.
    pub(in crate::prepare) fn handle_snapshot(
        &mut self,
        snapshot: SnapshotName,
        topic: Option<String>,
    ) {
        self.in_flight -= 1;
        if topic.is_none() {
            return self.end(Err(PrepareError::MissingSnapshot { snapshot }));
        }
        self.snapshot_topic = topic;
        self.advance();
    }

    /// A subscription was created, or somebody else was faster: then it is the other's settings
    /// that count.
    pub(in crate::prepare) fn handle_created(
        &mut self,
        subscription: SubscriptionName,
        created: Created,
    ) {
        self.in_flight -= 1;
        self.created.push(subscription.clone());
        match created {
            Created::Made(facts) => {
                self.notices.push_back(Notice::Created {
                    subscription: subscription.clone(),
                    topic: facts.topic.clone().unwrap_or_default(),
                });
                self.facts.insert(subscription, facts);
            }
            Created::Existed => self.effects.push_back(Effect::Describe {
                subscription,
                created: true,
            }),
        }
        self.advance();
    }

    /// The record is durable.
    pub(in crate::prepare) fn handle_saved(&mut self) {
        self.in_flight -= 1;
        self.advance();
    }

    /// A subscription was sought.
    pub(in crate::prepare) fn handle_sought(
        &mut self,
        subscription: SubscriptionName,
        target: SeekTarget,
    ) {
        self.in_flight -= 1;
        self.notices.push_back(Notice::Sought {
            subscription,
            target,
        });
        self.advance();
    }

    /// Something did not work out, and trying again does not help. The first such is the outcome.
    pub(in crate::prepare) fn handle_failed(&mut self, error: PrepareError) {
        self.in_flight -= 1;
        if self.phase != Phase::Over {
            self.end(Err(error));
        }
    }
}
