//! Saved states, put together.

use std::{collections::BTreeSet, sync::Arc};

use connector_core::{Restored, StateError, Versioned};

use crate::{
    BuildError, Delivery, SinkState,
    machine::Resumed,
    staged::{Identity, Staged},
};

/// What the states leave to do. A message that several name counts once; one that is kept aside, or
/// that a settled state names, is not published whatever another state says.
pub(crate) fn resumed(
    instance: &str,
    delivery: Delivery,
    restored: &[Restored<SinkState>],
) -> Result<Option<Resumed>, BuildError> {
    for restored in restored {
        let found = restored.state.instance();
        if found != instance {
            return Err(BuildError::State(StateError::OtherInstance {
                connector: SinkState::CONNECTOR,
                found: found.to_owned(),
                expected: instance.to_owned(),
            }));
        }
    }
    let Some(epoch) = restored.iter().map(|restored| restored.epoch).max() else {
        return Ok(None);
    };
    let mut aside = BTreeSet::new();
    let mut quarantined = Vec::new();
    for kept in restored.iter().flat_map(|one| one.state.kept_aside()) {
        if aside.insert(kept.identity) {
            quarantined.push(Arc::clone(kept));
        }
    }
    let mut known: BTreeSet<Identity> = aside;
    let settled = restored.iter().filter(|one| one.settled);
    known.extend(settled.flat_map(|one| one.state.messages_named()).map(id));
    let mut messages = Vec::new();
    let owed = restored.iter().filter(|one| !one.settled);
    for message in owed.flat_map(|one| one.state.messages_named()) {
        if known.insert(message.identity) {
            // Its own copy: this sink lets go of the bytes, the state may be restored once more.
            messages.push(Arc::new(message.renewed()));
        }
    }
    if !delivery.is_staged() && (!messages.is_empty() || !quarantined.is_empty()) {
        return Err(BuildError::StagedState {
            messages: messages.len(),
            quarantined: quarantined.len(),
        });
    }
    Ok(Some(Resumed {
        epoch,
        messages,
        quarantined,
    }))
}

fn id(staged: &Arc<Staged>) -> Identity {
    staged.identity
}
