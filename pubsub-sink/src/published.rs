//! What became of a submitted record.

use connector_core::{Cause, RejectedReason};

/// What became of a record given to [`submit`](crate::PubsubSink::submit).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Published {
    /// The service stored the message.
    Stored {
        /// The id the service gave it, unique within its topic.
        message_id: String,
    },
    /// The encoder skipped the record.
    Skipped,
    /// The record was rejected, and the failure handler has it.
    Rejected {
        /// Which rule it broke.
        reason: RejectedReason,
        /// What the encoder, the check or the service said.
        cause: Option<Cause>,
    },
    /// The sink had no room and did not accept the record. Wait for
    /// [`ready`](crate::PubsubSink::ready) before each record.
    NotAccepted,
}

impl Published {
    /// The id of the message, if it was stored.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        match self {
            Self::Stored { message_id } => Some(message_id),
            Self::Skipped | Self::Rejected { .. } | Self::NotAccepted => None,
        }
    }
}
