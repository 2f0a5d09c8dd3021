//! What the sink tells the log. Sentences with fields; nothing per message.

use std::time::Duration;

use connector_core::{Cause, Member};
use gcp_wire::{RpcError, TopicName};

use crate::{Identity, machine::Notice};

/// Tells what the machine found worth telling.
pub(crate) fn tell(instance: &str, member: &Member, notice: Notice) {
    match notice {
        Notice::Retrying {
            topic,
            attempt,
            cause,
        } => retrying(instance, &topic, attempt, &cause),
        Notice::Failing {
            topic,
            attempts,
            cause,
        } => failing(instance, &topic, attempts, &cause),
        Notice::Recovered { topic } => {
            tracing::info!(instance, %topic, "A topic takes messages again.");
        }
        Notice::TopicCreated { topic } => topic_created(instance, &topic),
        Notice::Dividing { topic, messages } => {
            tracing::debug!(
                instance,
                %topic,
                messages,
                "A publish request was refused and is divided to find the message at fault."
            );
        }
        Notice::Slow { idle, limit, items } => {
            tracing::warn!(
                instance,
                idle_s = idle.as_secs(),
                limit_s = limit.as_secs(),
                items,
                "Nothing has completed for a while and the host is waiting; the sink ends when the limit is reached."
            );
        }
        Notice::WaitingForRoom { waited } => waiting_for_room(instance, member, waited),
        Notice::Quarantined {
            topic,
            identity,
            reason,
        } => quarantined(instance, &topic, identity, &reason),
        Notice::StageFull {
            waited,
            limit,
            items,
        } => stage_full(instance, waited, limit, items),
        Notice::HandlerUnflushed { items, cause } => handler_unflushed(instance, items, &cause),
        Notice::LeftStaged { items } => left_staged(instance, items),
    }
}

fn quarantined(instance: &str, topic: &TopicName, identity: Identity, reason: &str) {
    tracing::error!(
        instance,
        %topic,
        incarnation = %format_args!("{:032x}", identity.incarnation),
        sequence = identity.sequence,
        reason,
        "A committed message was refused and is kept aside in the state; publish or discard it."
    );
}

fn stage_full(instance: &str, waited: Duration, limit: Duration, items: usize) {
    tracing::warn!(
        instance,
        waited_s = waited.as_secs(),
        limit_s = limit.as_secs(),
        items,
        "The stage is full and no checkpoint is taken; the sink ends when the limit is reached."
    );
}

fn handler_unflushed(instance: &str, items: usize, cause: &Cause) {
    tracing::warn!(
        instance,
        items,
        error = %cause,
        "The failure handler could not keep refused messages; they stay in the state and its flush is repeated."
    );
}

fn left_staged(instance: &str, items: usize) {
    tracing::warn!(
        instance,
        items,
        "A sink is closed with messages that no commit released; those that a saved state names are published after a restore, and the others come again from their source."
    );
}

fn topic_created(instance: &str, topic: &TopicName) {
    tracing::warn!(
        instance,
        %topic,
        "A missing topic was created; it has no subscription, and messages that arrive before one exists are lost unless the topic retains them."
    );
}

fn retrying(instance: &str, topic: &TopicName, attempt: u32, cause: &Cause) {
    tracing::debug!(
        instance,
        %topic,
        attempt,
        error = %cause,
        "A publish request failed and is sent again."
    );
}

fn failing(instance: &str, topic: &TopicName, attempts: u32, cause: &Cause) {
    tracing::warn!(
        instance,
        %topic,
        attempts,
        error = %cause,
        "Publishing to a topic keeps failing; it is retried, and nothing is dropped."
    );
}

/// On a shared budget the one who waits is rarely the one at fault: name who holds most.
fn waiting_for_room(instance: &str, member: &Member, waited: Duration) {
    let holders = member.budget().holders();
    if holders.len() < 2 {
        return;
    }
    if let Some(most) = holders.iter().max_by_key(|holder| holder.held.bytes) {
        tracing::warn!(
            instance,
            waited_s = waited.as_secs(),
            holder = %most.name,
            holder_items = most.held.items,
            holder_bytes = most.held.bytes,
            "Waiting for room in a shared budget."
        );
    }
}

/// The handle went away with messages under way.
pub(crate) fn dropped(instance: &str, items: usize) {
    tracing::warn!(
        instance,
        items,
        "A sink was dropped without close; what it had accepted is still sent while the runtime lives."
    );
}

/// The sink ended with an error.
pub(crate) fn ended(instance: &str, error: &crate::SinkError) {
    tracing::error!(instance, error = %error, "The sink ended.");
}

/// A dead-letter queue publishes to a topic without subscription.
pub(crate) fn dead_letters_unread(instance: &str, topic: &TopicName) {
    tracing::warn!(
        instance,
        %topic,
        "The topic for dead letters has no subscription; they are lost unless the topic retains them."
    );
}

/// A dead-letter queue has no topic.
pub(crate) fn dead_letters_homeless(instance: &str, topic: &TopicName) {
    tracing::warn!(
        instance,
        %topic,
        "The topic for dead letters does not exist and is not created; the first rejected record ends the sink."
    );
}

/// It could not be seen whether somebody reads the dead letters.
pub(crate) fn dead_letters_unseen(instance: &str, topic: &TopicName, error: &RpcError) {
    tracing::debug!(
        instance,
        %topic,
        %error,
        "Whether the topic for dead letters has a subscription could not be seen."
    );
}
