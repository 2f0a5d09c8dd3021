//! The driver's part: does what the machine wants done.

use connector_core::{CheckpointError, RejectedReason, Verdict};

use super::{
    Violation,
    bugs::Bug,
    truth::{self, Kind},
    world::{Event, World},
};
use crate::{
    MessageError,
    machine::{Effect, Notice, RejectionId},
};

/// Turns of the driver at one instant that are no loop.
const TURNS_PER_INSTANT: u32 = 10_000;

impl World {
    /// Lets the client do everything it has to do now.
    pub(super) fn run_client(&mut self) -> Result<(), Violation> {
        let at = self.at();
        for _ in 0..TURNS_PER_INSTANT {
            let Some(client) = &mut self.client else {
                return Ok(());
            };
            if client.machine.poll_timeout().is_some_and(|due| due <= at) {
                client.machine.handle_timeout(at);
                client.machine.check_invariants();
            }
            self.settle_accounts()?;
            let Some(client) = &mut self.client else {
                return Ok(());
            };
            if let Some(effect) = client.machine.poll_effect(at) {
                client.machine.check_invariants();
                let closing = client.closing.is_some();
                if !closing && self.chance.strikes(|rates| rates.crash / 4) {
                    self.chance.count("a crash between two effects");
                    if self.chance.one_in(2) {
                        self.perform(effect)?;
                    }
                    self.crash();
                    return Ok(());
                }
                self.perform(effect)?;
                continue;
            }
            if client.machine.poll_timeout().is_none_or(|due| due > at) {
                return self.after_end();
            }
        }
        Err("the driver goes round in circles".to_owned())
    }

    /// What the machine gives back returns to the budget, and the two agree on what is held.
    fn settle_accounts(&mut self) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let released = client.machine.take_released();
        let times = if self.bug == Some(Bug::ReleasedTwice) {
            2
        } else {
            1
        };
        let items = client.held.items.checked_sub(times * released.items);
        let bytes = client.held.bytes.checked_sub(times * released.bytes);
        let (Some(items), Some(bytes)) = (items, bytes) else {
            return Err("more is given back than is held".to_owned());
        };
        client.held.items = items;
        client.held.bytes = bytes;
        if client.held != client.machine.held() {
            let (kept, held) = (client.held, client.machine.held());
            return Err(format!("the budget holds {kept:?}, the sink {held:?}"));
        }
        Ok(())
    }

    /// A sink ends when its host closes it, and never by itself here.
    fn after_end(&mut self) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let Some(error) = client.machine.ended() else {
            return Ok(());
        };
        if client.closing.is_none() {
            return Err(format!("the sink ended: {error}"));
        }
        self.chance.count("an orderly close");
        self.crash();
        Ok(())
    }

    fn perform(&mut self, effect: Effect) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        let incarnation = client.incarnation;
        match effect {
            Effect::Publish {
                id,
                topic: _,
                header,
                frames,
                deadline,
            } => self.publish(id, &header, &frames, deadline)?,
            Effect::Handle { id, rejected } => {
                let number = truth::number(rejected.payload.expect("it was encoded"));
                if self.truth.records[number].kind == Kind::Good {
                    return Err(format!("record {number} is good and was rejected"));
                }
                client.handler.undecided.insert(id);
                let staged = rejected.reason == RejectedReason::Refused
                    && self.settings.delivery.is_staged();
                let verdict = if staged && self.chance.strikes(|rates| rates.keep_aside) {
                    Verdict::Fail
                } else {
                    Verdict::Drop
                };
                let delay = self.chance.millis(1..300);
                self.schedule(delay, Event::Verdict(incarnation, id, number, verdict));
            }
            Effect::CreateTopic(topic) => {
                let delay = self.chance.millis(1..60);
                self.schedule(delay, Event::Create(incarnation, topic));
            }
            Effect::FlushHandler => {
                if !client.handler.begin_flush() {
                    return Err("two flushes run at once".to_owned());
                }
                let succeeds = !self.chance.strikes(|rates| rates.flush_trouble);
                if !succeeds {
                    self.chance.count("a flush of the handler failed");
                }
                let delay = self.chance.millis(1..300);
                self.schedule(delay, Event::Flushed(incarnation, succeeds));
            }
            Effect::Resolve(id, outcome) => self.cut_resolved(id, outcome)?,
            Effect::Committed(id, outcome) => self.commit_resolved(id, outcome)?,
            Effect::Answer(id, _) => {
                if !client.replies.remove(&id) {
                    return Err(format!("{id:?} was told twice"));
                }
                self.chance.count("whoever submitted a record was told");
            }
            Effect::Tell(Notice::Quarantined { .. }) => {
                self.chance.count("a message was kept aside");
            }
            Effect::Tell(_) => {}
        }
        Ok(())
    }

    pub(super) fn decided(
        &mut self,
        incarnation: u32,
        id: RejectionId,
        number: usize,
        verdict: Verdict,
    ) -> Result<(), Violation> {
        let at = self.at();
        let Some(client) = self
            .client
            .as_mut()
            .filter(|one| one.incarnation == incarnation)
        else {
            return Ok(());
        };
        if !client.handler.decide(id, number, verdict) {
            return Err(format!("{id:?} was decided twice"));
        }
        client.machine.handle_verdict(at, id, Ok(verdict));
        client.machine.check_invariants();
        Ok(())
    }

    pub(super) fn flushed(&mut self, incarnation: u32, succeeded: bool) -> Result<(), Violation> {
        let (at, random) = (self.at(), self.chance.random().f64());
        let Some(client) = self
            .client
            .as_mut()
            .filter(|one| one.incarnation == incarnation)
        else {
            return Ok(());
        };
        let Some(covered) = client.handler.flushing.take() else {
            return Err("a flush ended that never began".to_owned());
        };
        if succeeded {
            self.chance
                .count_many("a dead letter was kept", covered.len() as u64);
            self.truth.handled.extend(covered);
        }
        let outcome = if succeeded || self.bug == Some(Bug::FailedFlushCounts) {
            Ok(())
        } else {
            Err(CheckpointError::Handler {
                cause: connector_core::Cause::new(MessageError::Empty),
            })
        };
        client.machine.handle_flushed(at, outcome, random);
        client.machine.check_invariants();
        Ok(())
    }
}
