//! How far the service's clock is from ours.

use std::time::{Duration, SystemTime};

use gcp_wire::proto::longrunning::{Operation, operation};
use gcp_wire::proto::tasks::{BatchCreateTasksMetadata, BatchCreateTasksResponse, Task};
use prost::Message;

/// How far two clocks may be apart. The margin of a recovery deadline is ten times that at least.
const MAY_DIFFER: Duration = Duration::from_secs(60);

/// How far the clocks are apart, when that is more than they may differ. The service made the task
/// between `sent` and `now`.
pub(super) fn of_task(task: &Task, sent: SystemTime, now: SystemTime) -> Option<Duration> {
    let created = SystemTime::try_from(task.create_time?).ok()?;
    apart(created, sent, now)
}

/// As for a task, by the first task that a call made, or by the beginning of its operation where
/// that is not done. The operation is the answer to the call: one that is read later tells of times
/// before it was asked for.
pub(super) fn of_batch(
    operation: &Operation,
    sent: SystemTime,
    now: SystemTime,
) -> Option<Duration> {
    if let Some(operation::Result::Response(response)) = &operation.result {
        let response = BatchCreateTasksResponse::decode(response.value.as_slice()).ok()?;
        return of_task(response.tasks.first()?, sent, now);
    }
    let metadata = operation.metadata.as_ref()?.value.as_slice();
    let began = BatchCreateTasksMetadata::decode(metadata).ok()?.start_time;
    apart(SystemTime::try_from(began?).ok()?, sent, now)
}

fn apart(there: SystemTime, sent: SystemTime, now: SystemTime) -> Option<Duration> {
    let ahead = there.duration_since(now).unwrap_or_default();
    // The service tells whole seconds.
    let behind = sent.duration_since(there).unwrap_or_default();
    Some(ahead.max(behind)).filter(|apart| *apart > MAY_DIFFER)
}
