//! The host of one reader: reads, pauses, and does what its coordinator says.

use std::time::Duration;

use connector_core::{Epoch, Versioned};

use super::{
    Violation,
    bugs::Bug,
    chance::Rates,
    event::{Address, Delivered, Event, Place, Word},
    start::wall,
    world::World,
};
use crate::{handout::Pause, state::SourceState};

/// The ids of a state are remembered for longer than this, whichever run named them first.
const REMEMBERED: Duration = Duration::from_secs(600);

impl World {
    /// One turn of a host's loop.
    pub(super) fn host_turn(&mut self, place: Place) -> Result<(), Violation> {
        let (now, at) = (self.now, self.at());
        let Some(reader) = self.reader(place) else {
            return Ok(());
        };
        let idle = now < reader.suspended_until || now < reader.still_until || reader.closing;
        if !idle {
            for split in &mut reader.splits {
                split.machine.start(at);
            }
            if self.chance.strikes(|rates: &Rates| rates.stand_still) {
                self.chance.count("the host stood still");
                let pause = self.chance.millis(5_000..60_000);
                self.reader(place).expect("it is there").still_until = now + pause;
            } else {
                self.pause_or_resume(place);
                self.read(place)?;
            }
            self.touch(place);
        }
        let pause = self.chance.millis(10..700);
        self.schedule(pause, Event::Host(place));
        Ok(())
    }

    /// Pauses a split now and then, and lets it go on.
    fn pause_or_resume(&mut self, place: Place) {
        let at = self.at();
        let Some(reader) = self.reader(place) else {
            return;
        };
        let addresses = reader.addresses(place);
        let address = self.chance.pick(&addresses);
        let (pauses, resumes) = (
            self.chance.strikes(|rates: &Rates| rates.pause),
            // In the time without faults they stay paused until the others have everything.
            self.all_resume || (!self.chance.is_calm() && self.chance.one_in(60)),
        );
        let forgets = self.bug == Some(Bug::ResumeForgotten);
        let Some(split) = self.split(address) else {
            return;
        };
        if !split.paused && pauses {
            split.paused = true;
            split.out.report(&mut split.machine, at);
            split.machine.pause(at);
            self.chance.count("a split was paused");
        } else if split.paused && resumes {
            split.paused = false;
            let parked = split.machine.standing().parked;
            if !(forgets && parked) {
                split.machine.resume(at);
            }
            self.chance.count("a split was resumed");
            if parked {
                self.chance.count("a parked split was resumed");
            }
        }
    }

    /// Takes some messages, a response of each split in turn.
    fn read(&mut self, place: Place) -> Result<(), Violation> {
        let most = self.chance.random().u64(0..12);
        for _ in 0..most {
            let splits = self.reader(place).map_or(0, |reader| reader.splits.len());
            let mut read = false;
            for _ in 0..splits {
                let Some(reader) = self.reader(place) else {
                    return Ok(());
                };
                let split = reader.turn;
                let address = reader.addresses(place)[split];
                read = self.read_one(address)?;
                if let Some(reader) = self.reader(place)
                    && (!read || reader.splits[split].out.is_empty())
                {
                    reader.turn = (split + 1) % splits;
                }
                if read {
                    break;
                }
            }
            if !read {
                break;
            }
        }
        Ok(())
    }

    /// Takes one message of a split as the handle does.
    fn read_one(&mut self, address: Address) -> Result<bool, Violation> {
        let at = self.at();
        let Some(split) = self.split(address) else {
            return Ok(false);
        };
        if split.paused {
            split.out.refresh(&mut split.machine, at);
            return Ok(false);
        }
        let message = loop {
            match split.out.pop(at, split.machine.revoked()) {
                Ok(message) => break message,
                Err(Pause::Stale | Pause::Empty) => {
                    split.out.refresh(&mut split.machine, at);
                    if !split.out.fill(&mut split.machine, at) {
                        return Ok(false);
                    }
                }
            }
        };
        let text = std::str::from_utf8(message.data()).unwrap();
        let number: u64 = text.parse().unwrap();
        trace!("{:?} {address:?} out {number}", self.now);
        self.hand_out(address, number).map(|()| true)
    }

