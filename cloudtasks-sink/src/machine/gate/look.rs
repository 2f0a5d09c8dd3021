//! What GetQueue says that matters to a sink.

use gcp_wire::proto::tasks::{Queue, queue::State};

use super::Passage;
use crate::queue_state::QueueState;

/// IF_NOT_EXISTS of a queue's URI override: it never applies, since every task has a URL. Anything
/// else means ALWAYS, also when it is left unspecified.
const IF_NOT_EXISTS: i32 = 1;

/// What is known of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Look {
    /// It is not looked at.
    Never,
    /// The first look has not been answered: its records wait for it.
    First,
    /// It could not be looked at, which holds nothing up.
    Unseen,
    /// It was looked at.
    Found(Found),
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) state: QueueState,
    /// Whether it replaces the URL of every HTTP task, or a part of it.
    pub(crate) replaces_urls: bool,
}

impl Found {
    pub(crate) fn of(queue: &Queue) -> Self {
        let state = match State::try_from(queue.state) {
            Ok(State::Running) => QueueState::Running,
            Ok(State::Paused) => QueueState::Paused,
            Ok(State::Disabled) => QueueState::Disabled,
            Ok(State::Unspecified) | Err(_) => QueueState::Unknown,
        };
        let uri = queue
            .http_target
            .as_ref()
            .and_then(|target| target.uri_override.as_ref());
        Self {
            state,
            replaces_urls: uri.is_some_and(|uri| uri.uri_override_enforce_mode != IF_NOT_EXISTS),
        }
    }
}

impl Look {
    pub(super) const fn passage(self) -> Passage {
        match self {
            Self::Found(Found {
                replaces_urls: true,
                ..
            }) => Passage::Replaced,
            Self::Never | Self::First | Self::Unseen | Self::Found(_) => Passage::Free,
        }
    }

    pub(in super::super) const fn state(self) -> QueueState {
        match self {
            Self::Never | Self::First | Self::Unseen => QueueState::Unknown,
            Self::Found(found) => found.state,
        }
    }
}
