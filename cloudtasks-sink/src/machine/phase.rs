//! Whether the sink runs, closes, or has ended, and how.

use std::time::{Duration, Instant};

use connector_core::{Cause, CheckpointError};

use crate::error::SinkError;

/// One sticky end.
#[derive(Debug)]
pub(super) enum Phase {
    Running,
    /// Takes no records any more; ends when everything accepted has its verdict.
    Closing {
        deadline: Option<Instant>,
        budget: Duration,
    },
    /// The host closed it, and nothing is owed.
    Closed,
    Failed {
        error: SinkError,
        told: bool,
    },
}

impl Phase {
    /// Whether records are taken.
    pub(super) fn check_open(&mut self) -> Result<(), SinkError> {
        match self {
            Self::Running => Ok(()),
            Self::Closing { .. } | Self::Closed => Err(SinkError::Closed {
                cause: Cause::new(SinkError::ClosedByHost),
            }),
            Self::Failed { error, told } => Err(tell(error, told)),
        }
    }

    /// Whether checkpoints go on.
    pub(super) fn check_alive(&self) -> Result<(), CheckpointError> {
        match self {
            Self::Running | Self::Closing { .. } => Ok(()),
            Self::Closed | Self::Failed { .. } => Err(CheckpointError::Closed {
                cause: self.cause(),
            }),
        }
    }

    /// Why the sink takes nothing any more.
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Failed { error, .. } => error.clone().into_cause(),
            Self::Running | Self::Closing { .. } | Self::Closed => {
                Cause::new(SinkError::ClosedByHost)
            }
        }
    }

    /// The error it ended with.
    pub(super) const fn error(&self) -> Option<&SinkError> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::Running | Self::Closing { .. } | Self::Closed => None,
        }
    }

    /// How the sink ended. Nothing while it has not.
    pub(super) fn ended(&mut self) -> Option<Result<(), SinkError>> {
        match self {
            Self::Running | Self::Closing { .. } => None,
            Self::Closed => Some(Ok(())),
            Self::Failed { error, told } => Some(Err(tell(error, told))),
        }
    }

    /// Ends as [`Closed`](Self::Closed) what was closing. Answers whether it was.
    pub(super) fn finish_closing(&mut self) -> bool {
        match self {
            Self::Closing { .. } => {
                *self = Self::Closed;
                true
            }
            Self::Running | Self::Closed | Self::Failed { .. } => false,
        }
    }

    /// Starts closing. Answers whether it did: what closes or has ended stays as it is.
    pub(super) fn start_closing(&mut self, now: Instant, budget: Duration) -> bool {
        match self {
            Self::Running => {
                *self = Self::Closing {
                    deadline: now.checked_add(budget),
                    budget,
                };
                true
            }
            Self::Closing { .. } | Self::Closed | Self::Failed { .. } => false,
        }
    }

    /// Ends with an error. Answers whether it did: the first end stands.
    pub(super) fn fail(&mut self, error: SinkError) -> bool {
        match self {
            Self::Running | Self::Closing { .. } => {
                *self = Self::Failed { error, told: false };
                true
            }
            Self::Closed | Self::Failed { .. } => false,
        }
    }

    pub(super) const fn has_ended(&self) -> bool {
        match self {
            Self::Running | Self::Closing { .. } => false,
            Self::Closed | Self::Failed { .. } => true,
        }
    }

    /// When closing must be over.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Closing { deadline, .. } => *deadline,
            Self::Running | Self::Closed | Self::Failed { .. } => None,
        }
    }

    /// The budget of a closing that is not over in time.
    pub(super) fn close_expired(&self, now: Instant) -> Option<Duration> {
        match self {
            Self::Closing {
                deadline: Some(deadline),
                budget,
            } if now >= *deadline => Some(*budget),
            Self::Running | Self::Closing { .. } | Self::Closed | Self::Failed { .. } => None,
        }
    }
}

/// The error itself for the first who asks, `Closed` for everyone later.
fn tell(error: &SinkError, told: &mut bool) -> SinkError {
    if std::mem::replace(told, true) {
        SinkError::Closed {
            cause: error.clone().into_cause(),
        }
    } else {
        error.clone()
    }
}
