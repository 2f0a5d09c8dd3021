//! Messages that are taken out to be decoded, one at a time.

use std::task::{Context, Poll, ready};

use gcp_wire::SubscriptionName;

use super::{PubsubSource, turns::Turn};
use crate::{
    decode::DecodeFailure,
    error::SourceError,
    handout::{HandOut, Opened},
    split::SplitReader,
};

impl PubsubSource {
    /// Waits for the next message to hand out its records. It stays in hand until it is finished, given
    /// back or revoked; only then may the next one be opened.
    pub(crate) fn poll_open(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Opened, SourceError>>> {
        let Turn { split, found } = match ready!(self.poll_split(cx)) {
            Some(Ok(turn)) => turn,
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        };
        self.opened = split;
        let mut opened = self.splits[split].open(found);
        opened.message.delivery = opened.message.delivery.of_split(split);
        Poll::Ready(Some(Ok(opened)))
    }

    pub(crate) fn decode_failure(&self) -> DecodeFailure {
        self.decode_failure
    }

    /// The number of splits.
    pub(crate) fn splits(&self) -> usize {
        self.splits.len()
    }

    /// The split that the message in hand belongs to.
    pub(crate) fn opened(&self) -> usize {
        self.opened
    }

    /// Goes on with the message that a split has in hand.
    pub(crate) fn reopen(&mut self, split: usize) {
        self.opened = split;
    }

    /// Whether a split hands nothing out for the time being.
    pub(crate) fn is_paused_at(&self, split: usize) -> bool {
        self.splits[split].is_paused()
    }

    fn opened_split(&mut self) -> &mut SplitReader {
        &mut self.splits[self.opened]
    }

    /// The hand-out queue of the split that the message in hand belongs to.
    pub(crate) fn out(&mut self) -> &mut HandOut {
        self.opened_split().out()
    }

    /// The subscription that the message in hand came through.
    pub(crate) fn opened_from(&self) -> &SubscriptionName {
        self.splits[self.opened].subscription()
    }

    /// Whether the message in hand is still ours; if not, it comes again.
    pub(crate) fn still_in_hand(&mut self) -> bool {
        self.opened_split().still_in_hand()
    }

    /// Gives the message in hand back at once.
    pub(crate) fn turn_down(&mut self) {
        self.opened_split().turn_down();
    }

    /// Ends the source over the message in hand. The next poll gives the error.
    pub(crate) fn fail(&mut self, error: SourceError) {
        self.opened_split().fail(error);
        // No message of another split comes out before it.
        self.turn = self.opened;
    }
}
