//! A host: reads, takes checkpoints, makes them durable, commits, and gets all of it wrong at times.

use std::time::Duration;

use super::{
    Violation, bugs::Bug, chance::Rates, client::Held, event::Event, restoring::wall, truth::Saved,
    world::World,
};
use crate::{
    delivery::{DeliveryId, Disposition},
    handout::Pause,
};

impl World {
    /// One turn of the host's loop.
    pub(super) fn host_turn(&mut self) -> Result<(), Violation> {
        let pause = self.chance.millis(5..400);
        self.schedule(pause, Event::Host);
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        if self.now < client.suspended_until || self.now < client.still_until || client.closing {
            return Ok(());
        }
        let at = self.base + self.now;
        client.machine.start(at);
        if self.chance.strikes(|rates: &Rates| rates.stand_still) {
            self.chance.count("the host stood still");
            client.still_until = self.now + self.chance.millis(5_000..100_000);
            return Ok(());
        }
        self.pause_or_resume();
        let most = self.chance.random().u64(0..12);
        for _ in 0..most {
            if !self.read_one()? {
                break;
            }
        }
        self.settle_some();
        self.reject_some();
        if self.chance.strikes(|rates: &Rates| rates.close) {
            self.close();
            return Ok(());
        }
        let due = self
            .client
            .as_ref()
            .is_some_and(|client| self.now >= client.next_checkpoint && !client.closing);
        if due {
            self.checkpoint();
        }
        Ok(())
    }

    /// Pauses now and then, is parked meanwhile or not, and goes on.
    fn pause_or_resume(&mut self) {
        let at = self.base + self.now;
        let Some(client) = &mut self.client else {
            return;
        };
        if !client.paused {
            // In the middle of a message more often: that is where it matters what is revoked.
            let in_hand = client.in_hand.is_some();
            if self.chance.strikes(|rates: &Rates| rates.pause)
                || in_hand && !self.chance.is_calm() && self.chance.one_in(40)
            {
                self.chance.count("the host paused the source");
                client.paused = true;
                client.out.report(&mut client.machine, at);
                client.machine.pause(at);
            }
        } else if self.chance.is_calm() || self.chance.one_in(40) {
            client.paused = false;
            client.machine.resume(at);
        } else if self.chance.one_in(40) && !client.machine.standing().parked {
            client.machine.park(at);
        }
    }

    /// Takes one message as the handle does, and checks that it may come out.
    fn read_one(&mut self) -> Result<bool, Violation> {
        let at = self.base + self.now;
        let Some(client) = &mut self.client else {
            return Ok(false);
        };
        if client.paused {
            client.out.refresh(&mut client.machine, at);
            return Ok(false);
        }
        if self.decodes {
            return self.read_record();
        }
        let message = loop {
            match client.out.pop(at, client.machine.revoked()) {
                Ok(message) => break message,
                Err(Pause::Stale | Pause::Empty) => {
                    client.out.refresh(&mut client.machine, at);
                    if !client.out.fill(&mut client.machine, at) {
                        return Ok(false);
                    }
                }
            }
        };
        let number: u64 = std::str::from_utf8(message.data())
            .unwrap()
            .parse()
            .unwrap();
        trace!("{:?} out {number} {:?}", self.now, message.delivery());
        if self.bug == Some(Bug::HeldNeverComesAgain) && client.holds(number) {
            return Ok(true);
        }
        self.handed_out(number, message.delivery(), message.id())?;
        Ok(true)
    }

    /// A message was handed out whole.
    pub(super) fn handed_out(
        &mut self,
        number: u64,
        delivery: DeliveryId,
        id: &str,
    ) -> Result<(), Violation> {
        self.check_hand_out(number)?;
        self.check_confirmed(number, id)?;
        let at = self.base + self.now;
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        client.open.insert(delivery, Held { number });
        client.covered.insert(number);
        if self.bug == Some(Bug::AckOnHandOut) {
            client.out.report(&mut client.machine, at);
            drop(client.machine.settle(delivery, Disposition::Ack));
        }
        Ok(())
    }

    /// Decides about single messages of the open epoch now and then.
    fn settle_some(&mut self) {
        if !self.chance.strikes(|rates: &Rates| rates.settle) {
            return;
        }
        let at = self.base + self.now;
        let Some(client) = &mut self.client else {
            return;
        };
        let Some((&delivery, &held)) = client.open.iter().next() else {
            return;
        };
        let disposition = match self.chance.random().u64(0..3) {
            0 => Disposition::Ack,
            1 => Disposition::Nack,
            _ => Disposition::NackAfter(Duration::from_secs(7)),
        };
        client.out.report(&mut client.machine, at);
        let Ok(settle) = client.machine.settle(delivery, disposition) else {
            // Given back by the source itself, since it was held too long.
            return;
        };
        trace!("{:?} settle {held:?} {disposition:?}", self.now);
        client.settles.insert(settle);
        client.give_up(delivery, held);
        if disposition == Disposition::Ack {
            self.truth.host_acked.insert(held.number);
            self.chance.count("the host settled a message");
        } else {
            client.given_back.insert(held.number);
            self.chance.count("the host gave a message back");
        }
    }

