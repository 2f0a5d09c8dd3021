//! What the states that a host gives back say.

use connector_core::{Epoch, Restored, StateError, Versioned};

use crate::state::{CONNECTOR, SinkState};

/// The epoch above which epochs go on.
pub(super) fn newest(
    restored: &[Restored<SinkState>],
    instance: &str,
) -> Result<Option<Epoch>, StateError> {
    for one in restored {
        if one.state.instance() != instance {
            return Err(StateError::OtherInstance {
                connector: CONNECTOR,
                found: one.state.instance().to_owned(),
                expected: instance.to_owned(),
            });
        }
    }
    Ok(restored.iter().map(|one| one.epoch).max())
}
