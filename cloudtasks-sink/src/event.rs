//! Every line the sink writes to the log.

use std::time::Duration;

use connector_core::flow::Holder;
use gcp_wire::{QueueName, RpcError};

use crate::error::SinkError;

/// Creates fail and are tried again.
pub(crate) fn retrying(instance: &str, queue: &QueueName, failures: u64, error: &RpcError) {
    tracing::warn!(
        instance,
        queue = queue.as_str(),
        failures,
        error = %error,
        "Creating tasks failed and is being tried again."
    );
}

/// The host waits for room that somebody holds.
pub(crate) fn waiting_for_room(instance: &str, after: Duration, holders: &[Holder]) {
    let most = holders
        .iter()
        .max_by_key(|holder| (holder.held.items, holder.held.bytes));
    tracing::warn!(
        instance,
        waited_s = after.as_secs(),
        holder = most.map(|holder| &*holder.name),
        holder_items = most.map(|holder| holder.held.items),
        holder_bytes = most.map(|holder| holder.held.bytes),
        "The Cloud Tasks sink has had no room for a record for a while."
    );
}

/// A name that nobody can know existed already.
pub(crate) fn unexpected_duplicate(instance: &str, queue: &QueueName, times: u64) {
    tracing::warn!(
        instance,
        queue = queue.as_str(),
        times,
        "A task name minted at random existed before it was sent."
    );
}

/// The sink ended with an error.
pub(crate) fn failed(instance: &str, pending: usize, error: &SinkError) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(
        instance,
        pending,
        error = %error,
        cause = cause.as_deref(),
        "The Cloud Tasks sink ended with an error."
    );
}

/// The sink ended because its host closed it.
pub(crate) fn closed(instance: &str) {
    tracing::debug!(instance, "The Cloud Tasks sink is closed.");
}

/// The sink was dropped and not closed.
pub(crate) fn dropped(instance: &str, pending: usize) {
    tracing::warn!(
        instance,
        pending,
        "The Cloud Tasks sink was dropped without close; what it accepted is still being sent."
    );
}