    fn checkpoint(&mut self) {
        let at = self.base + self.now;
        let interval = self.chance.millis(500..20_000);
        let Some(client) = &mut self.client else {
            return;
        };
        client.next_checkpoint = self.now + interval;
        let epoch = client.epoch.next();
        client.epoch = epoch;
        client.out.report(&mut client.machine, at);
        if self.bug == Some(Bug::CutCountsBuffered) {
            let waiting: Vec<DeliveryId> = client.out.waiting().collect();
            client
                .machine
                .hand_out(at, &waiting, connector_core::Limits::default());
        }
        trace!("{:?} snapshot {epoch} {:?}", self.now, client.open);
        let state = client.machine.snapshot(at, epoch).expect("epochs increase");
        let state = state.taken_at(wall(self.now, self.wall_ahead));
        let sealed: Vec<Held> = std::mem::take(&mut client.open).into_values().collect();
        client.sealed.insert(epoch, sealed);
        if client.in_hand.is_some_and(|it| it.next > 0) {
            self.chance.count("a cut fell inside a message");
        }
        if client.sealed.len() > 1 {
            self.chance.count("two checkpoints were open at once");
        }
        let saved = Saved {
            epoch,
            covered: client.covered.clone(),
            settling: client.commits.values().flatten().copied().collect(),
            published: self.next_number,
            progress: client.progress.clone(),
            unfinished: client.unfinished.clone(),
            state,
        };
        let incarnation = client.incarnation;
        let delay = if self.chance.strikes(|rates: &Rates| rates.save_trouble) {
            self.chance.count("a save took long");
            self.chance.millis(1_000..30_000)
        } else {
            self.chance.millis(1..300)
        };
        let fails = self.chance.strikes(|rates: &Rates| rates.save_trouble);
        self.schedule(delay, Event::Durable(incarnation, Box::new(saved), fails));
        if self.bug == Some(Bug::CommitAtSeal) {
            self.commit(epoch);
        }
    }

    /// A checkpoint is durable, whether its host learns that or not.
    pub(super) fn durable(&mut self, incarnation: u32, saved: Saved, fails: bool) {
        let epoch = saved.epoch;
        let lives = self
            .client
            .as_ref()
            .is_some_and(|client| client.incarnation == incarnation);
        // A store with one owner takes nothing from an incarnation that is gone, unless it arrived
        // before the successor looked. It did not, or the successor would have been restored from
        // it.
        if !lives {
            return;
        }
        self.truth.durable.push(saved);
        let Some(client) = &mut self.client else {
            return;
        };
        if client.closing {
            return;
        }
        if fails {
            self.chance.count("a save failed though it was durable");
            self.abort(epoch);
        } else if self.chance.strikes(|rates: &Rates| rates.skip_commit) {
            if self.chance.one_in(2) {
                self.abort(epoch);
            } else {
                self.chance.count("a checkpoint was skipped by the commits");
            }
        } else {
            self.commit(epoch);
            if self.chance.one_in(8) {
                self.chance.count("a commit was repeated");
                self.commit(epoch);
            }
        }
    }

    fn commit(&mut self, epoch: connector_core::Epoch) {
        let at = self.base + self.now;
        let Some(client) = &mut self.client else {
            return;
        };
        // The order of saves and of commits may differ; a late commit of an old epoch is nothing.
        let later = client.sealed.split_off(&epoch.next());
        let released: Vec<u64> = std::mem::replace(&mut client.sealed, later)
            .into_values()
            .flatten()
            .map(|held| held.number)
            .collect();
        trace!("{:?} commit {epoch} {released:?}", self.now);
        client.committed.extend(released.iter().copied());
        client.last_commit = client.last_commit.max(Some(epoch));
        let commit = client.machine.commit(at, epoch).expect("it was sealed");
        client.commits.insert(commit, released);
    }

    fn abort(&mut self, epoch: connector_core::Epoch) {
        self.chance.count("a checkpoint was aborted");
        if self.bug == Some(Bug::AbortCommits) {
            // The mistake needs an epoch that nothing durable covers to show.
            self.truth.durable.retain(|saved| saved.epoch != epoch);
            self.commit(epoch);
            return;
        }
        let Some(client) = &mut self.client else {
            return;
        };
        client.machine.abort(epoch);
        let Some(held) = client.sealed.remove(&epoch) else {
            return;
        };
        match client.sealed.range_mut(epoch..).next() {
            Some((_, next)) => next.extend(held),
            None => {
                // Names of deliveries do not matter any more: what is in the open epoch by fold
                // is not settled by the host again.
                let folded = held.into_iter().zip(0u16..);
                let tag = (1 << 40) - 1;
                let free = client.open.len();
                client.open.extend(folded.map(|(held, index)| {
                    let index = index.wrapping_add(u16::try_from(free % 60_000).unwrap_or(0));
                    let batch = tag - 16 * epoch.get() - u64::from(index >> 12);
                    (DeliveryId::new(batch, index & 0xfff), held)
                }));
            }
        }
    }
}
