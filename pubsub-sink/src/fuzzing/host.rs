//! A host, a service and a failure handler that do what bytes say.

mod driver;
mod setup;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use arbitrary::{Arbitrary, Unstructured};
use connector_core::{
    Cause, CheckpointError, Epoch, Limits, RejectedReason, Verdict, ledger::CommitId,
};
use gcp_wire::{Code, TopicName};

use super::operation::{Decision, Operation, Outcome, Reply, Setup};
use crate::{
    MessageError, PublishMessage, clock,
    machine::{Answer, Class, Creation, CutId, Failure, Machine, RejectionId, ReplyId, RequestId},
    staged::{Identity, Minting},
};
use setup::{key, resumed, settings, topic};

/// Operations of one history. Longer ones find nothing that several short ones do not.
const LONGEST: usize = 400;

/// Whatever a host, a service, a failure handler and time do, in whatever order: the machine's
/// invariants hold after each of it, the budget is what is held, every receipt resolves at most
/// once, and the driver comes to rest.
pub fn sink_machine(bytes: &[u8]) {
    history(bytes, None);
}

/// What a planted mistake does twice: what comes out of the machine is falsified as if the
/// machine had done so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    /// Room is given back twice.
    Released,
    /// A receipt resolves twice.
    Resolved,
    /// A request leaves twice at once.
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
        host.run(operation);
    }
    host.rest();
}

struct Host {
    mistake: Option<Twice>,
    /// Whether messages may have keys. One that has and may not ends the sink.
    ordering: bool,
    machine: Machine,
    now: Instant,
    minting: Minting,
    requests: Vec<(RequestId, usize)>,
    creating: Vec<TopicName>,
    handling: Vec<RejectionId>,
    flushing: bool,
    cuts: BTreeSet<CutId>,
    commits: BTreeSet<CommitId>,
    replies: BTreeSet<ReplyId>,
    /// The newest epoch.
    epoch: Option<u64>,
    /// What the budget says is held.
    held: Limits,
}

fn cause() -> Cause {
    Cause::new(MessageError::Empty)
}

fn pick<T>(from: &mut Vec<T>, at: u8) -> Option<T> {
    let at = usize::from(at) % from.len().max(1);
    (at < from.len()).then(|| from.swap_remove(at))
}

fn answer(reply: Reply, messages: usize) -> Answer {
    let ids = |count: usize| (0..count).map(|id| id.to_string()).collect();
    let (class, code, retry_after) = match reply {
        Reply::Stored => return Answer::Stored(ids(messages)),
        Reply::Miscounted(count) => return Answer::Stored(ids(usize::from(count))),
        Reply::Transient { retry_after } => (
            Class::Transient,
            Code::Unavailable,
            retry_after.map(|millis| Duration::from_millis(millis.into())),
        ),
        Reply::Exhausted { retry_after } => (
            Class::Exhausted,
            Code::ResourceExhausted,
            retry_after.map(Duration::from_secs),
        ),
        Reply::Invalid => (Class::Invalid, Code::InvalidArgument, None),
        Reply::Missing => (Class::Missing, Code::NotFound, None),
        Reply::Fatal => (Class::Fatal, Code::PermissionDenied, None),
    };
    Answer::Failed(Failure {
        class,
        code,
        retry_after,
        cause: cause(),
    })
}

impl Host {
    fn new(setup: Setup, mistake: Option<Twice>) -> Self {
        let resumed = resumed(setup);
        let epoch = resumed.as_ref().map(|resumed| resumed.epoch.get());
        let (machine, commit) = Machine::new(settings(setup), resumed);
        Self {
            mistake,
            ordering: setup.ordering,
            held: machine.held(),
            machine,
            now: clock::now(),
            minting: Minting::new(1),
            requests: Vec::new(),
            creating: Vec::new(),
            handling: Vec::new(),
            flushing: false,
            cuts: BTreeSet::new(),
            commits: commit.into_iter().collect(),
            replies: BTreeSet::new(),
            epoch,
        }
    }

    fn run(&mut self, operation: Operation) {
        self.apply(operation);
        self.machine.check_invariants();
        self.account();
    }

