//! The source's events, for logs.

use gcp_wire::SubscriptionName;

use crate::machine::{CallMethod, Notice};

/// Writes an event. What happens to every stream all day is for debugging only.
pub(super) fn tell(subscription: &SubscriptionName, notice: &Notice) {
    let subscription = subscription.as_str();
    match notice {
        Notice::StreamReopens { slot, delay } => {
            tracing::debug!(
                subscription,
                slot,
                ?delay,
                "A pull stream ended and opens again."
            );
        }
        Notice::StreamFails {
            slot,
            failures,
            delay,
        } => tracing::warn!(
            subscription,
            slot,
            failures,
            ?delay,
            "A pull stream fails again and again; nothing is received on it."
        ),
        Notice::StreamSilent { slot, silence } => tracing::info!(
            subscription,
            slot,
            ?silence,
            "A pull stream answers no ping and is replaced, with its connection."
        ),
        Notice::StreamsUnread { waited } => tracing::info!(
            subscription,
            ?waited,
            "The buffer stays full, so the pull streams are closed until the host reads on."
        ),
        Notice::LimitChanged { messages } => tracing::debug!(
            subscription,
            messages,
            "The limit of unacknowledged messages told to the service changes."
        ),
        Notice::Lapsed {
            handed_out,
            buffered,
        } => tracing::warn!(
            subscription,
            handed_out,
            buffered,
            "Leases ended before they were extended; their messages may come again."
        ),
        Notice::HeldTooLong { deliveries, limit } => tracing::warn!(
            subscription,
            deliveries,
            max_hold = ?limit,
            "Messages were held for too long and are given back; check that checkpoints are committed."
        ),
        Notice::CheckpointLate { waited } => tracing::warn!(
            subscription,
            ?waited,
            "No checkpoint was taken for long; nothing is acknowledged meanwhile."
        ),
        Notice::SeenOverflowed { ids, limit } => tracing::warn!(
            subscription,
            ids,
            seen_limit = limit,
            "The seen window is full; messages whose ids left it are handed out if they come again."
        ),
        Notice::Recognised { ids } => tracing::info!(
            subscription,
            ids,
            "Messages that a durable checkpoint names came again; they are acknowledged, not handed out."
        ),
        Notice::CallFails { method, attempts } => tracing::warn!(
            subscription,
            method = match method {
                CallMethod::Acknowledge => "Acknowledge",
                CallMethod::ModifyAckDeadline => "ModifyAckDeadline",
            },
            attempts,
            "A request fails again and again; it is kept and sent again."
        ),
    }
}
