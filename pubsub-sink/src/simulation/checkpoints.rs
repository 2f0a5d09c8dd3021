//! The host's checkpoints: snapshots, saves, commits and marks.

use bytes::Bytes;
use connector_core::{CheckpointError, Committed, Epoch, Versioned, ledger::CommitId};

use super::{
    Violation,
    bugs::Bug,
    client::Cut,
    truth::{Saved, number},
    world::{Event, World},
};
use crate::{SinkState, machine::CutId, message, state::Named};

/// Snapshots that a host has under way at a time.
const MOST_OPEN: usize = 3;

impl World {
    pub(super) fn periodic_checkpoint(&mut self) -> Result<(), Violation> {
        let closes = self.chance.strikes(|rates| rates.close);
        let at = self.at();
        match &mut self.client {
            Some(client) if closes && client.closing.is_none() => {
                client.closing = Some(client.machine.close(at));
                client.machine.check_invariants();
            }
            Some(_) | None => self.checkpoint()?,
        }
        let pause = self.chance.millis(300..3_000);
        self.schedule(pause, Event::Checkpoint);
        Ok(())
    }

    pub(super) fn checkpoint(&mut self) -> Result<(), Violation> {
        let at = self.at();
        let aborts = self.chance.strikes(|rates| rates.abort);
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let open = client.cuts.len() + client.saving.len();
        if client.closing.is_some() || open >= MOST_OPEN {
            return Ok(());
        }
        if open > 0 {
            self.chance.count("two checkpoints were open at once");
        }
        client.epoch = client.epoch.next();
        let (epoch, position) = (client.epoch, client.position);
        let id = client
            .machine
            .snapshot(at, epoch)
            .map_err(|error| error.to_string())?;
        client.cuts.insert(id, Cut { epoch, position });
        client.machine.check_invariants();
        if self.bug == Some(Bug::CommitAtSeal) {
            self.commit(epoch, position)?;
        }
        if self.bug == Some(Bug::SavedAtCut) && !self.settings.delivery.is_staged() {
            let state = SinkState::flushed("0").encode_body();
            let saved = Saved {
                epoch,
                position,
                state,
                settled: false,
            };
            self.truth.durable.push(saved);
        }
        if aborts {
            self.abort(epoch)?;
        }
        Ok(())
    }

    fn abort(&mut self, epoch: Epoch) -> Result<(), Violation> {
        let at = self.at();
        self.chance.count("a checkpoint was aborted");
        if self.bug == Some(Bug::AbortCommits) {
            let position = self.client.as_ref().map_or(0, |client| client.position);
            return self.commit(epoch, position);
        }
        if let Some(client) = &mut self.client {
            client.machine.abort(at, epoch);
            client.machine.check_invariants();
        }
        Ok(())
    }

