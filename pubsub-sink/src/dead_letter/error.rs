use std::time::Duration;

use connector_core::Cause;
use gcp_wire::TopicName;

/// Why a dead-letter queue could not keep what it was given.
///
/// Found as the cause of
/// [`CheckpointError::Handler`](connector_core::CheckpointError::Handler).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DeadLetterError {
    /// A flush ran out of time. The next one covers the same dead letters again.
    #[error(
        "{unconfirmed} of {of} dead letters for {topic} were not confirmed within the {}s of flush_timeout ({}); none was dropped, they are still being sent and the next flush waits for them again",
        within.as_secs_f64(), pace(*unconfirmed, *of)
    )]
    Unconfirmed {
        /// The queue's topic.
        topic: TopicName,
        /// Dead letters that were not confirmed.
        unconfirmed: usize,
        /// Dead letters that the flush waited for.
        of: usize,
        /// The time that the flush had.
        within: Duration,
    },
    /// A dead letter could not be stored, and could not be later.
    #[error(
        "dead letters can no longer be published to {topic}; what was not confirmed is rejected again after a rebuild from the last saved state, remove the cause first"
    )]
    Ended {
        /// The queue's topic.
        topic: TopicName,
        /// What ended it.
        #[source]
        cause: Cause,
    },
}

/// None confirmed is another fault than too few.
const fn pace(unconfirmed: usize, of: usize) -> &'static str {
    if unconfirmed == of {
        "none arrived, the topic may be out of reach"
    } else {
        "some arrived, publishing is slow"
    }
}
