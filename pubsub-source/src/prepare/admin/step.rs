//! What a start does, for its errors.

use std::fmt;

use gcp_wire::{SnapshotName, SubscriptionName, TopicName};

/// A step of a start, which knows what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    kind: Kind,
    /// The full name of what it is about.
    resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Describe,
    LookAtTopic,
    LookAtSnapshot,
    Create { topic: TopicName },
    Seek { to_snapshot: bool },
}

impl Step {
    pub(in crate::prepare) fn describe(subscription: &SubscriptionName) -> Self {
        Self::of(Kind::Describe, subscription)
    }

    pub(super) fn look_at_topic(topic: &TopicName) -> Self {
        Self::of(Kind::LookAtTopic, topic)
    }

    pub(super) fn look_at_snapshot(snapshot: &SnapshotName) -> Self {
        Self::of(Kind::LookAtSnapshot, snapshot)
    }

    pub(super) fn create(subscription: &SubscriptionName, topic: &TopicName) -> Self {
        let topic = topic.clone();
        Self::of(Kind::Create { topic }, subscription)
    }

    pub(super) fn seek(subscription: &SubscriptionName, to_snapshot: bool) -> Self {
        Self::of(Kind::Seek { to_snapshot }, subscription)
    }

    fn of(kind: Kind, resource: impl ToString) -> Self {
        Self {
            kind,
            resource: resource.to_string(),
        }
    }

    /// The full name of the subscription, topic or snapshot that the step is about.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The permissions that it needs, for a person to read.
    #[must_use]
    pub const fn permission(&self) -> &'static str {
        match self.kind {
            Kind::Describe => "pubsub.subscriptions.get (every subscription is checked first)",
            Kind::LookAtTopic => "pubsub.topics.get",
            Kind::LookAtSnapshot => "pubsub.snapshots.get",
            Kind::Create { .. } => {
                "pubsub.subscriptions.create on the project and pubsub.topics.attachSubscription on the topic"
            }
            Kind::Seek { to_snapshot: false } => "pubsub.subscriptions.consume",
            Kind::Seek { to_snapshot: true } => {
                "pubsub.subscriptions.consume, and pubsub.snapshots.seek on the snapshot"
            }
        }
    }

    /// A role that has them.
    #[must_use]
    pub const fn role(&self) -> &'static str {
        match self.kind {
            Kind::Describe | Kind::LookAtTopic | Kind::LookAtSnapshot => "roles/pubsub.viewer",
            Kind::Create { .. } => "roles/pubsub.editor",
            Kind::Seek { .. } => "roles/pubsub.subscriber",
        }
    }

    /// What was done when the step failed.
    pub(crate) const fn so_far(&self) -> &'static str {
        match self.kind {
            Kind::Describe | Kind::LookAtTopic | Kind::LookAtSnapshot | Kind::Create { .. } => {
                "nothing was sought, and what was created before stays"
            }
            Kind::Seek { .. } => {
                "others may have been sought, and the next start seeks all of them to the recorded target"
            }
        }
    }
}

/// As it goes after "to".
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = &self.resource;
        match &self.kind {
            Kind::Describe => write!(f, "look at subscription {resource}"),
            Kind::LookAtTopic => write!(f, "look at topic {resource}"),
            Kind::LookAtSnapshot => write!(f, "look at snapshot {resource}"),
            Kind::Create { topic } => write!(f, "create subscription {resource} of topic {topic}"),
            Kind::Seek { .. } => write!(f, "seek subscription {resource}"),
        }
    }
}
