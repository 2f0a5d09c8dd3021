//! What a subscription must be like to be read, and what of it deserves a word.

use std::collections::BTreeMap;

use gcp_wire::SubscriptionName;

use super::{
    PrepareError,
    facts::{Delivery, Facts},
    notice::Notice,
    wishes::Wishes,
};
use crate::start::SeekTarget;

/// Below so many attempts a few restarts may bring a whole backlog to the dead-letter topic: each
/// release counts as one.
const FEW_ATTEMPTS: u32 = 10;

/// Whether the job can read the subscription as it is.
pub(super) fn verify(
    wishes: &Wishes,
    subscription: &SubscriptionName,
    facts: &Facts,
) -> Result<(), PrepareError> {
    let subscription = subscription.clone();
    match facts.delivery {
        Delivery::Pull => {}
        Delivery::Push => return Err(PrepareError::Pushes { subscription }),
        Delivery::Export(to) => return Err(PrepareError::Exports { subscription, to }),
    }
    if facts.detached {
        return Err(PrepareError::Detached { subscription });
    }
    if wishes.plan.is_ordered() && !facts.ordered {
        return Err(PrepareError::Unordered { subscription });
    }
    if wishes.gives_back() && facts.attempts.is_none() {
        return Err(PrepareError::NoDeadLetters { subscription });
    }
    Ok(())
}

/// What deserves a warning, once all is known and before anything is sought.
pub(super) fn warnings(
    wishes: &Wishes,
    target: Option<&SeekTarget>,
    facts: &BTreeMap<SubscriptionName, Facts>,
    created: &[SubscriptionName],
) -> Vec<Notice> {
    let mut notices = Vec::new();
    let back = target.is_some_and(|target| target.goes_back_from(wishes.moment));
    for (subscription, facts) in facts {
        let subscription = subscription.clone();
        if facts.topic.is_none() {
            notices.push(Notice::TopicDeleted {
                subscription: subscription.clone(),
            });
        }
        if let Some(attempts) = facts.attempts.filter(|attempts| *attempts < FEW_ATTEMPTS) {
            notices.push(Notice::FewAttempts {
                subscription: subscription.clone(),
                attempts,
            });
        }
        if back && !facts.retains_acked {
            notices.push(Notice::NothingRetained { subscription });
        }
    }
    notices.extend(shared_topics(facts, created));
    notices
}

/// A topic that delivers each message to several of the job's subscriptions, where one was made by
/// this start: on purpose that is rare.
fn shared_topics(
    facts: &BTreeMap<SubscriptionName, Facts>,
    created: &[SubscriptionName],
) -> Vec<Notice> {
    let mut of_topic: BTreeMap<&str, Vec<SubscriptionName>> = BTreeMap::new();
    for (subscription, facts) in facts {
        if let Some(topic) = &facts.topic {
            of_topic
                .entry(topic)
                .or_default()
                .push(subscription.clone());
        }
    }
    let shared = of_topic.into_iter().filter(|(_, subscriptions)| {
        subscriptions.len() > 1 && subscriptions.iter().any(|one| created.contains(one))
    });
    shared
        .map(|(topic, subscriptions)| Notice::SharedTopic {
            topic: topic.to_owned(),
            subscriptions,
        })
        .collect()
}
