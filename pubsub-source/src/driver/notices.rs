//! The source's events, for logs.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use connector_core::{Budget, flow::Holder};
use gcp_wire::{RpcError, SubscriptionName};

use crate::{
    error::SourceError,
    machine::{CallMethod, Notice},
};

/// Where events go. Keeps the newest failure, for the events that tell of one: the machine counts
/// failures and does not know what they say.
#[derive(Debug, Clone)]
pub(super) struct Journal(Arc<Pages>);

#[derive(Debug)]
struct Pages {
    subscription: SubscriptionName,
    endpoint: String,
    /// What the source shares with others, and its name there.
    budget: Option<(Budget, Arc<str>)>,
    failure: Mutex<Option<RpcError>>,
}

impl Journal {
    pub(super) fn new(
        subscription: SubscriptionName,
        endpoint: String,
        budget: Option<(Budget, Arc<str>)>,
    ) -> Self {
        Self(Arc::new(Pages {
            subscription,
            endpoint,
            budget,
            failure: Mutex::new(None),
        }))
    }

    /// Something failed; whether that is worth telling is not decided here.
    pub(super) fn note(&self, failure: &RpcError) {
        let mut newest = self
            .0
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *newest = Some(failure.clone());
    }

    /// Writes an event.
    pub(super) fn tell(&self, notice: &Notice) {
        let newest = self
            .0
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let failure = newest.clone();
        drop(newest);
        let pages = &*self.0;
        if let (Notice::BudgetSpent { waited }, Some((budget, own))) = (notice, &pages.budget) {
            tell_spent(&pages.subscription, budget, own, *waited);
            return;
        }
        tell(
            &pages.subscription,
            &pages.endpoint,
            failure.as_ref(),
            notice,
        );
    }
}

/// Whoever holds most of a budget is the one to look at. A source that holds it all itself waits
/// for its own host, as it would without sharing anything.
fn tell_spent(subscription: &SubscriptionName, budget: &Budget, own: &str, waited: Duration) {
    let limits = budget.limits();
    let weight = |holder: &Holder| {
        let items = holder.held.items as u128 * limits.bytes as u128;
        items.max(holder.held.bytes as u128 * limits.items as u128)
    };
    let Some(holder) = budget.holders().into_iter().max_by_key(weight) else {
        return;
    };
    if *holder.name == *own {
        return;
    }
    tracing::warn!(
        subscription = subscription.as_str(),
        ?waited,
        holder = &*holder.name,
        messages = holder.held.items,
        bytes = holder.held.bytes,
        "The shared budget has no room for this source, which reads nothing meanwhile; the holder named here has most of it."
    );
}

/// An error that nobody has read of a source that is dropped, and nobody will.
pub(crate) fn tell_unread(subscription: &SubscriptionName, error: &SourceError) {
    // This one is told when it comes about.
    if let SourceError::CloseTimedOut { .. } = error {
        return;
    }
    tracing::warn!(
        subscription = subscription.as_str(),
        error = error as &dyn std::error::Error,
        "The source was dropped before its host read the error that it ended with."
    );
}

/// What happens to every stream all day is for debugging only.
fn tell(
    subscription: &SubscriptionName,
    endpoint: &str,
    failure: Option<&RpcError>,
    notice: &Notice,
) {
    let subscription = subscription.as_str();
    let error = failure.map(tracing::field::display);
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
            endpoint,
            slot,
            failures,
            ?delay,
            error,
            "A pull stream fails again and again; nothing is received on it, nothing is lost, and it is tried until the source is closed."
        ),
        Notice::StreamUnanswered { slot, silence } => tracing::debug!(
            subscription,
            slot,
            ?silence,
            "A pull stream was not answered, as on an idle subscription of some servers, and is followed by another."
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
        Notice::Parked {
            messages,
            bytes,
            paused,
        } => tracing::warn!(
            subscription,
            messages,
            bytes,
            ?paused,
            "A paused subscription holds too much: its streams are closed and what was not handed out is given back, until it is resumed."
        ),
        Notice::BudgetSpent { waited } => {
            tracing::warn!(subscription, ?waited, "The budget of this source is spent.")
        }
        Notice::Unparked { paused } => tracing::info!(
            subscription,
            ?paused,
            "A parked subscription is resumed and opens its streams again."
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
        Notice::NothingCommitted {
            checkpoints,
            waited,
            unacknowledged,
        } => tracing::warn!(
            subscription,
            checkpoints,
            ?waited,
            unacknowledged,
            "Checkpoints are taken and none is committed: nothing is acknowledged, and what is held too long is given back."
        ),
        Notice::CommitSlow {
            epoch,
            waited,
            unconfirmed,
            in_flight,
            failed,
            attempts,
        } => tracing::warn!(
            subscription,
            endpoint,
            %epoch,
            ?waited,
            unconfirmed,
            requests_in_flight = in_flight,
            requests_to_repeat = failed,
            attempts,
            error,
            "A commit does not finish: the service has not confirmed its acknowledgements; they are sent until it does, and their leases are extended meanwhile."
        ),
        Notice::HoldTooShort { interval, max_hold } => tracing::warn!(
            subscription,
            ?interval,
            ?max_hold,
            "Checkpoints are so far apart that one late one lets messages be given back uncommitted; take them more often, or raise max_hold."
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
        Notice::CloseTimedOut {
            acknowledgements,
            releases,
        } => tracing::warn!(
            subscription,
            acknowledgements,
            releases,
            error,
            "The source ended before the service confirmed everything: the saved state names what is not acknowledged, and what is not given back comes again when its lease ends."
        ),
        Notice::CallFails { method, attempts } => tracing::warn!(
            subscription,
            method = match method {
                CallMethod::Acknowledge => "Acknowledge",
                CallMethod::ModifyAckDeadline => "ModifyAckDeadline",
            },
            endpoint,
            attempts,
            error,
            "A request fails again and again; it is kept and sent again."
        ),
    }
}
