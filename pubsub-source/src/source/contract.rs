//! The source's part in its host's checkpoints: what its splits answer, as one.

use connector_core::{Checkpoint, CheckpointError, Committed, Epoch, Receipt};

use super::{PubsubSource, joining::joined};
use crate::{driver, split::SplitReader, state::SourceState};

impl PubsubSource {
    /// A source with a split that has ended answers nothing else any more.
    fn refuse_when_closed(&self) -> Result<(), CheckpointError> {
        let closed = self.splits.iter().find_map(SplitReader::closed);
        closed.map_or(Ok(()), |cause| Err(CheckpointError::Closed { cause }))
    }

    fn cut(&mut self, epoch: Epoch) -> Result<SourceState, CheckpointError> {
        self.refuse_when_closed()?;
        let now = driver::now();
        let mut states = Vec::with_capacity(self.splits.len());
        for split in &mut self.splits {
            // All of them are at the same epoch, so either all refuse this one or none does.
            states.push(split.snapshot(now, epoch)?);
        }
        SourceState::join(states).ok_or_else(CheckpointError::driver_gone)
    }
}

impl Checkpoint for PubsubSource {
    type State = SourceState;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<SourceState> {
        match self.cut(epoch) {
            Ok(state) => Receipt::ready(state.taken_at(self.wall.now())),
            Err(error) => Receipt::failed(error),
        }
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        if let Err(error) = self.refuse_when_closed() {
            return Receipt::failed(error);
        }
        let now = driver::now();
        joined(self.splits.iter().map(|split| split.commit(now, epoch)))
    }

    fn abort(&mut self, epoch: Epoch) {
        self.splits.iter().for_each(|split| split.abort(epoch));
    }
}
