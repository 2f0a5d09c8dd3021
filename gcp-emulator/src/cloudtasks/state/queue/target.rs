//! What a queue puts in place of its tasks' targets.

use super::super::TaskRefusal;
use crate::cloudtasks::proto::task::MessageType;
use crate::cloudtasks::proto::{HttpTarget, Queue, Task};

/// IF_NOT_EXISTS, ALWAYS, and unspecified, which means ALWAYS.
const MODES: std::ops::RangeInclusive<i32> = 0..=2;

pub(super) fn check(target: Option<&HttpTarget>) -> Result<(), TaskRefusal> {
    let Some(uri) = target.and_then(|target| target.uri_override.as_ref()) else {
        return Ok(());
    };
    let refused = |rule| Err(TaskRefusal::QueueSetting { rule });
    let is_empty = uri.scheme.is_none()
        && uri.host.is_none()
        && uri.port.is_none()
        && uri.path_override.is_none()
        && uri.query_override.is_none();
    if is_empty {
        return refused("Error in parsing HttpTarget. Invalid uri_override.");
    }
    if uri.port.is_some_and(|port| port < 0) {
        return refused("Error in parsing HttpTarget. Port number should be a positive integer.");
    }
    if !MODES.contains(&uri.uri_override_enforce_mode) {
        return refused("Error in parsing HttpTarget. ");
    }
    Ok(())
}

/// A queue's token takes the place of the task's when the task is created (recorded). Its address
/// only does when the task is dispatched, which nothing here is.
pub(in super::super) fn impose(queue: &Queue, task: &mut Task) {
    let token = queue
        .http_target
        .as_ref()
        .and_then(|target| target.authorization_header.clone());
    if let (Some(token), Some(MessageType::HttpRequest(request))) = (token, &mut task.message_type)
    {
        request.authorization_header = Some(token);
    }
}
