//! What a checkpoint call can answer when it does not succeed.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use crate::Epoch;

/// The shared cause of a terminal state, cheap to hand to every later call.
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync + 'static>);

impl Cause {
    /// Wraps an error.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }

    /// The error inside.
    #[must_use]
    pub fn get(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl From<Box<dyn Error + Send + Sync + 'static>> for Cause {
    fn from(error: Box<dyn Error + Send + Sync + 'static>) -> Self {
        Self(Arc::from(error))
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Cause {
    // A transparent wrapper: its source is the source of the error inside, so that a printed chain
    // names every link once.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The driver of a connector ended without giving a reason: it was dropped, or its runtime was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the connector's driver is gone; keep its future polled, or its runtime alive, until close() returns"
)]
#[non_exhaustive]
pub struct DriverGone;

/// Why a snapshot, a commit or a failure handler's receipt did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The epoch is not newer than one seen before. Nothing was changed.
    #[error(
        "epoch {epoch} is not newer than epoch {newest}; nothing was changed, take the checkpoint under a higher number"
    )]
    OutOfOrder {
        /// The number that was refused.
        epoch: Epoch,
        /// The newest number seen, aborted ones included.
        newest: Epoch,
    },
    /// The epoch lies beyond the last snapshot. Nothing was settled.
    #[error(
        "epoch {epoch} was never taken by this connector; nothing was settled, commit only what snapshot() was called for"
    )]
    Unknown {
        /// The number that was refused.
        epoch: Epoch,
    },
    /// The epoch was given up by the host before its state was complete.
    #[error("epoch {epoch} was aborted; its items are part of the next epoch and stay owed")]
    Aborted {
        /// The epoch that was aborted.
        epoch: Epoch,
    },
    /// What the epoch covers could not be delivered, staged or handled. It all stays owed.
    #[error(
        "epoch {epoch} could not be completed; everything it covers stays owed, abort it and take another checkpoint, or rebuild from the last saved state"
    )]
    Incomplete {
        /// The epoch whose receipt this is.
        epoch: Epoch,
        /// What went wrong.
        #[source]
        cause: Cause,
    },
    /// The service did not confirm in time. The connector keeps trying.
    #[error("{pending} items of epoch {epoch} were not confirmed within {}s; they stay committed and are still being sent", after.as_secs_f64())]
    Unconfirmed {
        /// The epoch whose receipt this is.
        epoch: Epoch,
        /// Items without a verdict.
        pending: usize,
        /// How long the receipt waited.
        after: Duration,
    },
    /// Items were refused and are kept aside, and no later state that says so was made durable in
    /// time. They stay owed.
    #[error(
        "{items} refused items up to epoch {epoch} are kept aside, and for {}s no state that says so was committed; they stay owed, take and commit another checkpoint before this epoch is marked as settled", after.as_secs_f64()
    )]
    Retained {
        /// The epoch whose receipt this is.
        epoch: Epoch,
        /// Items kept aside that only older states name.
        items: usize,
        /// How long the receipt waited for a later checkpoint.
        after: Duration,
    },
    /// A failure handler could not take or keep what it was given. It stays owed.
    #[error(
        "the failure handler could not keep what it was given; it stays owed and the next flush covers it again"
    )]
    Handler {
        /// What went wrong inside the handler.
        #[source]
        cause: Cause,
    },
    /// The connector ended. State already given out stays valid.
    #[error(
        "the connector is closed; whatever was not confirmed comes again after a restore from the last saved state"
    )]
    Closed {
        /// The terminal error.
        #[source]
        cause: Cause,
    },
}

impl CheckpointError {
    /// The answer of a connector whose driver is gone.
    #[must_use]
    pub fn driver_gone() -> Self {
        Self::Closed {
            cause: Cause::new(DriverGone),
        }
    }
}
