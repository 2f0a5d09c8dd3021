//! A fault, read once: what a call or stream goes through.

use std::time::Duration;

use crate::call::Call;
use crate::code::Code;
use crate::fault::{Answer, Fault};

/// What happens to a call.
#[derive(Debug, Clone)]
pub(crate) enum Course {
    Serve,
    Delay(Duration),
    OkWithoutEffect,
    End(End),
    AfterEffect(After),
    AfterResponses(u64, End),
    StopReading(u64),
}

/// What becomes of the answer of a call that was served.
#[derive(Debug, Clone)]
pub(crate) enum After {
    Answer,
    Delay(Duration),
    OkWithoutEffect,
    End(End),
}

/// How a call or a stream ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Status(Answer),
    Sentence(Sentence),
    /// Not at all.
    Never,
    /// With OK, which only a stream can.
    Clean,
}

/// What the transport does to a call instead of answering it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sentence {
    Reset(u32),
    GoAway(u32),
    GoAwayUnseen(u32),
    Sever,
    Silence,
}

impl Course {
    pub(super) fn of(fault: Fault, call: &Call) -> Self {
        match fault {
            Fault::Pass => Self::Serve,
            Fault::Delay(span) => Self::Delay(span),
            Fault::OkWithoutEffect => Self::OkWithoutEffect,
            Fault::StopReading(requests) => Self::StopReading(requests),
            Fault::AfterEffect(after) => Self::AfterEffect(After::of(*after, call)),
            Fault::AfterResponses(responses, then) => {
                Self::AfterResponses(responses, End::of(*then, call))
            }
            Fault::Answer(_)
            | Fault::AnswerWith(_)
            | Fault::Never
            | Fault::ResetStream(_)
            | Fault::GoAway(_)
            | Fault::GoAwayUnseen(_)
            | Fault::DropConnection
            | Fault::Silence
            | Fault::EndStream
            | Fault::Redeliver(_) => Self::End(End::of(fault, call)),
        }
    }
}

impl After {
    fn of(fault: Fault, call: &Call) -> Self {
        match fault {
            Fault::Pass => Self::Answer,
            Fault::Delay(span) => Self::Delay(span),
            Fault::OkWithoutEffect => Self::OkWithoutEffect,
            Fault::Answer(_)
            | Fault::AnswerWith(_)
            | Fault::Never
            | Fault::ResetStream(_)
            | Fault::GoAway(_)
            | Fault::GoAwayUnseen(_)
            | Fault::DropConnection
            | Fault::Silence
            | Fault::EndStream
            | Fault::Redeliver(_)
            | Fault::AfterEffect(_)
            | Fault::AfterResponses(..)
            | Fault::StopReading(_) => Self::End(End::of(fault, call)),
        }
    }
}

impl End {
    fn of(fault: Fault, call: &Call) -> Self {
        match fault {
            Fault::Answer(answer) => Self::Status(answer),
            Fault::AnswerWith(make) => Self::Status(make(call)),
            Fault::Never => Self::Never,
            Fault::ResetStream(code) => Self::Sentence(Sentence::Reset(code)),
            Fault::GoAway(code) => Self::Sentence(Sentence::GoAway(code)),
            Fault::GoAwayUnseen(code) => Self::Sentence(Sentence::GoAwayUnseen(code)),
            Fault::DropConnection => Self::Sentence(Sentence::Sever),
            Fault::Silence => Self::Sentence(Sentence::Silence),
            Fault::EndStream => Self::Clean,
            misplaced @ (Fault::Pass
            | Fault::Delay(_)
            | Fault::OkWithoutEffect
            | Fault::AfterEffect(_)
            | Fault::AfterResponses(..)
            | Fault::StopReading(_)
            | Fault::Redeliver(_)) => {
                let text = format!("{misplaced:?} cannot end {}", call.method.name());
                Self::Status(Answer::new(Code::Internal, text))
            }
        }
    }
}
