//! The envelope around a connector's saved state.

mod states;

pub use states::SavedStates;

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A connector's state as plain data: who wrote it, in which format, and the bytes.
///
/// The typed states of the connectors serialize as this envelope, so a host may also keep a
/// heterogeneous list of them (see [`Erased`](crate::Erased)) and hand each back to its builder.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    connector: String,
    instance: String,
    version: u32,
    body: Bytes,
}

/// A state type with a name, a format version and an encoding that decodes for ever.
///
/// The encoding of a released version never changes: a change gets a new version, and
/// [`decode_body`](Self::decode_body) goes on reading the old ones. Golden files hold them to it.
pub trait Versioned: Sized {
    /// The kind of connector, for example `"pubsub-source"`.
    const CONNECTOR: &'static str;

    /// The format version this build writes.
    const VERSION: u32;

    /// The name that tells several connectors of one kind apart in one host.
    fn instance(&self) -> &str;

    /// Encodes the state in format [`VERSION`](Self::VERSION).
    fn encode_body(&self) -> Bytes;

    /// Decodes a state of format `version`.
    ///
    /// # Errors
    ///
    /// [`StateError::UnknownVersion`] for a version this build does not read,
    /// [`StateError::Damaged`] for bytes that are no state of that version.
    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError>;
}

impl SavedState {
    /// Puts a state into its envelope.
    #[must_use]
    pub fn of<S: Versioned>(state: &S) -> Self {
        Self {
            connector: S::CONNECTOR.to_owned(),
            instance: state.instance().to_owned(),
            version: S::VERSION,
            body: state.encode_body(),
        }
    }

    /// Takes a state out of its envelope.
    ///
    /// # Errors
    ///
    /// [`StateError::OtherConnector`] when the envelope was written by another kind of connector,
    /// and what [`Versioned::decode_body`] answers.
    pub fn open<S: Versioned>(self) -> Result<S, StateError> {
        if self.connector != S::CONNECTOR {
            return Err(StateError::OtherConnector {
                found: self.connector,
                expected: S::CONNECTOR,
            });
        }
        S::decode_body(self.version, &self.instance, self.body)
    }

    /// The kind of connector that wrote the state.
    #[must_use]
    pub fn connector(&self) -> &str {
        &self.connector
    }

    /// The name of the connector that wrote the state.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// The format version of the body.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The encoded state.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}

// The body holds ids and, for staged sinks, whole messages: lengths only in a log.
impl fmt::Debug for SavedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedState")
            .field("connector", &self.connector)
            .field("instance", &self.instance)
            .field("version", &self.version)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// Why a saved state cannot be used. Nothing was read from it and nothing was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The state was written by another kind of connector.
    #[error(
        "the saved state belongs to connector {found}, not to {expected}; nothing was restored or acknowledged, check which state goes to which builder"
    )]
    OtherConnector {
        /// The kind named in the envelope.
        found: String,
        /// The kind that was asked to restore it.
        expected: &'static str,
    },
    /// The state was written by another connector of the same kind.
    #[error(
        "the saved state belongs to instance {found:?} of {connector}, not to {expected:?}; nothing was restored or acknowledged, check which state goes to which builder"
    )]
    OtherInstance {
        /// The kind of connector.
        connector: &'static str,
        /// The instance named in the envelope.
        found: String,
        /// The instance that was asked to restore it.
        expected: String,
    },
    /// Two connectors of one kind have one name, so that neither could be told its state.
    #[error(
        "two connectors are called {connector} {instance:?}; nothing of this checkpoint was saved or committed, give each an instance name of its own, which stays"
    )]
    SameName {
        /// The kind of connector.
        connector: String,
        /// The name of both.
        instance: String,
    },
    /// A checkpoint has a state that no connector has asked for.
    #[error(
        "the checkpoint has a state of {connector} {instance:?} that no connector has taken; nothing of it was restored, and what it names would be forgotten: build that connector under that name, or save a checkpoint that owes nothing before it leaves"
    )]
    Unclaimed {
        /// The kind named in the envelope.
        connector: String,
        /// The instance named in the envelope.
        instance: String,
    },
    /// The format is newer (or older) than this build reads.
    #[error(
        "the saved state of {connector} has format version {found}, this build reads up to {newest}; nothing was restored or acknowledged, use the build that wrote it or a newer one"
    )]
    UnknownVersion {
        /// The kind of connector.
        connector: &'static str,
        /// The version named in the envelope.
        found: u32,
        /// The newest version this build reads.
        newest: u32,
    },
    /// The bytes are no state of their version.
    #[error(
        "the saved state of {connector} (format version {version}) is damaged: {problem}; nothing was restored or acknowledged, restoring nothing instead makes the service deliver again what was not acknowledged"
    )]
    Damaged {
        /// The kind of connector.
        connector: &'static str,
        /// The version named in the envelope.
        version: u32,
        /// What the decoder met.
        problem: &'static str,
    },
}

impl StateError {
    /// A state of `S` in a format that this build does not read.
    #[must_use]
    pub fn unknown_version<S: Versioned>(found: u32) -> Self {
        Self::UnknownVersion {
            connector: S::CONNECTOR,
            found,
            newest: S::VERSION,
        }
    }

    /// Bytes that are no state of `S` in format `version`.
    #[must_use]
    pub fn damaged<S: Versioned>(version: u32, problem: &'static str) -> Self {
        Self::Damaged {
            connector: S::CONNECTOR,
            version,
            problem,
        }
    }
}

/// Implements `Serialize` and `Deserialize` for a [`Versioned`] state through its envelope.
#[macro_export]
macro_rules! serde_through_envelope {
    ($state:ty) => {
        impl ::serde::Serialize for $state {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                ::serde::Serialize::serialize(&$crate::SavedState::of(self), serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $state {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                let saved =
                    <$crate::SavedState as ::serde::Deserialize>::deserialize(deserializer)?;
                saved.open().map_err(::serde::de::Error::custom)
            }
        }
    };
}
