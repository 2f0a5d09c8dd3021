//! Messages that wait in the state for their commit.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{Bytes, BytesMut};
use gcp_wire::{TopicName, proto::pubsub::PubsubMessage};
use prost::{DecodeError, Message};

use crate::message;

/// What tells a staged message from every other, over restarts and rollbacks.
///
/// Minted when the message is staged, saved with it, and unchanged by a restore: a sink that is
/// given one message by several states publishes it once, and a consumer that is shown it in
/// attributes can drop the rare message that was published twice. Counters alone would name other
/// messages after a rollback, so they count within an incarnation that is drawn at random whenever a
/// sink is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Identity {
    /// Drawn at random (122 bits, a version 4 UUID) by the sink that staged the message.
    pub incarnation: u128,
    /// Counts that sink's messages, from 0.
    pub sequence: u64,
}

/// A message that the service refused for itself alone after its checkpoint was durable, and whose
/// failure handler said [`Fail`](connector_core::Verdict::Fail).
///
/// Its source has forgotten it by then, so it is kept aside in the sink's state until the operator
/// decides: see [`quarantined`](crate::PubsubSink::quarantined).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// Which message it is.
    pub identity: Identity,
    /// Where it was to go.
    pub topic: TopicName,
    /// The encoded `PubsubMessage`.
    pub message: Bytes,
    /// What the service said, at most 1,024 bytes of it.
    pub reason: String,
}

// The message is the user's: its length only in a log.
impl fmt::Debug for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quarantined")
            .field("identity", &self.identity)
            .field("topic", &self.topic)
            .field("message_bytes", &self.message.len())
            .field("reason", &self.reason)
            .finish()
    }
}

/// Mints the identities of one sink's messages.
#[derive(Debug)]
pub(crate) struct Minting {
    incarnation: u128,
    next: u64,
}

impl Minting {
    pub(crate) const fn new(incarnation: u128) -> Self {
        Self {
            incarnation,
            next: 0,
        }
    }

    pub(crate) const fn mint(&mut self) -> Identity {
        let sequence = self.next;
        self.next += 1;
        Identity {
            incarnation: self.incarnation,
            sequence,
        }
    }
}

/// A message in the stage. Shared by the ledger and by the states that name it.
pub(crate) struct Staged {
    pub(crate) identity: Identity,
    pub(crate) topic: TopicName,
    pub(crate) key: Option<Arc<str>>,
    /// The frame's length.
    pub(crate) bytes: usize,
    /// The message as part of a request, until it has its verdict. States and the ledger's segments
    /// live on for as long as one of their messages does; without letting go of the others' bytes,
    /// one message that stands still would hold a whole epoch in memory.
    frame: Mutex<Option<Bytes>>,
}

impl Staged {
    pub(crate) fn new(
        identity: Identity,
        topic: TopicName,
        key: Option<Arc<str>>,
        frame: Bytes,
    ) -> Self {
        Self {
            identity,
            topic,
            key,
            bytes: frame.len(),
            frame: Mutex::new(Some(frame)),
        }
    }

    /// The same message, to be let go of by itself.
    pub(crate) fn renewed(&self) -> Self {
        Self {
            identity: self.identity,
            topic: self.topic.clone(),
            key: self.key.clone(),
            bytes: self.bytes,
            frame: Mutex::new(self.frame()),
        }
    }

    /// A message that was saved as its encoding.
    pub(crate) fn read(
        identity: Identity,
        topic: TopicName,
        message: &Bytes,
    ) -> Result<Self, DecodeError> {
        let key = PubsubMessage::decode(message.clone())?.ordering_key;
        let key = (!key.is_empty()).then(|| Arc::from(key));
        // Copied: a slice would hold the whole state in memory.
        let mut frame = BytesMut::new();
        message::encode_again(message, &mut frame);
        Ok(Self::new(identity, topic, key, frame.freeze()))
    }

    /// The message as part of a request, while it has no verdict.
    pub(crate) fn frame(&self) -> Option<Bytes> {
        self.lock().clone()
    }

    /// The message has its verdict: a state that is written from now on need not name it.
    pub(crate) fn let_go(&self) {
        *self.lock() = None;
    }

    // One field, whole at every moment: a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, Option<Bytes>> {
        self.frame.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged")
            .field("identity", &self.identity)
            .field("topic", &self.topic)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// What the ledger keeps of a record.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// Nothing: it is on its way, or with the failure handler.
    Passing,
    /// The whole message, which the state names.
    Staged(Arc<Staged>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_of_one_incarnation_differ_and_count_up() {
        let mut minting = Minting::new(7);
        let first = minting.mint();
        let second = minting.mint();
        assert_eq!((first.incarnation, first.sequence), (7, 0));
        assert!(first < second);
    }

    #[test]
    fn a_message_with_its_verdict_holds_no_bytes() {
        let topic = TopicName::new("demo", "orders").unwrap();
        let frame = Bytes::from_static(b"frame");
        let staged = Staged::new(Minting::new(1).mint(), topic, None, frame.clone());
        assert_eq!(staged.frame(), Some(frame));
        staged.let_go();
        assert_eq!(staged.frame(), None);
        assert_eq!(staged.bytes, 5, "what it is accounted with stays known");
    }
}
