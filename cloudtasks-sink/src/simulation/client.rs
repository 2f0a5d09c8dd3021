//! A process: its machine, its receipts, and what its driver does.

use std::collections::{BTreeMap, BTreeSet};

use connector_core::ledger::CommitId;
use connector_core::{Epoch, Limits, Verdict};

use super::Violation;
use super::bugs::Bug;
use super::network::{Call, What};
use super::truth::{self, Kind};
use super::world::{Event, World};
use crate::error::SinkError;
use crate::machine::{Effect, Machine};
use crate::state::SinkState;

/// Turns of a driver at one instant that are no loop.
const TURNS_PER_INSTANT: u32 = 20_000;

pub(super) struct Client {
    pub(super) machine: Machine,
    /// What the budget thinks that it holds.
    pub(super) held: Limits,
    /// Cuts without an outcome, each with the position of the source and the state.
    pub(super) snapshots: BTreeMap<Epoch, (usize, SinkState)>,
    pub(super) commits: BTreeMap<CommitId, Epoch>,
    pub(super) resolved: BTreeSet<CommitId>,
    /// Records that the handler took, in order.
    pub(super) handled: Vec<usize>,
}

impl World {
    /// Lets a process do everything it has to do now.
    pub(super) fn run_client(&mut self, id: u64) -> Result<(), Violation> {
        for _ in 0..TURNS_PER_INSTANT {
            let (now, wall) = (self.monotonic(), self.wall());
            let Some(client) = self.clients.get_mut(&id) else {
                return Ok(());
            };
            client.machine.handle_time_of_day(wall);
            if client.machine.poll_timeout().is_some_and(|due| due <= now) {
                client.machine.handle_timeout(now);
                client.machine.check_invariants();
            }
            let Some(effect) = client.machine.poll_effect(now) else {
                let held = client.machine.held();
                if client.held != held {
                    let kept = client.held;
                    return Err(format!("the budget holds {kept:?}, the sink {held:?}"));
                }
                if client.machine.poll_timeout().is_none_or(|due| due > now) {
                    return Ok(());
                }
                continue;
            };
            client.machine.check_invariants();
            if self.owner == Some(id) && self.chance.strikes(|rates| rates.crash / 3) {
                self.chance.count("a crash between two effects");
                let is_lost = self.chance.one_in(2);
                if !is_lost {
                    self.perform(id, effect)?;
                }
                self.crash();
                if is_lost {
                    // What lost an effect does not go on as if nothing had happened.
                    self.clients.remove(&id);
                }
                return Ok(());
            }
            self.perform(id, effect)?;
        }
        Err("the driver goes round in circles".to_owned())
    }

    fn perform(&mut self, id: u64, effect: Effect) -> Result<(), Violation> {
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(());
        };
        match effect {
            Effect::Create {
                record,
                request,
                not_after,
                ..
            } => self.begin(id, Call::new(What::One(record), request, not_after)),
            Effect::CreateBatch {
                call,
                request,
                not_after,
                ..
            } => self.begin(id, Call::new(What::Many(call), request, not_after)),
            Effect::ReadOperation { call, operation } => {
                self.begin(id, Call::new(What::Read(call), operation.into(), None));
            }
            Effect::ReadQueue { .. } => unreachable!("queues are not looked at"),
            Effect::Handle { job, rejected } => {
                let payload = rejected.payload.expect("it was encoded");
                let number = truth::number(&payload);
                if self.truth.kinds[number] == Kind::Good {
                    return Err(format!("record {number} is good and was rejected"));
                }
                let may_fail = self.truth.staged && self.truth.kinds[number] == Kind::Poison;
                let verdict = if may_fail && self.chance.strikes(|rates| rates.keep_aside) {
                    Verdict::Fail
                } else {
                    client.handled.push(number);
                    Verdict::Drop
                };
                let after = self.chance.millis(0..500);
                self.schedule(
                    after,
                    Event::Verdict {
                        client: id,
                        job,
                        verdict,
                    },
                );
            }
            Effect::FlushHandler { job } => {
                let upto = client.handled.len();
                let is_ok = !self.chance.strikes(|rates| rates.flush_trouble);
                let after = self.chance.millis(0..500);
                let client = id;
                self.schedule(
                    after,
                    Event::Flushed {
                        client,
                        job,
                        upto,
                        is_ok,
                    },
                );
            }
            Effect::Release(amount) => {
                let times = if self.bug == Some(Bug::ReleasedTwice) {
                    2
                } else {
                    1
                };
                let items = client.held.items.checked_sub(times * amount.items);
                let bytes = client.held.bytes.checked_sub(times * amount.bytes);
                let (Some(items), Some(bytes)) = (items, bytes) else {
                    return Err("more is given back than is held".to_owned());
                };
                client.held = Limits::new(items, bytes);
            }
            Effect::Snapshot { epoch, outcome } => {
                let Some((position, state)) = client.snapshots.remove(&epoch) else {
                    return Err(format!("the snapshot of {epoch} resolves twice"));
                };
                if outcome.is_ok() && self.owner == Some(id) {
                    self.save(id, epoch, position, state);
                } else if outcome.is_err() {
                    // What a failed receipt covered stays owed.
                    client.machine.abort(epoch);
                }
            }
            Effect::Committed { commit, .. } => self.resolve(id, commit, true)?,
            Effect::Unconfirmed { commit, .. } => {
                self.chance
                    .count("a commit waited too long for its quarantine to be durable");
                self.resolve(id, commit, false)?;
            }
            Effect::Submitted { .. } => unreachable!("nobody submits"),
            Effect::Wake | Effect::Report(_) => {}
            Effect::Ended => {
                let failure = client.machine.failure();
                let slept = matches!(
                    failure,
                    Some((
                        _,
                        SinkError::HandlerStalled { .. } | SinkError::StageFull { .. }
                    ))
                );
                if !slept || self.chance.is_calm() {
                    return Err(format!("the sink ended: {failure:?}"));
                }
                self.chance.count("the sink ended after it had stood still");
                if self.owner == Some(id) {
                    self.crash();
                }
                self.clients.remove(&id);
            }
        }
        Ok(())
    }

    fn resolve(&mut self, id: u64, commit: CommitId, is_ok: bool) -> Result<(), Violation> {
        let twice = self.bug == Some(Bug::ResolvesTwice);
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(());
        };
        let epoch = client.commits.remove(&commit);
        if !client.resolved.insert(commit) || (twice && client.resolved.len() > 3) {
            return Err(format!("{commit:?} resolves twice"));
        }
        if let (Some(epoch), true, true) = (epoch, is_ok, self.owner == Some(id)) {
            let after = self.chance.millis(1..2_000);
            self.schedule(after, Event::Mark { client: id, epoch });
        }
        Ok(())
    }
}
