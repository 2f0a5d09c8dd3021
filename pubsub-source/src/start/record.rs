//! What is remembered of a job's start.

mod body;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use connector_core::{StateError, Versioned};
use gcp_wire::SubscriptionName;

use super::SeekTarget;

/// Names one seek, over all its repetitions: what was saved before it says nothing about what
/// comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SeekId(pub(crate) u128);

impl SeekId {
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.try_into().ok()?;
        Some(Self(u128::from_be_bytes(bytes)))
    }
}

/// A seek of all subscriptions of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seek {
    pub(crate) id: SeekId,
    pub(crate) target: SeekTarget,
}

/// What is remembered of a job's start, so that it is not begun twice.
///
/// It is saved as *intended* before the subscriptions are sought, with the very moment or snapshot
/// they are sought to, and as *done* afterwards. A start that finds it intended seeks to what it
/// says, whatever is configured by then; one that finds it done seeks nothing. Deleting it
/// makes the next start a first one, which is how an operator begins anew on purpose.
#[derive(Clone, PartialEq, Eq)]
pub struct StartRecord {
    instance: Arc<str>,
    subscriptions: Vec<SubscriptionName>,
    seek: Option<Seek>,
    done: bool,
}

impl StartRecord {
    pub(crate) fn intended(
        instance: Arc<str>,
        subscriptions: Vec<SubscriptionName>,
        seek: Seek,
    ) -> Self {
        Self {
            instance,
            subscriptions,
            seek: Some(seek),
            done: false,
        }
    }

    pub(crate) fn done(
        instance: Arc<str>,
        subscriptions: Vec<SubscriptionName>,
        seek: Option<Seek>,
    ) -> Self {
        Self {
            instance,
            subscriptions,
            seek,
            done: true,
        }
    }

    /// Whether the start is over, so that nothing is sought any more.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// The subscriptions that the job read, or is about to read, when this was saved.
    #[must_use]
    pub fn subscriptions(&self) -> &[SubscriptionName] {
        &self.subscriptions
    }

    pub(crate) fn seek(&self) -> Option<&Seek> {
        self.seek.as_ref()
    }
}

impl fmt::Debug for StartRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartRecord")
            .field("instance", &self.instance)
            .field("subscriptions", &self.subscriptions)
            .field("target", &self.seek.as_ref().map(|seek| &seek.target))
            .field("done", &self.done)
            .finish()
    }
}

impl Versioned for StartRecord {
    const CONNECTOR: &'static str = "pubsub-source-start";
    const VERSION: u32 = 1;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        body::encode(self)
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        if version != Self::VERSION {
            return Err(StateError::unknown_version::<Self>(version));
        }
        body::decode(instance, body)
            .map_err(|problem| StateError::damaged::<Self>(version, problem))
    }
}

connector_core::serde_through_envelope!(StartRecord);
