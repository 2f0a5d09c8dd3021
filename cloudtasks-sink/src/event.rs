//! Every line the sink writes to the log.

use std::time::Duration;

use connector_core::flow::Holder;
use gcp_wire::{Code, QueueName, RpcError};
use tracing::Instrument as _;

use crate::error::SinkError;
use crate::machine::{CallId, RecordId};
use crate::queue_state::QueueState;
use crate::resolution::Resolution;
use crate::state::KeptReason;

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

/// A queue takes tasks and dispatches none.
pub(crate) fn queue_stopped(instance: &str, queue: &QueueName, state: QueueState) {
    tracing::warn!(
        instance,
        queue = queue.as_str(),
        ?state,
        "A queue does not dispatch its tasks: they pile up until it is resumed."
    );
}

/// A queue dispatches again.
pub(crate) fn queue_runs(instance: &str, queue: &QueueName) {
    tracing::info!(
        instance,
        queue = queue.as_str(),
        "A queue dispatches its tasks again."
    );
}

/// A queue could not be looked at.
pub(crate) fn queue_unseen(instance: &str, queue: &QueueName, error: &RpcError) {
    tracing::warn!(
        instance,
        queue = queue.as_str(),
        error = %error,
        "A queue could not be looked at, so that its state and its overrides are not known."
    );
}

/// For long there were more tasks than streams to create them on.
pub(crate) fn few_streams(instance: &str, streams: usize, waiting: usize) {
    tracing::warn!(
        instance,
        streams,
        waiting,
        "Tasks have waited half a minute for a stream: each of the channels carries 100 calls."
    );
}

/// More records are let in than the connections carry.
pub(crate) fn more_than_carried(instance: &str, records: usize, carried: usize) {
    tracing::warn!(
        instance,
        records,
        carried,
        "More records are let in than the channels carry at a time: each of them carries 100 calls."
    );
}

/// A span around the call that creates one task.
pub(crate) fn creating(instance: &str, queue: &QueueName, record: RecordId) -> tracing::Span {
    tracing::trace_span!(
        "create_task",
        instance,
        queue = queue.as_str(),
        ?record,
        code = tracing::field::Empty
    )
}

/// A span around the call that creates many tasks.
pub(crate) fn creating_batch(instance: &str, queue: &QueueName, call: CallId) -> tracing::Span {
    tracing::trace_span!(
        "create_batch",
        instance,
        queue = queue.as_str(),
        ?call,
        code = tracing::field::Empty
    )
}

/// Tells a call's span how it ended, and what the call was about.
pub(crate) async fn within<T>(
    span: tracing::Span,
    call: impl Future<Output = Result<T, RpcError>>,
) -> Result<T, RpcError> {
    let outcome = call.instrument(span.clone()).await;
    let code = outcome.as_ref().map_or_else(RpcError::code, |_| Code::Ok);
    span.record("code", code.name());
    outcome
}

/// Committed tasks wait for their queue.
pub(crate) fn holding(instance: &str, queue: &QueueName, waiting: usize, error: &RpcError) {
    tracing::warn!(
        instance,
        queue = queue.as_str(),
        waiting,
        error = %error,
        "A queue takes no tasks; those committed for it wait and are not lost."
    );
}

/// Committed tasks were kept aside.
pub(crate) fn kept(
    instance: &str,
    queue: &QueueName,
    why: KeptReason,
    times: u64,
    cause: Option<&str>,
) {
    tracing::error!(
        instance,
        queue = queue.as_str(),
        ?why,
        times,
        cause,
        "Committed tasks were not created and are kept aside for an operator."
    );
}

/// The restored state has tasks that an operator has not resolved.
pub(crate) fn kept_before(instance: &str, kept: usize) {
    tracing::warn!(
        instance,
        kept,
        "Tasks of an earlier run are kept aside for an operator."
    );
}

/// An operator resolved a task that was kept aside.
pub(crate) fn resolved(instance: &str, task: &str, resolution: Resolution) {
    tracing::warn!(
        instance,
        task,
        ?resolution,
        "An operator resolved a task that was kept aside."
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

/// The sink was dropped and not closed. Of one that stages, so many records were not committed.
pub(crate) fn dropped(instance: &str, pending: usize, uncommitted: Option<usize>) {
    let Some(uncommitted) = uncommitted else {
        tracing::warn!(
            instance,
            pending,
            "The Cloud Tasks sink was dropped without close; what it accepted is still being sent."
        );
        return;
    };
    tracing::warn!(
        instance,
        pending,
        uncommitted,
        "A staging Cloud Tasks sink was dropped without close; of what it accepted only what was committed is still being sent."
    );
}
