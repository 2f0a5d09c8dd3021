//! What goes wrong, when, and how often.

mod answer;
mod course;
mod plan;
mod rule;

pub use answer::Answer;
pub use plan::{FaultPlan, Faults, RuleId};
pub use rule::{Rule, Trigger};

pub(crate) use course::{After, Course, End, Sentence};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::call::Call;
use crate::code::Code;

/// What happens to a call that a [`Rule`] matches.
///
/// Nothing here is random: the same calls in the same order meet the same faults.
#[derive(Clone)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing: the call is served as usual. Useful to shield calls from a later rule.
    Pass,
    /// The call is served after this long, even when the client has given up by then.
    Delay(Duration),
    /// The call is refused with this status and has no effect.
    Answer(Answer),
    /// The call is refused with a status made from it and has no effect.
    AnswerWith(AnswerMaker),
    /// The call is never answered and has no effect.
    Never,
    /// The answer is success, yet nothing was done. For calls whose answer is empty
    /// (acknowledging, changing deadlines); any other is refused with INTERNAL.
    OkWithoutEffect,
    /// The stream of the call is reset with this HTTP/2 error code; no effect.
    ResetStream(u32),
    /// The connection gets GOAWAY with this HTTP/2 error code and closes; no effect. The last
    /// stream id of the frame *includes* this call, so the client must take it as possibly done.
    GoAway(u32),
    /// As [`GoAway`](Self::GoAway), but the frame's last stream id lies *below* this call: a client
    /// may conclude that it was never processed.
    GoAwayUnseen(u32),
    /// The connection is cut without a farewell; no effect. On TCP the peer gets a reset.
    DropConnection,
    /// The connection stays open and carries nothing any more, in either direction; no effect.
    Silence,
    /// The call is served first, effects included, and its answer is replaced by this fault: an
    /// ambiguous failure. Of a pull stream that opens, the first response with messages is the answer:
    /// they are leased, and nobody gets them.
    AfterEffect(Box<Self>),
    /// A pull stream is served for this many responses, then this fault ends it.
    AfterResponses(u64, Box<Self>),
    /// A pull stream ends with OK.
    EndStream,
    /// A pull stream goes on sending, and stops reading after this many requests (the opening one
    /// counts): the client's window fills up and stays full.
    StopReading(u64),
    /// The delivered message becomes available again after this long, though its lease lives; zero
    /// makes the next response carry it a second time. For [`Rule::on_delivery`] only.
    Redeliver(Duration),
}

/// Makes the status of an [`Fault::AnswerWith`].
pub type AnswerMaker = Arc<dyn Fn(&Call) -> Answer + Send + Sync>;

impl Fault {
    /// Refuses the call with `code` and `message`; no effect.
    #[must_use]
    pub fn answer(code: Code, message: impl Into<String>) -> Self {
        Self::Answer(Answer::new(code, message))
    }

    /// Refuses the call with a status made from it, for details that name the request's ids.
    #[must_use]
    pub fn answer_with(make: impl Fn(&Call) -> Answer + Send + Sync + 'static) -> Self {
        Self::AnswerWith(Arc::new(make))
    }

    /// Serves the call first and replaces its answer by this fault.
    #[must_use]
    pub fn after_effect(self) -> Self {
        Self::AfterEffect(Box::new(self))
    }

    /// Serves a pull stream for `responses` responses and ends it with this fault.
    #[must_use]
    pub fn after_responses(self, responses: u64) -> Self {
        Self::AfterResponses(responses, Box::new(self))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("Pass"),
            Self::Delay(span) => f.debug_tuple("Delay").field(span).finish(),
            Self::Answer(answer) => f.debug_tuple("Answer").field(answer).finish(),
            Self::AnswerWith(_) => f.write_str("AnswerWith(..)"),
            Self::Never => f.write_str("Never"),
            Self::OkWithoutEffect => f.write_str("OkWithoutEffect"),
            Self::ResetStream(code) => f.debug_tuple("ResetStream").field(code).finish(),
            Self::GoAway(code) => f.debug_tuple("GoAway").field(code).finish(),
            Self::GoAwayUnseen(code) => f.debug_tuple("GoAwayUnseen").field(code).finish(),
            Self::DropConnection => f.write_str("DropConnection"),
            Self::Silence => f.write_str("Silence"),
            Self::AfterEffect(fault) => f.debug_tuple("AfterEffect").field(fault).finish(),
            Self::AfterResponses(responses, fault) => f
                .debug_tuple("AfterResponses")
                .field(responses)
                .field(fault)
                .finish(),
            Self::EndStream => f.write_str("EndStream"),
            Self::StopReading(requests) => f.debug_tuple("StopReading").field(requests).finish(),
            Self::Redeliver(after) => f.debug_tuple("Redeliver").field(after).finish(),
        }
    }
}
