//! When a task is dispatched, for how long, and how often again.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use gcp_wire::proto;
use gcp_wire::proto::tasks::task::MessageType;

use super::{TaskError, TaskRetries};

/// Bounds of the dispatch deadline of an HTTP task, both included. Outside, the service answers
/// INVALID_ARGUMENT (recorded from the service).
pub(super) const HTTP_DEADLINE: RangeInclusive<Duration> =
    Duration::from_secs(15)..=Duration::from_secs(30 * 60);

/// Bounds of the dispatch deadline of an App Engine task, both included (interface definition).
pub(super) const APP_ENGINE_DEADLINE: RangeInclusive<Duration> =
    Duration::from_secs(15)..=Duration::from_secs(24 * 60 * 60 + 15);

/// How far ahead a task may be scheduled: 720 h. Beyond, the service answers INVALID_ARGUMENT
/// (recorded from the service).
const SCHEDULE_AHEAD: Duration = Duration::from_secs(720 * 60 * 60);

/// What tasks of every kind say about their dispatch.
#[derive(Debug, Clone, Default)]
pub(super) struct Dispatch {
    pub(super) schedule_at: Option<SystemTime>,
    pub(super) deadline: Option<Duration>,
    pub(super) retries: Option<TaskRetries>,
}

impl Dispatch {
    pub(super) fn check(
        &self,
        now: SystemTime,
        deadlines: RangeInclusive<Duration>,
    ) -> Result<(), TaskError> {
        if let Some(deadline) = self.deadline
            && !deadlines.contains(&deadline)
        {
            return Err(TaskError::DispatchDeadline {
                deadline,
                longest: *deadlines.end(),
            });
        }
        if let Some(at) = self.schedule_at
            && let Ok(ahead) = at.duration_since(now)
            && ahead > SCHEDULE_AHEAD
        {
            return Err(TaskError::ScheduledTooFar { ahead });
        }
        self.retries.as_ref().map_or(Ok(()), TaskRetries::check)
    }

    /// A task of which only this is said.
    pub(super) fn into_rest(self) -> proto::tasks::Task {
        proto::tasks::Task {
            schedule_time: self.schedule_at.map(timestamp),
            dispatch_deadline: self.deadline.map(span),
            retry_config: self.retries.map(TaskRetries::into_message),
            ..proto::tasks::Task::default()
        }
    }

    /// Whether nothing is said.
    pub(super) const fn is_default(&self) -> bool {
        let Self {
            schedule_at,
            deadline,
            retries,
        } = self;
        schedule_at.is_none() && deadline.is_none() && retries.is_none()
    }

    pub(super) fn into_message(self, name: String, does: MessageType) -> proto::tasks::Task {
        proto::tasks::Task {
            name,
            message_type: Some(does),
            ..self.into_rest()
        }
    }

    /// What a message says.
    pub(super) fn of_message(task: &proto::tasks::Task) -> Result<Self, TaskError> {
        let schedule_at = task.schedule_time.as_ref().map(|time| {
            time_of(time).ok_or(TaskError::Unreadable {
                part: "schedule_time",
            })
        });
        let deadline = task.dispatch_deadline.as_ref().map(|deadline| {
            span_of(deadline).ok_or(TaskError::Unreadable {
                part: "dispatch_deadline",
            })
        });
        Ok(Self {
            schedule_at: schedule_at.transpose()?,
            deadline: deadline.transpose()?,
            retries: task.retry_config.clone().map(TaskRetries::of_message),
        })
    }
}

/// The span as the wire has it. One that no message holds becomes the longest.
pub(super) fn span(span: Duration) -> proto::Duration {
    proto::Duration {
        seconds: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(span.subsec_nanos()).unwrap_or(0),
    }
}

/// The span that a message holds, unless it is negative or none.
pub(super) fn span_of(span: &proto::Duration) -> Option<Duration> {
    let seconds = u64::try_from(span.seconds).ok()?;
    Some(Duration::new(seconds, nanos_of(span.nanos)?))
}

fn nanos_of(nanos: i32) -> Option<u32> {
    u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)
}

/// The time that a message holds, unless it is none that this machine can tell.
fn time_of(time: &proto::Timestamp) -> Option<SystemTime> {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let second = if time.seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    second?.checked_add(Duration::new(0, nanos_of(time.nanos)?))
}

/// The time as the wire has it. Before 1970 the seconds are negative and the nanoseconds still
/// count forward.
fn timestamp(time: SystemTime) -> proto::Timestamp {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let nanos = |span: Duration| i32::try_from(span.subsec_nanos()).unwrap_or(0);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => proto::Timestamp {
            seconds: seconds(after),
            nanos: nanos(after),
        },
        Err(error) => {
            let before = error.duration();
            match nanos(before) {
                0 => proto::Timestamp {
                    seconds: -seconds(before),
                    nanos: 0,
                },
                part => proto::Timestamp {
                    seconds: -seconds(before) - 1,
                    nanos: 1_000_000_000 - part,
                },
            }
        }
    }
}
