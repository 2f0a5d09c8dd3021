//! What goes wrong.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use gcp_emulator::{Call, Code, Emulator, Fault, Faults, Method, Rule};
use tokio::time::Instant;

/// How long it goes wrong for.
pub(crate) const LASTS: Duration = Duration::from_secs(30);

/// How long a slow answer takes: longer than anyone wants, shorter than any deadline.
const SLOW: Duration = Duration::from_secs(3);

/// Longer, in virtual time, than anything that is not stuck.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Unavailable,
    DeadlineExceeded,
    ResourceExhausted,
    Internal,
    Unknown,
    Cancelled,
    Aborted,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    InvalidArgument,
    FailedPrecondition,
    /// What was asked for is done, and the answer is UNAVAILABLE. Of a stream, whose answer is its
    /// responses, the first one is lost.
    AnswerLost,
    NeverAnswered,
    Slow,
}

impl Trouble {
    pub(crate) const ALL: [Self; 15] = [
        Self::Unavailable,
        Self::DeadlineExceeded,
        Self::ResourceExhausted,
        Self::Internal,
        Self::Unknown,
        Self::Cancelled,
        Self::Aborted,
        Self::NotFound,
        Self::PermissionDenied,
        Self::Unauthenticated,
        Self::InvalidArgument,
        Self::FailedPrecondition,
        Self::AnswerLost,
        Self::NeverAnswered,
        Self::Slow,
    ];

    /// As the tables call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "UNAVAILABLE",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::Internal => "INTERNAL",
            Self::Unknown => "UNKNOWN",
            Self::Cancelled => "CANCELLED",
            Self::Aborted => "ABORTED",
            Self::NotFound => "NOT_FOUND",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::AnswerLost => "answer lost",
            Self::NeverAnswered => "never answered",
            Self::Slow => "slow (3 s)",
        }
    }

    fn fault(self) -> Fault {
        let answer = |code| Fault::answer(code, "as the matrix has it");
        match self {
            Self::Unavailable => answer(Code::Unavailable),
            Self::DeadlineExceeded => answer(Code::DeadlineExceeded),
            Self::ResourceExhausted => answer(Code::ResourceExhausted),
            Self::Internal => answer(Code::Internal),
            Self::Unknown => answer(Code::Unknown),
            Self::Cancelled => answer(Code::Cancelled),
            Self::Aborted => answer(Code::Aborted),
            Self::NotFound => answer(Code::NotFound),
            Self::PermissionDenied => answer(Code::PermissionDenied),
            Self::Unauthenticated => answer(Code::Unauthenticated),
            Self::InvalidArgument => answer(Code::InvalidArgument),
            Self::FailedPrecondition => answer(Code::FailedPrecondition),
            Self::AnswerLost => answer(Code::Unavailable).after_effect(),
            Self::NeverAnswered => Fault::Never,
            Self::Slow => Fault::Delay(SLOW),
        }
    }
}

/// The time in which one method of a server does not do what it should.
pub(crate) struct Spell {
    faults: Faults,
    begun: Instant,
    struck: Arc<OnceLock<Instant>>,
}

impl Spell {
    pub(crate) fn begin(emulator: &Emulator, method: Method, trouble: Trouble) -> Self {
        let struck = Arc::new(OnceLock::new());
        let first = Arc::clone(&struck);
        let hits = move |_: &Call| {
            first.get_or_init(Instant::now);
            true
        };
        let rule = Rule::on(method).when(hits).then(trouble.fault());
        let rule = emulator.faults().add(rule);
        let faults = emulator.faults().clone();
        drop(tokio::spawn(async move {
            tokio::time::sleep(LASTS).await;
            faults.remove(rule);
        }));
        Self {
            faults: emulator.faults().clone(),
            begun: Instant::now(),
            struck,
        }
    }

    /// Time since it began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Time since the first call that it struck.
    pub(crate) fn struck(&self) -> Duration {
        let struck = self.struck.get();
        struck
            .expect("no call was hit: the cell proves nothing")
            .elapsed()
    }

    /// What an operator does about an error: the service is in order again.
    pub(crate) fn repair(&self) {
        self.faults.clear();
    }
}

/// What became of a connector: recovered so long after the trouble began, or ended so long after it
/// struck.
#[derive(Debug)]
pub(crate) enum Seen {
    /// Everything is done, and the connector never ended.
    Recovered(Duration),
    /// As above, after an operator had sent what the service had refused for good.
    KeptAside(Duration),
    /// It ended with this error, and its successor did what was left.
    Ended(String, Duration),
}

/// The variant of an error that is shown like this.
pub(crate) fn variant(error: &dyn std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text.get(..end.unwrap_or(text.len()))
        .unwrap_or_default()
        .to_owned()
}
