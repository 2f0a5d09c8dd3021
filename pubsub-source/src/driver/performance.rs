//! What a turn of the driver has to do once the machine is unlocked.

use connector_core::{CheckpointError, Committed, Resolver};

use crate::machine::Effect;

/// An effect with what it needs from under the mutex.
pub(super) enum Performance {
    Perform(Effect),
    Resolve(Vec<Resolver<Committed>>, Result<Committed, CheckpointError>),
}
