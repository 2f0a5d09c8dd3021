//! The start's events, for logs.

use gcp_wire::SubscriptionName;

use crate::start::SeekTarget;

/// Something that people should be able to read about a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// More readers than there is to read.
    IdleReaders {
        idle: usize,
        readers: usize,
        subscriptions: usize,
    },
    /// The job has started before; nothing is sought.
    StartedBefore,
    /// The job's first start did not get to its end; what is planned now is sought to the target
    /// that it recorded.
    Resumed {
        target: SeekTarget,
        planned: Vec<SubscriptionName>,
    },
    /// The subscriptions are not those of the first start, which is over.
    OtherSubscriptions {
        recorded: Vec<SubscriptionName>,
        planned: Vec<SubscriptionName>,
    },
    Created {
        subscription: SubscriptionName,
        topic: String,
    },
    Sought {
        subscription: SubscriptionName,
        target: SeekTarget,
    },
    TopicDeleted {
        subscription: SubscriptionName,
    },
    FewAttempts {
        subscription: SubscriptionName,
        attempts: u32,
    },
    NothingRetained {
        subscription: SubscriptionName,
    },
    SharedTopic {
        topic: String,
        subscriptions: Vec<SubscriptionName>,
    },
}

/// Writes an event.
pub(super) fn tell(notice: &Notice) {
    match notice {
        Notice::IdleReaders {
            idle,
            readers,
            subscriptions,
        } => tracing::warn!(
            idle,
            readers,
            subscriptions,
            "Some readers have nothing to read, since a subscription has one reader where order is kept; run fewer readers, or use more subscriptions."
        ),
        Notice::StartedBefore => tracing::info!(
            "The job has started before, so its start position is not applied; nothing is sought."
        ),
        Notice::Resumed { target, planned } => tracing::warn!(
            %target,
            ?planned,
            "The job's first start did not get to its end; the subscriptions that are planned now are sought to the target that it recorded, whatever start position is configured now."
        ),
        Notice::OtherSubscriptions { recorded, planned } => tracing::warn!(
            ?recorded,
            ?planned,
            "The job reads other subscriptions than at its first start; new ones are read from where they stand, and what is unacknowledged on those left out stays there."
        ),
        Notice::Created {
            subscription,
            topic,
        } => tracing::info!(%subscription, topic, "A missing subscription was created."),
        Notice::Sought {
            subscription,
            target,
        } => tracing::info!(
            %subscription,
            %target,
            "A subscription was sought, for all of its consumers."
        ),
        Notice::TopicDeleted { subscription } => tracing::warn!(
            %subscription,
            "The subscription's topic was deleted: it delivers what it holds, and nothing after that, even if a topic of the same name is made."
        ),
        Notice::FewAttempts {
            subscription,
            attempts,
        } => tracing::warn!(
            %subscription,
            attempts,
            "The subscription's dead-letter policy allows fewer than 10 attempts, and each release of a message counts as one: a few restarts may move messages to the dead-letter topic that nobody has rejected."
        ),
        Notice::NothingRetained { subscription } => tracing::warn!(
            %subscription,
            "The start goes back in time, and neither the subscription nor its topic keeps acknowledged messages: only what was never acknowledged comes again."
        ),
        Notice::SharedTopic {
            topic,
            subscriptions,
        } => tracing::warn!(
            topic,
            ?subscriptions,
            "Several subscriptions of the job are of one topic, so that each of its messages is delivered once by each of them."
        ),
    }
}
