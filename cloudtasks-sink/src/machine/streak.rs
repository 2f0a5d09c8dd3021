//! Rejections of the service in a row.

use std::num::NonZeroU32;

use super::RecordId;
use crate::error::SinkError;

/// So many rejections in a row are a mistake in the configuration rather than in the data.
#[derive(Debug)]
pub(super) struct Streak {
    most: Option<NonZeroU32>,
    length: u32,
    /// The record that was one too many. With its verdict the sink ends.
    last: Option<(RecordId, SinkError)>,
}

impl Streak {
    pub(super) const fn new(most: Option<NonZeroU32>) -> Self {
        Self {
            most,
            length: 0,
            last: None,
        }
    }

    /// A task exists: whatever was wrong before concerned single ones.
    pub(super) const fn end(&mut self) {
        self.length = 0;
    }

    /// The service refused one task; `error` makes the error for this many in a row.
    pub(super) fn extend(&mut self, id: RecordId, error: impl FnOnce(u32) -> SinkError) {
        self.length = self.length.saturating_add(1);
        let is_last = self.most.is_some_and(|most| self.length >= most.get());
        if is_last && self.last.is_none() {
            self.last = Some((id, error(self.length)));
        }
    }

    pub(super) const fn length(&self) -> u32 {
        self.length
    }

    /// The record has its verdict: how the sink ends with it, if it does.
    pub(super) fn ends_with(&mut self, id: RecordId) -> Option<SinkError> {
        self.last
            .take_if(|(last, _)| *last == id)
            .map(|(_, error)| error)
    }
}
