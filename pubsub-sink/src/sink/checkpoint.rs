//! The sink's part in its host's checkpoints.

use connector_core::{Checkpoint, CheckpointError, Committed, Epoch, Receipt};

use super::{PubsubSink, closed};
use crate::{
    SinkState, clock,
    shared::{CutReceipt, State},
};

impl<R> PubsubSink<R> {
    /// Asks the machine, and arranges for the receipt.
    fn ask<T>(
        &self,
        act: impl FnOnce(&mut State) -> Result<(), CheckpointError>,
        receipt: Receipt<T>,
    ) -> Receipt<T> {
        let asked = self.shared.with(|state| match state.machine.ended() {
            Some(error) => Err(closed(error.clone())),
            None => act(state),
        });
        match asked {
            Ok(Ok(())) => receipt,
            Ok(Err(error)) => Receipt::failed(error),
            Err(error) => Receipt::failed(closed(error)),
        }
    }
}

impl<R> Checkpoint for PubsubSink<R> {
    type State = SinkState;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<SinkState> {
        let (resolver, receipt) = Receipt::channel();
        self.ask(
            |state| {
                let id = state.machine.snapshot(clock::now(), epoch)?;
                let delivery = state.machine.delivery();
                state
                    .receipts
                    .cut(id, CutReceipt::Snapshot(resolver, delivery));
                Ok(())
            },
            receipt,
        )
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        let (resolver, receipt) = Receipt::channel();
        self.ask(
            |state| {
                let id = state.machine.commit(clock::now(), epoch)?;
                state.receipts.commit(id, resolver);
                Ok(())
            },
            receipt,
        )
    }

    fn abort(&mut self, epoch: Epoch) {
        // A sink that has ended has nothing left to abort; a poisoned one says so at the next call.
        drop(
            self.shared
                .with(|state| state.machine.abort(clock::now(), epoch)),
        );
    }
}
