//! The driver's part: does what the machine wants done, and keeps the books.

use std::time::{Duration, UNIX_EPOCH};

use connector_core::{CheckpointError, Epoch, Versioned};
use gcp_wire::proto::pubsub::{AcknowledgeRequest, ModifyAckDeadlineRequest};
use prost::Message as _;

use super::{Host, Twice, pick};
use crate::{
    fuzzing::{operation::Reply, subscription},
    machine::{Answer, CallMethod, Effect, IdVerdict, StreamEnd},
    state::SourceState,
};

/// Turns of the driver at one instant that are no loop.
const TURNS: usize = 20_000;

/// The most ids, and the most bytes, of a request.
const MOST_IDS: usize = 1_000;
const MOST_BYTES: usize = 512 << 10;

impl Host {
    pub(in crate::fuzzing) fn snapshot(&mut self, epoch: u64) {
        self.out.report(&mut self.machine, self.now);
        let before = self.epoch;
        match self.machine.snapshot(self.now, Epoch::new(epoch)) {
            Ok(state) => {
                assert!(
                    before.is_none_or(|before| epoch > before),
                    "epochs increase"
                );
                self.epoch = Some(epoch);
                let state = state.taken_at(UNIX_EPOCH + Duration::from_secs(1_700_000_300));
                let body = state.encode_body();
                let read = SourceState::decode_body(SourceState::VERSION, "fuzzed", body);
                let read = read.expect("what is written is read");
                let names = |state: &SourceState| (state.named(), state.unfinished());
                assert_eq!(names(&read), names(&state));
            }
            Err(CheckpointError::OutOfOrder { .. }) => {
                assert!(before.is_some_and(|before| epoch <= before))
            }
            Err(CheckpointError::Closed { .. }) => assert!(self.machine.closed().is_some()),
            Err(other) => panic!("{other}"),
        }
    }

    pub(in crate::fuzzing) fn commit(&mut self, epoch: u64) {
        match self.machine.commit(self.now, Epoch::new(epoch)) {
            Ok(commit) => assert!(self.commits.insert(commit), "a name is given once"),
            Err(CheckpointError::Unknown { .. }) => {
                assert!(self.epoch.is_none_or(|newest| epoch > newest));
            }
            Err(CheckpointError::Closed { .. }) => assert!(self.machine.closed().is_some()),
            Err(other) => panic!("{other}"),
        }
    }

    /// Answers a request.
    pub(super) fn answer(&mut self, at: u8, reply: Reply) {
        let Some((call, ids)) = pick(&mut self.calls, at) else {
            return;
        };
        let answer = match reply {
            Reply::Done => Answer::Done,
            Reply::Again { pause } => Answer::Again(pause.map(Duration::from_secs)),
            Reply::Refused => Answer::Refused,
            Reply::Mixed {
                named,
                worthless,
                others_done,
                stray,
            } => {
                let by_bits = ids.into_iter().enumerate();
                let named = by_bits.filter(|(index, _)| named >> (index % 8) & 1 == 1);
                let verdicts = named.map(|(index, id)| {
                    let is_worthless = worthless >> (index % 8) & 1 == 1;
                    let verdict = if is_worthless {
                        IdVerdict::Worthless
                    } else {
                        IdVerdict::Again
                    };
                    (id, verdict)
                });
                let strange = stray.then(|| ("of no delivery".to_owned(), IdVerdict::Worthless));
                Answer::Mixed {
                    verdicts: verdicts.chain(strange).collect(),
                    others_done,
                }
            }
        };
        self.machine.handle_answer(self.now, 0.5, call, answer);
    }

    /// The service does what it is asked, until nothing is left to ask.
    pub(in crate::fuzzing) fn confirm_all(&mut self) {
        for _ in 0..TURNS {
            if self.calls.is_empty() {
                return;
            }
            self.answer(0, Reply::Done);
            self.machine.check_invariants();
            self.perform_all();
        }
        panic!("the driver goes round in circles");
    }