    /// A snapshot's or the last flush's receipt resolved.
    pub(super) fn cut_resolved(
        &mut self,
        id: CutId,
        outcome: Result<Named, CheckpointError>,
    ) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        if client.closing == Some(id) {
            return outcome.map(drop).map_err(|error| error.to_string());
        }
        let Some(Cut { epoch, position }) = client.cuts.remove(&id) else {
            return Err(format!("{id:?} resolved twice or was never asked for"));
        };
        let named = match outcome {
            Ok(named) => named,
            Err(CheckpointError::Aborted { .. }) => return Ok(()),
            Err(CheckpointError::Incomplete { .. }) => return self.abort(epoch),
            Err(error) => return Err(format!("a snapshot failed: {error}")),
        };
        if self.bug == Some(Bug::ResolvesTwice) {
            return self.cut_resolved(id, Ok(named));
        }
        client.saving.insert(epoch);
        let (incarnation, committed) = (client.incarnation, client.committed);
        let state = if self.settings.delivery.is_staged() {
            SinkState::staged("0", named)
        } else {
            SinkState::flushed("0")
        };
        let mut saved = Saved {
            epoch,
            position,
            state: state.encode_body(),
            settled: false,
        };
        if self.bug == Some(Bug::StateWithoutSettling) && self.settings.delivery.is_staged() {
            saved.state = without(&saved, committed);
        } else {
            self.truth.check_covered(&saved)?;
        }
        let (says, durable) = if !self.chance.strikes(|rates| rates.save_trouble) {
            (true, true)
        } else if self.chance.one_in(2) {
            self.chance.count("a save failed");
            (false, false)
        } else {
            self.chance.count("a save failed though it was durable");
            (false, true)
        };
        let delay = self.chance.millis(1..800);
        let event = Event::Saved {
            incarnation,
            saved: Box::new(saved),
            says,
            durable,
        };
        self.schedule(delay, event);
        Ok(())
    }

    /// The store has answered.
    pub(super) fn saved(
        &mut self,
        incarnation: u32,
        saved: Saved,
        says: bool,
        durable: bool,
    ) -> Result<(), Violation> {
        let Some(client) = self
            .client
            .as_mut()
            .filter(|one| one.incarnation == incarnation)
        else {
            // A successor owns the store by now, and refuses what comes from before it.
            return Ok(());
        };
        let (epoch, position) = (saved.epoch, saved.position);
        client.saving.remove(&epoch);
        if durable {
            self.truth.durable.push(saved);
        }
        if !says && durable {
            // The host cannot know, so it goes back to whatever is there.
            self.crash();
            return Ok(());
        }
        if !says {
            return self.abort(epoch);
        }
        if self.chance.strikes(|rates| rates.skip_commit) {
            self.chance.count("a checkpoint was skipped by the commits");
            return Ok(());
        }
        self.commit(epoch, position)?;
        if self.chance.one_in(20) {
            self.chance.count("a commit was repeated");
            self.commit(epoch, position)?;
        }
        Ok(())
    }

    fn commit(&mut self, epoch: Epoch, position: usize) -> Result<(), Violation> {
        let at = self.at();
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let id = client
            .machine
            .commit(at, epoch)
            .map_err(|error| error.to_string())?;
        client.commits.insert(id, epoch);
        client.committed = client.committed.max(position);
        client.last_commit = client.last_commit.max(Some(epoch));
        client.machine.check_invariants();
        if self.bug == Some(Bug::MarkedEarly) {
            self.mark(epoch);
        }
        Ok(())
    }

    pub(super) fn commit_resolved(
        &mut self,
        id: CommitId,
        outcome: Result<Committed, CheckpointError>,
    ) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let Some(epoch) = client.commits.remove(&id) else {
            return Err(format!("{id:?} resolved twice or was never asked for"));
        };
        match outcome {
            Ok(_) if self.chance.strikes(|rates| rates.lose_mark) => {
                self.chance.count("a mark was lost");
            }
            Ok(_) => {
                let delay = self.chance.millis(1..200);
                self.schedule(delay, Event::Mark(epoch));
            }
            Err(CheckpointError::Retained { .. }) => {
                self.chance
                    .count("a commit waited too long for its quarantine to be durable");
            }
            Err(error) => return Err(format!("a commit failed: {error}")),
        }
        Ok(())
    }

    pub(super) fn mark(&mut self, epoch: Epoch) {
        for saved in self
            .truth
            .durable
            .iter_mut()
            .filter(|saved| saved.epoch == epoch)
        {
            saved.settled = true;
        }
    }
}

/// The state without what was committed before, as far as the host knows.
fn without(saved: &Saved, committed: usize) -> Bytes {
    let state = saved.open();
    let named = Named {
        read: state
            .messages_named()
            .filter(|staged| {
                let frame = staged.frame().expect("it was just read");
                number(message::inside(&frame)) >= committed
            })
            .cloned()
            .collect(),
        quarantined: state.kept_aside().to_vec(),
        ..Named::default()
    };
    SinkState::staged("0", named).encode_body()
}
