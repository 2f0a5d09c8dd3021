//! A topic.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::message::Stored;
use crate::pubsub::proto;
use crate::time::{Time, from_proto_duration};

/// A topic: who listens, and what it keeps by itself.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) config: proto::Topic,
    pub(super) subscriptions: BTreeSet<String>,
    /// What was published within the topic's own retention, oldest first.
    log: VecDeque<Arc<Stored>>,
}

impl Topic {
    pub(super) fn new(config: proto::Topic) -> Self {
        Self {
            config,
            subscriptions: BTreeSet::new(),
            log: VecDeque::new(),
        }
    }

    /// How long the topic keeps messages for every subscription; `None` without retention.
    pub(super) fn retention(&self) -> Option<Duration> {
        self.config
            .message_retention_duration
            .as_ref()
            .and_then(from_proto_duration)
    }

    pub(super) fn keep(&mut self, now: Time, stored: &Arc<Stored>) {
        if self.retention().is_some() {
            self.log.push_back(Arc::clone(stored));
        }
        self.expire(now);
    }

    /// What the topic still keeps, oldest first.
    pub(super) fn kept(&mut self, now: Time) -> impl Iterator<Item = &Arc<Stored>> {
        self.expire(now);
        self.log.iter()
    }

    fn expire(&mut self, now: Time) {
        let Some(retention) = self.retention() else {
            self.log.clear();
            return;
        };
        while self
            .log
            .front()
            .is_some_and(|oldest| oldest.at + retention <= now)
        {
            self.log.pop_front();
        }
    }
}
