//! Splits that take turns.

use std::task::{Context, Poll};

use super::{PubsubSource, joining::last_word};
use crate::{error::SourceError, handout::Found};

/// The turn of a split that has a message.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) split: usize,
    pub(super) found: Found,
}

impl PubsubSource {
    /// Waits for a message; answers the split that has one.
    #[inline]
    pub(super) fn poll_split(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Turn, SourceError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut live = false;
        for _ in 0..self.splits.len() {
            let split = self.turn;
            let reader = &mut self.splits[split];
            match reader.poll_ready(cx) {
                Poll::Ready(Some(found)) => {
                    // The last of a response: the next one is another's.
                    if reader.is_at_last() {
                        self.pass_on();
                    }
                    return Poll::Ready(Some(Ok(Turn { split, found })));
                }
                Poll::Pending => live = true,
                // An error of one is the source's; whoever only follows it has none.
                Poll::Ready(None) => {
                    if let Some(error) = last_word(&mut self.splits) {
                        self.ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
            self.pass_on();
        }
        if live {
            return Poll::Pending;
        }
        self.ended = true;
        Poll::Ready(None)
    }

    /// One response of a split, then one of the next.
    fn pass_on(&mut self) {
        self.turn = (self.turn + 1) % self.splits.len();
    }
}