    /// Time passes, and the driver does at each moment what is due then.
    pub(super) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        let mut turns = 0;
        while let Some(due) = self.machine.poll_timeout().filter(|due| *due <= end) {
            turns = if due > self.now { 0 } else { turns + 1 };
            assert!(turns < TURNS, "the driver goes round in circles");
            self.now = self.now.max(due);
            self.machine.handle_timeout(self.now);
            self.machine.check_invariants();
            self.perform_all();
        }
        self.now = end;
    }

    /// The process stands still meanwhile.
    pub(super) fn sleep(&mut self, span: Duration) {
        self.now += span;
        self.machine.handle_timeout(self.now);
        self.machine.check_invariants();
        self.perform_all();
    }

    /// Performs what there is to do.
    pub(in crate::fuzzing) fn perform_all(&mut self) {
        self.perform(TURNS);
    }

    /// Performs so many effects. A driver performs all before it waits.
    pub(super) fn perform(&mut self, most: usize) {
        for _ in 0..most {
            let Some(effect) = self.machine.poll_effect(self.now) else {
                return;
            };
            self.machine.check_invariants();
            self.see(effect);
        }
        assert!(most < TURNS, "the driver goes round in circles");
    }

    fn see(&mut self, effect: Effect) {
        match effect {
            Effect::Open {
                stream,
                lease_seconds,
                max_messages,
                ..
            } => {
                assert!(!self.streams.contains(&stream), "a name is given once");
                assert!((10..=600).contains(&lease_seconds) && max_messages > 0);
                self.streams.push(stream);
            }
            Effect::ChangeLease { lease_seconds, .. } => {
                assert!((10..=600).contains(&lease_seconds));
            }
            Effect::GiveUp { stream } => {
                self.machine
                    .handle_stream_ended(self.now, 0.5, stream, StreamEnd::Again, None);
            }
            Effect::Ping { stream } | Effect::HalfClose { stream } | Effect::Drop { stream } => {
                assert!(self.streams.contains(&stream));
            }
            Effect::Call { call, method, body } => {
                assert!(body.len() <= MOST_BYTES);
                let (name, ids) = match method {
                    CallMethod::Acknowledge => {
                        let request = AcknowledgeRequest::decode(body);
                        let request = request.expect("a request is whole");
                        (request.subscription, request.ack_ids)
                    }
                    CallMethod::ModifyAckDeadline => {
                        let request = ModifyAckDeadlineRequest::decode(body);
                        let request = request.expect("a request is whole");
                        assert!((0..=600).contains(&request.ack_deadline_seconds));
                        (request.subscription, request.ack_ids)
                    }
                };
                assert_eq!(name, subscription().as_str());
                assert!((1..=MOST_IDS).contains(&ids.len()), "{} ids", ids.len());
                let times = 1 + usize::from(self.mistake == Some(Twice::Sent));
                for _ in 0..times {
                    assert!(!self.calls.iter().any(|(other, _)| *other == call));
                    self.calls.push((call, ids.clone()));
                }
            }
            Effect::Committed { commit, .. } => {
                if self.mistake == Some(Twice::Resolved) {
                    self.commits.remove(&commit);
                }
                assert!(self.commits.remove(&commit), "a commit resolves once");
            }
            // Its deliveries are acknowledged all the same, and that is told.
            Effect::Unconfirmed { commit, .. } => assert!(self.commits.contains(&commit)),
            Effect::Restored { .. } => {
                assert!(!self.restored_told, "a restore resolves once");
                self.restored_told = true;
            }
            Effect::Settled { settle, .. } => {
                assert!(self.settles.remove(&settle), "a settlement resolves once");
            }
            Effect::Tell(_) => {}
        }
    }

    /// The source is closed and nothing answers any more: its budget ends it.
    pub(in crate::fuzzing) fn rest(&mut self) {
        self.out.clear(&mut self.machine, self.now);
        self.machine.close(self.now);
        self.machine.check_invariants();
        self.perform_all();
        self.pass(Duration::from_secs(60));
        assert!(self.machine.is_closed(), "a closing source ends");
        assert_eq!(
            self.machine.poll_timeout(),
            None,
            "an end waits for nothing"
        );
        assert!(self.commits.is_empty(), "every commit resolved");
        assert!(self.settles.is_empty(), "every settlement resolved");
    }
}
