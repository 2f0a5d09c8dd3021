//! The states of one checkpoint.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{SavedState, StateError, Versioned};
use crate::Restored;

/// The states of all connectors of a host, as one checkpoint saves them: each is found by the kind of
/// its connector and by its name.
///
/// This is where two connectors of one kind meet that were given one name, or none and so the same
/// default: the second state is refused, at the first checkpoint of the first run, before anything is
/// saved or committed. In a map of the host's own it would take the place of the first one, and
/// what a staging sink is owed would be gone with it. After a restart, [`finish`](Self::finish) refuses a checkpoint of
/// which something was left.
///
/// The readers of one source share a name on purpose, since each is given the states of all: a host
/// with several keeps theirs in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedStates {
    /// By kind and name. Ordered, so that one checkpoint is always the same bytes.
    states: BTreeMap<(String, String), SavedState>,
}

impl SavedStates {
    /// No states.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            states: BTreeMap::new(),
        }
    }

    /// Adds the state of one more connector.
    ///
    /// # Errors
    ///
    /// [`StateError::SameName`] when there is a state of another connector of that kind and name.
    /// The first one stays; the checkpoint is not to be saved.
    pub fn add(&mut self, state: SavedState) -> Result<(), StateError> {
        let owner = (state.connector.clone(), state.instance.clone());
        if self.states.contains_key(&owner) {
            let (connector, instance) = owner;
            return Err(StateError::SameName {
                connector,
                instance,
            });
        }
        self.states.insert(owner, state);
        Ok(())
    }

    /// Takes out the state of the connector of `S`'s kind with this name, if there is one.
    ///
    /// # Errors
    ///
    /// What [`SavedState::open`] answers.
    pub fn take<S: Versioned>(&mut self, instance: &str) -> Result<Option<S>, StateError> {
        let owner = (S::CONNECTOR.to_owned(), instance.to_owned());
        self.states.remove(&owner).map(SavedState::open).transpose()
    }

    /// Says that every connector of the host has taken its state.
    ///
    /// # Errors
    ///
    /// [`StateError::Unclaimed`] names one that is left: what it says is owed would never be sent.
    pub fn finish(self) -> Result<(), StateError> {
        match self.states.into_keys().next() {
            None => Ok(()),
            Some((connector, instance)) => Err(StateError::Unclaimed {
                connector,
                instance,
            }),
        }
    }

    /// The number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
}

impl Restored<SavedStates> {
    /// Takes out the state of the connector of `S`'s kind with this name, if there is one, for its
    /// builder's `restore`.
    ///
    /// # Errors
    ///
    /// What [`SavedState::open`] answers.
    pub fn take<S: Versioned>(
        &mut self,
        instance: &str,
    ) -> Result<Option<Restored<S>>, StateError> {
        let state = self.state.take(instance)?;
        let (settled, committing) = (self.settled, self.committing);
        Ok(state.map(|state| {
            Restored::new(self.epoch, state)
                .settled(settled)
                .committing(committing)
        }))
    }
}

/// A list of envelopes, each of which says whose it is.
impl Serialize for SavedStates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.states.values())
    }
}

impl<'de> Deserialize<'de> for SavedStates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut states = Self::new();
        for state in Vec::<SavedState>::deserialize(deserializer)? {
            states.add(state).map_err(D::Error::custom)?;
        }
        Ok(states)
    }
}
