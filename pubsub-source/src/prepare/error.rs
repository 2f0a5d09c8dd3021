//! Why a job cannot start.

use std::time::Duration;

use connector_core::{Cause, StateError};
use gcp_wire::{RpcError, SnapshotName, SubscriptionName, TopicName};

use super::admin::Step;
use crate::{error::BuildError, plan::PlanError};

/// Why a job cannot start. No reader was built, and nothing was acknowledged but what a seek, where
/// the text says that one may have happened, acknowledges.
///
/// Everything that may pass is tried again inside. Starting again is always right: it goes on from
/// the record of the start.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// A setting of the start is wrong.
    #[error("the start is not set up right; the service was not asked")]
    Settings {
        /// What is wrong.
        #[source]
        cause: BuildError,
    },
    /// There is no such plan or reader.
    #[error("the readers are not planned right; the service was not asked")]
    Plan {
        /// What is wrong.
        #[source]
        cause: PlanError,
    },
    /// A subscription has creation settings and is not read.
    #[error(
        "subscription {subscription} has creation settings and is not part of the plan; the service was not asked, plan for it or leave it out"
    )]
    NotPlanned {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// A subscription would be created without the ordering that the plan needs.
    #[error(
        "subscription {subscription} would be created without message ordering, and the plan is an ordered one; the service was not asked, set message_ordering(true) in its creation settings, which cannot be done later, or use SplitPlan::new"
    )]
    CreationUnordered {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// A subscription would be created without the policy that giving back needs.
    #[error(
        "subscription {subscription} would be created without a dead-letter policy, and DecodeFailure::Nack gives back what cannot be decoded; the service was not asked, set dead_letter_policy in its creation settings, or choose DecodeFailure::Drop or Fail"
    )]
    CreationWithoutDeadLetters {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// One reader was asked for, and several are planned.
    #[error(
        "{readers} readers are planned, and only_reader() is for one; the service was not asked, call run() once for the job and build each reader from what it answers"
    )]
    Shared {
        /// How many readers the plan has.
        readers: usize,
    },
    /// A subscription does not exist.
    #[error(
        "subscription {subscription} does not exist; nothing was created or sought, create it, correct the name, or give creation settings for it"
    )]
    Missing {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// The topic of a subscription that is to be created does not exist.
    #[error(
        "topic {topic}, which subscription {subscription} is to be created with, does not exist; the subscription was not created and nothing was sought, create the topic first, a source never does"
    )]
    MissingTopic {
        /// The topic, or the dead-letter topic.
        topic: TopicName,
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// The service misses something that a subscription is to be created with.
    #[error(
        "subscription {subscription} was not created, since its topic {topic} or the topic of its dead-letter policy does not exist; nothing was sought, create the topic first, a source never does"
    )]
    MissingSomeTopic {
        /// The topic.
        topic: TopicName,
        /// The subscription.
        subscription: SubscriptionName,
        /// What the service answered.
        #[source]
        cause: RpcError,
    },
    /// The snapshot to start from does not exist.
    #[error(
        "snapshot {snapshot} does not exist (they expire after 7 days at most); nothing was created or sought, name another or start from a time, and if it is the one that an earlier start recorded, delete that record"
    )]
    MissingSnapshot {
        /// The snapshot.
        snapshot: SnapshotName,
    },
    /// The snapshot to start from is of another topic.
    #[error(
        "snapshot {snapshot} is of topic {of}, and subscription {subscription} of topic {topic}; nothing was created or sought, start from a snapshot of the subscription's own topic, or from a time"
    )]
    ForeignSnapshot {
        /// The snapshot.
        snapshot: SnapshotName,
        /// The snapshot's topic, as the service names it.
        of: String,
        /// The subscription.
        subscription: SubscriptionName,
        /// The subscription's topic, as the service names it.
        topic: String,
    },
    /// Per-key order is asked of a subscription that does not keep it.
    #[error(
        "subscription {subscription} does not order messages, and the plan is an ordered one; nothing was sought, ordering is fixed at creation: create another subscription with message ordering, or use SplitPlan::new"
    )]
    Unordered {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// Undecodable messages would be delivered for ever.
    #[error(
        "subscription {subscription} has no dead-letter policy, and DecodeFailure::Nack gives back what cannot be decoded: it would come again for ever; nothing was sought, add a policy to the subscription, or choose DecodeFailure::Drop or Fail"
    )]
    NoDeadLetters {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// The subscription pushes.
    #[error(
        "subscription {subscription} pushes its messages to an endpoint and cannot be pulled; nothing was sought, read from another subscription of the topic, or clear its push configuration"
    )]
    Pushes {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// The subscription exports.
    #[error(
        "subscription {subscription} exports its messages to {to} and cannot be pulled; nothing was sought, read from another subscription of the topic"
    )]
    Exports {
        /// The subscription.
        subscription: SubscriptionName,
        /// The service it exports to.
        to: &'static str,
    },
    /// The subscription is detached from its topic.
    #[error(
        "subscription {subscription} is detached from its topic and cannot be pulled; nothing was sought, delete it and create it again"
    )]
    Detached {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// A subscription went away while the start was checked.
    #[error(
        "subscription {subscription} existed a moment ago and is gone; it was not sought, start again or create it beforehand"
    )]
    Vanished {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// There are no credentials.
    #[error(
        "no credentials to {step} with; {}, check what is given to credentials(), or the application-default credentials of this machine", step.so_far()
    )]
    Credentials {
        /// What was to be done.
        step: Step,
        /// What is wrong with the credentials, without their contents.
        #[source]
        cause: RpcError,
    },
    /// The service does not allow it.
    #[error(
        "not allowed to {step}; {}, it needs {}: grant {} to these credentials", step.so_far(), step.permission(), step.role()
    )]
    Denied {
        /// What was to be done.
        step: Step,
        /// What the service answered.
        #[source]
        cause: RpcError,
    },
    /// The service refuses it in a way that trying again does not change.
    #[error("the service refuses to {step}; {}, see what it says", step.so_far())]
    Refused {
        /// What was to be done.
        step: Step,
        /// What the service answered.
        #[source]
        cause: RpcError,
    },
    /// The service did not answer for too long.
    #[error(
        "nothing went well for {}s when trying to {step}; {}, start again when the service can be reached", after.as_secs_f64(), step.so_far()
    )]
    Unanswered {
        /// What was to be done.
        step: Step,
        /// The setting `progress_timeout`.
        after: Duration,
        /// What the last attempt came to.
        #[source]
        cause: RpcError,
    },
    /// The record of the start cannot be read.
    #[error(
        "the record of the job's start cannot be read; the service was not asked, and without the record nobody knows whether it was sought already"
    )]
    Unreadable {
        /// What the store says.
        #[source]
        cause: Cause,
    },
    /// The record of the start is of another job, or another version.
    #[error(
        "the record of the job's start cannot be used; the service was not asked, check that the store is this job's"
    )]
    Foreign {
        /// What is wrong with it.
        #[source]
        cause: StateError,
    },
    /// It could not be recorded what is about to be sought.
    #[error(
        "the start could not be recorded before the seek; nothing was sought, start again when the store works"
    )]
    IntentNotSaved {
        /// What the store says.
        #[source]
        cause: Cause,
    },
    /// It could not be recorded that the start is over.
    #[error(
        "the start is over and could not be recorded as such; start again when the store works: what was sought may then be sought again, to the same target"
    )]
    DoneNotSaved {
        /// What the store says.
        #[source]
        cause: Cause,
    },
}

/// The store took too long. What it was told may be durable.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store did not answer within {}s", after.as_secs_f64())]
#[non_exhaustive]
pub struct StoreSilent {
    /// The setting `progress_timeout`.
    pub after: Duration,
}

impl From<BuildError> for PrepareError {
    fn from(cause: BuildError) -> Self {
        Self::Settings { cause }
    }
}

impl From<PlanError> for PrepareError {
    fn from(cause: PlanError) -> Self {
        Self::Plan { cause }
    }
}
