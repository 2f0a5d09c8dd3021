//! What becomes of calls.

use std::time::Duration;

use gcp_emulator::{Code, Fault};

const LATE: Duration = Duration::from_millis(150);
const SLOW: Duration = Duration::from_secs(3);

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Unavailable,
    DeadlineExceeded,
    Quota,
    AnswerLost,
    DoneNeverAnswered,
    NeverAnswered,
    Late,
    Slow,
    VerySlow,
    Reset,
    Refused,
    Denied,
    Broken,
    Silenced,
    GoAway,
    PullEnds,
    PullCloses,
    PullFallsSilent,
    PullIsNotRead,
}

impl Fate {
    pub(crate) const ALL: [Self; 19] = [
        Self::Unavailable,
        Self::DeadlineExceeded,
        Self::Quota,
        Self::AnswerLost,
        Self::DoneNeverAnswered,
        Self::NeverAnswered,
        Self::Late,
        Self::Slow,
        Self::VerySlow,
        Self::Reset,
        Self::Refused,
        Self::Denied,
        Self::Broken,
        Self::Silenced,
        Self::GoAway,
        Self::PullEnds,
        Self::PullCloses,
        Self::PullFallsSilent,
        Self::PullIsNotRead,
    ];

    pub(crate) const OF_CALLS: [Self; 10] = [
        Self::Unavailable,
        Self::DeadlineExceeded,
        Self::Quota,
        Self::AnswerLost,
        Self::DoneNeverAnswered,
        Self::NeverAnswered,
        Self::Late,
        Self::Slow,
        Self::VerySlow,
        Self::Reset,
    ];

    pub(crate) const OF_CONNECTIONS: [Self; 3] = [Self::Broken, Self::Silenced, Self::GoAway];

    pub(crate) const OF_PULLS: [Self; 5] = [
        Self::PullEnds,
        Self::PullCloses,
        Self::PullFallsSilent,
        Self::PullIsNotRead,
        Self::Unavailable,
    ];

    pub(crate) fn fault(self) -> Fault {
        let answer = |code| Fault::answer(code, "as the seed has it");
        match self {
            Self::Unavailable => answer(Code::Unavailable),
            Self::DeadlineExceeded => answer(Code::DeadlineExceeded),
            Self::Quota => answer(Code::ResourceExhausted),
            Self::AnswerLost => answer(Code::Unavailable).after_effect(),
            Self::DoneNeverAnswered => Fault::Never.after_effect(),
            Self::NeverAnswered => Fault::Never,
            Self::Late => Fault::Delay(LATE),
            Self::Slow => Fault::Delay(SLOW),
            Self::VerySlow => Fault::Delay(Duration::from_secs(25)).after_effect(),
            Self::Reset => Fault::ResetStream(8),
            Self::Refused => answer(Code::InvalidArgument),
            Self::Denied => answer(Code::PermissionDenied),
            Self::Broken => Fault::DropConnection.after_effect(),
            Self::Silenced => Fault::Silence.after_effect(),
            Self::GoAway => Fault::GoAway(0),
            Self::PullEnds => answer(Code::Unavailable).after_responses(1),
            Self::PullCloses => Fault::EndStream.after_responses(2),
            Self::PullFallsSilent => Fault::Never.after_responses(1),
            Self::PullIsNotRead => Fault::StopReading(1),
        }
    }

    /// How long after a call has arrived it takes effect.
    pub(crate) fn delay(self) -> Option<Duration> {
        match self {
            Self::Late => Some(LATE),
            Self::Slow => Some(SLOW),
            Self::Unavailable
            | Self::DeadlineExceeded
            | Self::Quota
            | Self::AnswerLost
            | Self::DoneNeverAnswered
            | Self::NeverAnswered
            | Self::VerySlow
            | Self::Reset
            | Self::Refused
            | Self::Denied
            | Self::Broken
            | Self::Silenced
            | Self::GoAway
            | Self::PullEnds
            | Self::PullCloses
            | Self::PullFallsSilent
            | Self::PullIsNotRead => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "a call was answered UNAVAILABLE",
            Self::DeadlineExceeded => "a call was answered with a failed deadline",
            Self::Quota => "a quota was used up",
            Self::AnswerLost => "a call was done and its answer lost",
            Self::DoneNeverAnswered => "a call was done and never answered",
            Self::NeverAnswered => "a call was never answered",
            Self::Late => "a call was answered at once, but late",
            Self::Slow => "a call was answered after 3 s",
            Self::VerySlow => "a call was answered after 25 s",
            Self::Reset => "a call reset its stream",
            Self::Refused => "a record was refused and kept aside",
            Self::Denied => "a call was denied",
            Self::Broken => "a connection broke under a call",
            Self::Silenced => "a connection fell silent under a call",
            Self::GoAway => "GOAWAY",
            Self::PullEnds | Self::PullCloses => "a pull stream ended",
            Self::PullFallsSilent => "a pull stream fell silent",
            Self::PullIsNotRead => "a pull stream was not read any more",
        }
    }
}
