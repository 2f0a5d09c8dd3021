//! How a task is dispatched again.

use std::num::NonZeroU32;
use std::time::Duration;

use gcp_wire::proto;
use gcp_wire::proto::tasks::RetryConfig;

use super::TaskError;
use super::dispatch::{span, span_of};
use super::error::RetryRule;

/// The longest span of an interface message: 10,000 years of 365.25 days (its definition).
const LONGEST: Duration = Duration::from_secs(315_576_000_000);

/// How often and how fast Cloud Tasks repeats the call of one task when it fails, in place of its
/// queue's own settings.
///
/// What is not set here stays as the queue has it. Not to be confused with how the *sink* repeats
/// its creation of the task, which is [`retries`](crate::SinkBuilder::retries) of the builder.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::time::Duration;
/// use cloudtasks_sink::{HttpTask, TaskRetries};
///
/// let task = HttpTask::post("https://partner.example/orders")?.retries(
///     TaskRetries::default()
///         .attempts(NonZeroU32::new(5).expect("5 is not zero"))
///         .backoff(Duration::from_secs(1), Duration::from_secs(60)),
/// );
/// # let _: HttpTask = task;
/// # Ok::<(), cloudtasks_sink::TaskError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use = "retries do nothing until a task has them"]
pub struct TaskRetries(RetryConfig);

impl TaskRetries {
    /// Calls at most this often, the first call included. More than 2,147,483,647 make the task a
    /// rejection.
    pub fn attempts(mut self, attempts: NonZeroU32) -> Self {
        // What does not fit is found by the check.
        self.0.max_attempts = i32::try_from(attempts.get()).unwrap_or(i32::MIN);
        self
    }

    /// Calls as often as it takes.
    pub const fn unlimited(mut self) -> Self {
        self.0.max_attempts = -1;
        self
    }

    /// Calls no more when this time has passed since the first call. Whole seconds, or the task is
    /// a rejection. Zero: no limit of time.
    pub fn within(mut self, time: Duration) -> Self {
        self.0.max_retry_duration = Some(span(time));
        self
    }

    /// Waits between `shortest` and `longest` before a repeated call. A shortest wait above the
    /// longest makes the task a rejection.
    pub fn backoff(mut self, shortest: Duration, longest: Duration) -> Self {
        self.0.min_backoff = Some(span(shortest));
        self.0.max_backoff = Some(span(longest));
        self
    }

    /// Doubles the wait this often before it grows by a constant. Zero leaves it to the queue, and
    /// more than 2,147,483,647 make the task a rejection.
    pub fn doublings(mut self, doublings: u32) -> Self {
        self.0.max_doublings = i32::try_from(doublings).unwrap_or(i32::MIN);
        self
    }

    pub(super) const fn of_message(message: RetryConfig) -> Self {
        Self(message)
    }

    pub(super) fn into_message(self) -> RetryConfig {
        self.0
    }

    /// The rules by which the service refuses a task (recorded from the service).
    pub(super) fn check(&self) -> Result<(), TaskError> {
        let broken = |rule| Err(TaskError::Retries { rule });
        if self.0.max_attempts < -1 {
            return broken(RetryRule::Attempts);
        }
        if self.0.max_doublings < 0 {
            return broken(RetryRule::Doublings);
        }
        let readable = |given: &Option<proto::Duration>| match given {
            None => Ok(None),
            Some(given) => span_of(given)
                .filter(|span| *span <= LONGEST)
                .map(Some)
                .ok_or(TaskError::Retries {
                    rule: RetryRule::Span,
                }),
        };
        let within = readable(&self.0.max_retry_duration)?;
        if within.is_some_and(|within| within.subsec_nanos() != 0) {
            return broken(RetryRule::WholeSeconds);
        }
        let shortest = readable(&self.0.min_backoff)?;
        let longest = readable(&self.0.max_backoff)?;
        if let (Some(shortest), Some(longest)) = (shortest, longest)
            && shortest > longest
        {
            return broken(RetryRule::Backoff);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HttpTask;

    const SECOND: Duration = Duration::from_secs(1);

    fn attempts(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    fn rule(retries: &TaskRetries) -> Option<RetryRule> {
        match retries.check() {
            Ok(()) => None,
            Err(TaskError::Retries { rule }) => Some(rule),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_set_is_sent_and_the_rest_is_left_to_the_queue() {
        let sent = |retries| {
            let task = HttpTask::post("http://h/").unwrap().retries(retries);
            task.into_message(String::new()).retry_config.unwrap()
        };
        assert_eq!(sent(TaskRetries::default()), RetryConfig::default());
        let all = TaskRetries::default()
            .attempts(attempts(5))
            .within(60 * SECOND)
            .backoff(SECOND / 2, 9 * SECOND)
            .doublings(3);
        let expected = RetryConfig {
            max_attempts: 5,
            max_retry_duration: Some(span(60 * SECOND)),
            min_backoff: Some(span(SECOND / 2)),
            max_backoff: Some(span(9 * SECOND)),
            max_doublings: 3,
        };
        assert_eq!(sent(all), expected);
        assert_eq!(sent(TaskRetries::default().unlimited()).max_attempts, -1);
    }

    #[test]
    fn a_rule_of_the_service_that_retries_break_is_named() {
        let retries = TaskRetries::default;
        for fine in [
            retries(),
            retries().unlimited(),
            retries().attempts(attempts(1)).doublings(16),
            retries().attempts(attempts(u32::MAX / 2)),
            retries().within(Duration::ZERO),
            retries().within(3_600 * SECOND),
            retries().backoff(SECOND, SECOND),
            retries().backoff(Duration::ZERO, LONGEST),
        ] {
            assert_eq!(rule(&fine), None, "{fine:?}");
        }
        for (broken, expected) in [
            (retries().attempts(attempts(u32::MAX)), RetryRule::Attempts),
            (retries().doublings(u32::MAX), RetryRule::Doublings),
            (retries().within(SECOND / 2), RetryRule::WholeSeconds),
            (retries().within(Duration::MAX), RetryRule::Span),
            (retries().backoff(SECOND, LONGEST + SECOND), RetryRule::Span),
            (retries().backoff(2 * SECOND, SECOND), RetryRule::Backoff),
        ] {
            assert_eq!(rule(&broken), Some(expected), "{broken:?}");
            let task = HttpTask::post("http://h/").unwrap().retries(broken);
            assert!(task.check(std::time::SystemTime::UNIX_EPOCH, None).is_err());
        }
        let negative = RetryConfig {
            min_backoff: Some(proto::Duration {
                seconds: -1,
                nanos: 0,
            }),
            ..RetryConfig::default()
        };
        assert_eq!(rule(&TaskRetries(negative)), Some(RetryRule::Span));
    }
}
