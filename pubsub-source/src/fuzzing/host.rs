//! A host and a service that do what bytes say.

mod driver;
mod reading;
mod setup;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use arbitrary::{Arbitrary, Unstructured};
use connector_core::{Epoch, ledger::CommitId};
use gcp_wire::{Code, RpcError};

use super::operation::{Operation, Setup};
use crate::{
    delivery::{DeliveryId, Disposition},
    driver::now,
    error::SourceError,
    handout::HandOut,
    machine::{CallId, Machine, SettleId, StreamEnd, StreamId},
    source::Room,
};

/// Operations of one history. Longer ones find nothing that several short ones do not.
const LONGEST: usize = 400;

/// Whatever a host, the service and time do, in whatever order: the machine's invariants hold after
/// each of it, every receipt resolves at most once, what was handed out is never handed out again
/// under the same name, and a closed source comes to rest.
pub fn source_machine(bytes: &[u8]) {
    history(bytes, None);
}

/// What a planted mistake does twice: what comes out of the machine is falsified as if the
/// machine had done so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    /// A receipt resolves twice.
    Resolved,
    /// A message is handed out twice under one name.
    HandedOut,
    /// A request leaves twice.
    Sent,
}

pub(super) fn history(bytes: &[u8], mistake: Option<Twice>) {
    let mut bytes = Unstructured::new(bytes);
    let Ok(setup) = Setup::arbitrary(&mut bytes) else {
        return;
    };
    let mut host = Host::new(setup, mistake);
    for _ in 0..LONGEST {
        if bytes.is_empty() {
            break;
        }
        let Ok(operation) = Operation::arbitrary(&mut bytes) else {
            break;
        };
        host.apply(operation);
        host.machine.check_invariants();
    }
    host.rest();
}

pub(super) struct Host {
    mistake: Option<Twice>,
    machine: Machine,
    out: HandOut,
    now: Instant,
    /// Every stream that ever opened, also those that were dropped.
    streams: Vec<StreamId>,
    /// Requests without an answer, with their ack ids.
    calls: Vec<(CallId, Vec<String>)>,
    handed: BTreeSet<DeliveryId>,
    settles: BTreeSet<SettleId>,
    commits: BTreeSet<CommitId>,
    /// The newest epoch.
    epoch: Option<u64>,
    restored_told: bool,
}

fn pick<T>(from: &mut Vec<T>, at: u8) -> Option<T> {
    let at = usize::from(at) % from.len().max(1);
    (at < from.len()).then(|| from.swap_remove(at))
}

impl Host {
    fn stream(&self, at: u8) -> Option<StreamId> {
        let at = usize::from(at) % self.streams.len().max(1);
        self.streams.get(at).copied()
    }

    fn apply(&mut self, operation: Operation) {
        let now = self.now;
        match operation {
            Operation::Receive {
                stream,
                first,
                count,
                key,
                odd,
                stale,
            } => {
                let response = setup::response(first, count % 16, key, odd);
                self.receive_response(stream, &response, Duration::from_secs(stale.into()));
            }
            Operation::StreamOpens { stream } => {
                if let Some(stream) = self.stream(stream) {
                    self.machine.handle_opened(now, stream);
                }
            }
            Operation::StreamEnds { stream, pause } => {
                let end = match pause {
                    Some(seconds) => StreamEnd::After(Duration::from_secs(seconds)),
                    None => StreamEnd::Again,
                };
                if let Some(stream) = self.stream(stream) {
                    let error = RpcError::status("StreamingPull", Code::Unavailable, "fuzzed");
                    self.machine
                        .handle_stream_ended(now, 0.5, stream, end, Some(error));
                }
            }
            Operation::Undecodable { stream } => {
                if let Some(stream) = self.stream(stream) {
                    let error = RpcError::status("StreamingPull", Code::Internal, "fuzzed");
                    self.machine.handle_undecodable(now, 0.5, stream, error);
                }
            }
            Operation::Perform(count) => self.perform(usize::from(count)),
            Operation::Answer { at, reply } => self.answer(at, reply),
            Operation::Read(count) => self.read(usize::from(count)),
            Operation::ReadRecords { records, end } => self.read_records(records, end),
            Operation::Refresh => self.out.refresh(&mut self.machine, now),
            Operation::Settle { at, how, seconds } => self.settle(at, how, seconds),
            Operation::Snapshot { ahead } => {
                self.snapshot(self.newest().saturating_add(u64::from(ahead % 4)));
            }
            Operation::SnapshotAt(epoch) => self.snapshot(epoch),
            Operation::Commit { back } => self.commit(self.newest().saturating_sub(back.into())),
            Operation::CommitAt(epoch) => self.commit(epoch),
            Operation::Abort { back } => {
                let epoch = self.newest().saturating_sub(back.into());
                self.machine.abort(Epoch::new(epoch));
            }
            Operation::AbortAt(epoch) => self.machine.abort(Epoch::new(epoch)),
            Operation::Pause => {
                self.out.report(&mut self.machine, now);
                self.machine.pause(now);
            }
            Operation::Resume => self.machine.resume(now),
            Operation::Park => {
                let standing = self.machine.standing();
                if standing.paused && !standing.parked {
                    self.machine.park(now);
                }
            }
            Operation::Room(which) => {
                let room = [Room::Free, Room::Taken, Room::Spent][usize::from(which % 3)];
                self.machine.handle_room(now, room);
            }
            Operation::Pass { millis } => self.pass(Duration::from_millis(millis.into())),
            Operation::Sleep { minutes } => {
                self.sleep(Duration::from_secs(60 * u64::from(minutes)))
            }
            Operation::ForgetSeen => self.machine.forget_seen(),
            Operation::ExpectNoCheckpoint => self.machine.expect_no_checkpoint(),
            Operation::Stop => self.machine.stop(now),
            Operation::Close => {
                self.out.clear(&mut self.machine, now);
                self.machine.close(now);
            }
            Operation::Fail => self.machine.fail(now, SourceError::Closed),
        }
    }

    fn settle(&mut self, at: u8, how: u8, seconds: u16) {
        let disposition = match how % 3 {
            0 => Disposition::Ack,
            1 => Disposition::Nack,
            _ => Disposition::NackAfter(Duration::from_secs(seconds.into())),
        };
        let at = usize::from(at) % self.handed.len().max(1);
        let Some(delivery) = self.handed.iter().rev().nth(at).copied() else {
            return;
        };
        self.out.report(&mut self.machine, self.now);
        if let Ok(settle) = self.machine.settle(delivery, disposition) {
            assert!(self.settles.insert(settle), "a name is given once");
        }
    }

    /// The newest epoch, or the first that there may be.
    fn newest(&self) -> u64 {
        self.epoch.unwrap_or_default()
    }
}
