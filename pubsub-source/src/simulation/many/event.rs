//! What is on its way, and where to.

use std::collections::BTreeSet;

use bytes::Bytes;
use connector_core::Epoch;
use gcp_emulator::pubsub::proto::{StreamingPullRequest, StreamingPullResponse};

use crate::machine::{Answer, CallId, CallMethod, StreamId};

/// A reader of one run of the job: its run, and its place there.
pub(super) type Place = (u32, usize);

/// One split of a reader, by the place of its subscription in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) place: Place,
    pub(super) subscription: usize,
}

/// One stream of a split.
pub(super) type Line = (Address, StreamId);

/// A message as one subscription has it: the subscription's place in the plan, and its number.
pub(super) type Delivered = (usize, u64);

/// What a coordinator says to a reader.
#[derive(Debug, Clone, Copy)]
pub(super) enum Word {
    Cut(Epoch),
    Commit(Epoch),
    Abort(Epoch),
    /// The reader drops its source.
    Drop,
}

/// Something that will happen.
pub(super) enum Event {
    Publish,
    Trouble,
    Start,
    /// A suspended reader goes on.
    Wake(Place),
    Host(Place),
    Word(Place, Word),
    Coordinate(u32),
    /// The state of a reader arrives at its coordinator, with what it had handed out.
    State(Place, Epoch, Bytes, BTreeSet<Delivered>),
    Save(u32, Epoch),
    /// The coordinator learns that a checkpoint is durable.
    Saved(u32, Epoch),
    /// A save that took long becomes durable.
    Land,
    Open(Line, Box<StreamingPullRequest>),
    Request(Line, Box<StreamingPullRequest>),
    HalfClose(Line),
    HangUp(Line),
    Call {
        address: Address,
        call: CallId,
        method: CallMethod,
        body: Bytes,
        fate: Fate,
    },
    /// Something arrives at a reader, with what was not acknowledged when it was sent.
    Response(Line, Box<StreamingPullResponse>, Vec<Delivered>),
    End(Line),
    Answer {
        address: Address,
        call: CallId,
        answer: Answer,
        /// What an acknowledgement that this answer calls done did not do.
        effectless: Vec<Delivered>,
    },
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Served,
    AnswerLost,
    Unavailable,
    UnavailableAfterEffect,
}
