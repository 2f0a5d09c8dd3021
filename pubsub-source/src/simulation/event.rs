//! What is on its way, and what becomes of it.

use bytes::Bytes;
use gcp_emulator::pubsub::proto::{StreamingPullRequest, StreamingPullResponse};

use super::{server::Line, truth::Saved};
use crate::machine::{Answer, CallId, CallMethod};

/// Something that will happen.
pub(super) enum Event {
    Host,
    Publish,
    Trouble,
    /// A request arrives at the server.
    Open(Line, Box<StreamingPullRequest>),
    Request(Line, Box<StreamingPullRequest>),
    HalfClose(Line),
    HangUp(Line),
    Call {
        incarnation: u32,
        call: CallId,
        method: CallMethod,
        body: Bytes,
        fate: Fate,
    },
    /// Something arrives at the client.
    Response(Line, Box<StreamingPullResponse>, Vec<u64>),
    End(Line),
    Answer {
        incarnation: u32,
        call: CallId,
        answer: Answer,
        /// What an acknowledgement that this answer calls done did not do.
        effectless: Vec<u64>,
    },
    Durable(u32, Box<Saved>, bool),
    Restart,
    /// Another subscriber is done with what it took, or gives it back.
    Other(Vec<String>, bool),
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Served,
    AnswerLost,
    Unavailable,
    UnavailableAfterEffect,
    NoEffect,
}