    /// Checks that a message may come out, and notes that it has.
    fn hand_out(&mut self, address: Address, number: u64) -> Result<(), Violation> {
        let place = address.place;
        let Some(split) = self.split(address) else {
            return Ok(());
        };
        let message: Delivered = (split.subscription, number);
        if split.holds(number) {
            return Err(format!(
                "message {message:?} was handed out while it is held"
            ));
        }
        split.open.insert(number);
        let reader = self.reader(place).expect("it has the split");
        reader.handed.insert(message);
        if place.0 < self.runs {
            self.chance.count("a predecessor handed something out");
        }
        let named = self.jobs[&place.0].named.contains(&message);
        if named && self.now < REMEMBERED && !self.truth.excuses(message) {
            return Err(format!(
                "message {message:?} was handed out again although a restored state names it"
            ));
        }
        Ok(())
    }

    /// What the coordinator said arrives.
    pub(super) fn obey(&mut self, place: Place, word: Word) -> Result<(), Violation> {
        let now = self.now;
        let Some(reader) = self.reader(place) else {
            return Ok(());
        };
        if now < reader.suspended_until {
            let wait = reader.suspended_until - now;
            self.schedule(wait, Event::Word(place, word));
            return Ok(());
        }
        if reader.closing {
            return Ok(());
        }
        trace!("{now:?} {place:?} {word:?}");
        match word {
            Word::Cut(epoch) => self.cut(place, epoch),
            Word::Commit(epoch) => self.commit(place, epoch)?,
            Word::Abort(epoch) => self.abort(place, epoch),
            Word::Drop => self.close(place),
        }
        self.touch(place);
        Ok(())
    }

    fn cut(&mut self, place: Place, epoch: Epoch) {
        let (now, at) = (self.now, self.at());
        let Some(reader) = self.reader(place) else {
            return;
        };
        let mut states = Vec::new();
        for split in &mut reader.splits {
            split.out.report(&mut split.machine, at);
            let state = split.machine.snapshot(at, epoch);
            states.push(state.expect("epochs increase"));
            split.sealed.insert(epoch, std::mem::take(&mut split.open));
        }
        let handed = reader.handed.clone();
        let state = SourceState::join(states).expect("a reader has a split");
        let state = state.taken_at(wall(now)).encode_body();
        let delay = self.chance.millis(1..200);
        self.schedule(delay, Event::State(place, epoch, state, handed));
    }

    fn commit(&mut self, place: Place, epoch: Epoch) -> Result<(), Violation> {
        let at = self.at();
        if place.0 < self.runs {
            self.chance
                .count("a predecessor acknowledged what it had committed");
        }
        let Some(reader) = self.reader(place) else {
            return Ok(());
        };
        for split in &mut reader.splits {
            let later = split.sealed.split_off(&epoch.next());
            split.sealed = later;
            let commit = split.machine.commit(at, epoch);
            let commit = commit.map_err(|error| format!("{epoch}: {error}"))?;
            split.commits.insert(commit);
        }
        Ok(())
    }

    fn abort(&mut self, place: Place, epoch: Epoch) {
        let Some(reader) = self.reader(place) else {
            return;
        };
        for split in &mut reader.splits {
            split.machine.abort(epoch);
            let Some(held) = split.sealed.remove(&epoch) else {
                continue;
            };
            match split.sealed.range_mut(epoch..).next() {
                Some((_, next)) => next.extend(held),
                None => split.open.extend(held),
            }
        }
    }

    pub(super) fn close(&mut self, place: Place) {
        let at = self.at();
        if let Some(reader) = self.reader(place) {
            reader.close(at);
        }
    }
}
