//! What the host saves of a sink.

mod body;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt, sync::Arc};

use bytes::Bytes;
use connector_core::{StateError, Versioned, ledger::View, serde_through_envelope};

use crate::{
    Delivery,
    staged::{Entry, Identity, Quarantined, Staged},
};

/// The state of a sink at an epoch.
///
/// That of a flushing sink names no message: by the time its snapshot receipt resolves, everything
/// before the cut is stored by the service, skipped, or in the failure handler's hands. It is saved
/// so that a host is told when a state is given to the wrong builder.
///
/// That of a staged sink holds every message that is sealed, or committed and not confirmed, and
/// those in quarantine: whole messages, so it deserves the protection that they do.
#[derive(Clone)]
pub struct SinkState {
    instance: String,
    delivery: Delivery,
    named: Named,
}

/// The messages that a state names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    /// Read from a saved state.
    pub(crate) read: Vec<Arc<Staged>>,
    /// As they stood in the ledger at the cut. Shared with it, so that a cut copies no message and
    /// encoding them holds no lock.
    pub(crate) cut: View<Entry>,
    pub(crate) quarantined: Vec<Arc<Quarantined>>,
}

impl Named {
    /// The messages to be published, without those in quarantine.
    fn staged(&self) -> impl Iterator<Item = &Arc<Staged>> {
        let aside: BTreeSet<Identity> = self.quarantined.iter().map(|kept| kept.identity).collect();
        let cut = self.cut.iter().filter_map(|entry| match entry {
            Entry::Staged(staged) => Some(staged),
            Entry::Passing => None,
        });
        self.read
            .iter()
            .chain(cut)
            .filter(move |staged| !aside.contains(&staged.identity))
    }
}

impl SinkState {
    pub(crate) fn flushed(instance: impl Into<String>) -> Self {
        Self {
            instance: instance.into(),
            delivery: Delivery::Flush,
            named: Named::default(),
        }
    }

    pub(crate) fn staged(instance: impl Into<String>, named: Named) -> Self {
        Self {
            instance: instance.into(),
            delivery: Delivery::Staged,
            named,
        }
    }

    /// The messages that a restore publishes: staged ones without a verdict.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages_named().count()
    }

    /// The messages in quarantine.
    #[must_use]
    pub fn quarantined(&self) -> usize {
        self.named.quarantined.len()
    }

    pub(crate) fn messages_named(&self) -> impl Iterator<Item = &Arc<Staged>> {
        // One that got its verdict since the cut was committed by an earlier epoch that is durable.
        self.named
            .staged()
            .filter(|staged| staged.frame().is_some())
    }

    pub(crate) fn kept_aside(&self) -> &[Arc<Quarantined>] {
        &self.named.quarantined
    }
}

impl Versioned for SinkState {
    const CONNECTOR: &'static str = "pubsub-sink";
    const VERSION: u32 = 2;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        match self.delivery {
            Delivery::Flush => body::flushed(),
            Delivery::Staged => body::staged(&self.named),
        }
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        let decoded = match version {
            1 => body::decode_v1(&body).map(|()| None),
            Self::VERSION => body::decode_v2(&body),
            found => return Err(StateError::unknown_version::<Self>(found)),
        };
        match decoded {
            Ok(None) => Ok(Self::flushed(instance)),
            Ok(Some(named)) => Ok(Self::staged(instance, named)),
            Err(problem) => Err(StateError::damaged::<Self>(version, problem)),
        }
    }
}

/// Equal when they are saved as the same bytes.
impl PartialEq for SinkState {
    fn eq(&self, other: &Self) -> bool {
        self.instance == other.instance && self.encode_body() == other.encode_body()
    }
}

impl Eq for SinkState {}

// Whole messages: their numbers only in a log.
impl fmt::Debug for SinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkState")
            .field("instance", &self.instance)
            .field("delivery", &self.delivery)
            .field("messages", &self.messages())
            .field("quarantined", &self.quarantined())
            .finish()
    }
}

serde_through_envelope!(SinkState);