    fn apply(&mut self, operation: Operation) {
        let now = self.now;
        match operation {
            Operation::Accept {
                topic: to,
                key: under,
                size,
                asked,
            } => {
                let keyed = self.ordering || under == u8::MAX;
                let key = if keyed { key(under) } else { "" };
                let message = PublishMessage::new(vec![0; usize::from(size % 300)]);
                self.accept(&topic(to), message.ordering_key(key), asked);
            }
            Operation::Reject {
                topic: to,
                key: under,
                what,
                asked,
            } => {
                let message = PublishMessage::new("x").ordering_key(key(under));
                let refused = match what % 3 {
                    0 => (None, None, RejectedReason::Destination),
                    1 => (Some(topic(to)), None, RejectedReason::Encoding),
                    _ => (Some(topic(to)), Some(message), RejectedReason::Limit),
                };
                self.reject(refused, asked);
            }
            Operation::Skip { asked } => {
                let reply = self.reply(asked);
                self.machine.skip(reply);
            }
            Operation::Perform(count) => self.perform(usize::from(count)),
            Operation::Answer { at, reply } => {
                if let Some((id, messages)) = pick(&mut self.requests, at) {
                    self.machine
                        .handle_answer(now, id, answer(reply, messages), 0.5);
                }
            }
            Operation::Create { at, outcome } => {
                let creation = match outcome {
                    Outcome::Made => Creation::Made,
                    Outcome::Existed => Creation::Existed,
                    Outcome::Failed => Creation::Failed(cause()),
                    Outcome::Refused => Creation::Refused(cause()),
                };
                if let Some(topic) = pick(&mut self.creating, at) {
                    self.machine.handle_created(now, &topic, creation, 0.5);
                }
            }
            Operation::Decide { at, verdict } => {
                let verdict = match verdict {
                    Decision::Drop => Ok(Verdict::Drop),
                    Decision::Fail => Ok(Verdict::Fail),
                    Decision::Broken => Err(CheckpointError::driver_gone()),
                };
                if let Some(id) = pick(&mut self.handling, at) {
                    self.machine.handle_verdict(now, id, verdict);
                }
            }
            Operation::EndFlush(works) => {
                if std::mem::take(&mut self.flushing) {
                    let failed = || Err(CheckpointError::driver_gone());
                    let outcome = if works { Ok(()) } else { failed() };
                    self.machine.handle_flushed(now, outcome, 0.5);
                }
            }
            Operation::Snapshot { ahead } => {
                self.snapshot(self.newest().saturating_add(u64::from(ahead % 4)));
            }
            Operation::SnapshotAt(epoch) => self.snapshot(epoch),
            Operation::Commit { back } => {
                self.commit(self.newest().saturating_sub(u64::from(back)))
            }
            Operation::CommitAt(epoch) => self.commit(epoch),
            Operation::Abort { back } => {
                let epoch = self.newest().saturating_sub(u64::from(back));
                self.machine.abort(now, Epoch::new(epoch));
            }
            Operation::AbortAt(epoch) => self.machine.abort(now, Epoch::new(epoch)),
            Operation::Flush => {
                if !self.machine.is_ended() {
                    let cut = self.machine.flush(now);
                    assert!(self.cuts.insert(cut));
                }
            }
            Operation::AwaitRoom(true) => {
                if !self.machine.is_ended() {
                    self.machine.await_room(now);
                }
            }
            Operation::AwaitRoom(false) => self.machine.stop_awaiting_room(now),
            Operation::Pass { millis } => self.pass(Duration::from_millis(millis.into())),
            Operation::Sleep { minutes } => {
                // Long enough for every timer, and for the days in which names are remembered to
                // pass in a few of these.
                self.pass(Duration::from_secs(60 * u64::from(minutes % 600)));
            }
            Operation::Discard(which) => {
                self.machine
                    .discard_quarantined(|identity| chosen(identity, which));
            }
            Operation::StageAgain(which) => {
                let staged = self.machine.stage_quarantined(now, |id| chosen(id, which));
                self.charge(staged);
            }
            Operation::AskForCheckpoint => {
                if self.machine.wants_checkpoint() {
                    self.machine.checkpoint_asked();
                }
            }
            Operation::Close => {
                if !self.machine.is_ended() {
                    let cut = self.machine.close(now);
                    assert!(self.cuts.insert(cut));
                }
            }
        }
    }

    /// The newest epoch, or the first that there may be.
    fn newest(&self) -> u64 {
        self.epoch.unwrap_or_default()
    }
}

fn chosen(identity: Identity, which: u8) -> bool {
    which >> (identity.sequence % 8) & 1 == 1
}
