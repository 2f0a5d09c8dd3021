//! Messages that leave together.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use connector_core::ledger::Place;
use std::time::Instant;

use super::ReplyId;
use crate::message::{self, PublishMessage};

/// One message of a batch: its place in the ledger, and where its frame ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) place: Place,
    end: u32,
}

/// A batch that still takes messages.
#[derive(Debug)]
pub(super) struct OpenBatch {
    frames: BytesMut,
    items: Vec<Item>,
    /// Messages whose submitter waits for an answer, in their order: few, so kept apart.
    replies: Vec<(u32, ReplyId)>,
    /// When the first message came, for the linger.
    pub(super) since: Instant,
}

impl OpenBatch {
    pub(super) fn new(spare: Spare, since: Instant) -> Self {
        Self {
            frames: spare.frames,
            items: spare.items,
            replies: Vec::new(),
            since,
        }
    }

    /// Encodes a message onto the end.
    pub(super) fn push(&mut self, place: Place, message: &PublishMessage, reply: Option<ReplyId>) {
        message::encode(message, &mut self.frames);
        self.pushed(place, reply);
    }

    /// Adds a message that is encoded already.
    pub(super) fn push_frame(&mut self, place: Place, frame: &[u8], reply: Option<ReplyId>) {
        self.frames.extend_from_slice(frame);
        self.pushed(place, reply);
    }

    fn pushed(&mut self, place: Place, reply: Option<ReplyId>) {
        let index = u32::try_from(self.items.len()).expect("a batch has at most 1,000 messages");
        let end = u32::try_from(self.frames.len()).expect("a batch has at most 10,000,000 bytes");
        self.items.push(Item { place, end });
        if let Some(reply) = reply {
            self.replies.push((index, reply));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn close(self) -> Batch {
        Batch {
            frames: self.frames.freeze(),
            items: self.items,
            replies: self.replies,
        }
    }
}

/// A batch that is complete: its bytes never change again, however often they are sent.
#[derive(Debug)]
pub(super) struct Batch {
    frames: Bytes,
    items: Vec<Item>,
    replies: Vec<(u32, ReplyId)>,
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The frames of a run of messages.
    pub(super) fn frames(&self, run: Range<usize>) -> Bytes {
        self.frames
            .slice(self.start(run.start)..self.start(run.end))
    }

    /// The number of bytes of a run of messages.
    pub(super) fn bytes(&self, run: Range<usize>) -> usize {
        self.start(run.end) - self.start(run.start)
    }

    /// The encoded message at `index`, copied.
    pub(super) fn message(&self, index: usize) -> Bytes {
        message::payload_of(&self.frames[self.start(index)..self.start(index + 1)])
    }

    pub(super) fn place(&self, index: usize) -> Place {
        self.items[index].place
    }

    pub(super) fn places(&self, run: Range<usize>) -> impl Iterator<Item = Place> + '_ {
        self.items[run].iter().map(|item| item.place)
    }

    /// Takes out whoever waits for the message at `index`.
    pub(super) fn take_reply(&mut self, index: usize) -> Option<ReplyId> {
        let at = self
            .replies
            .iter()
            .position(|(of, _)| *of as usize == index)?;
        Some(self.replies.remove(at).1)
    }

    /// Takes out those who wait for a message of the run, with its index, in their order.
    pub(super) fn take_replies(&mut self, run: Range<usize>) -> Vec<(usize, ReplyId)> {
        self.replies
            .extract_if(.., |(of, _)| run.contains(&(*of as usize)))
            .map(|(of, reply)| (of as usize, reply))
            .collect()
    }

    /// Gives the memory back, when nobody else holds the bytes.
    pub(super) fn recycle(mut self) -> Option<Spare> {
        let mut frames = self.frames.try_into_mut().ok()?;
        frames.clear();
        self.items.clear();
        Some(Spare {
            frames,
            items: self.items,
        })
    }

    /// Where the frame of the message at `index` starts; for one past the last, where all end.
    fn start(&self, index: usize) -> usize {
        index
            .checked_sub(1)
            .map_or(0, |before| self.items[before].end as usize)
    }
}

/// Memory of an earlier batch.
#[derive(Debug, Default)]
pub(super) struct Spare {
    frames: BytesMut,
    items: Vec<Item>,
}

/// Memory kept for the next batches. Without it every request fetches its buffer from the kernel
/// and gives it back, which at 1 KiB per message was a third of the cost of publishing.
#[derive(Debug, Default)]
pub(super) struct Spares {
    kept: Vec<Spare>,
    bytes: usize,
}

/// Buffers kept, and their bytes together: more than a destination has under way at the default limit
/// of requests, in requests of 1,000 messages of 1 KiB, and as many as there are requests at once to
/// many. Answers that come at once give back as many, and whatever is not kept is fetched from the
/// kernel again, page by page.
const MAX_SPARES: usize = 128;
const MAX_SPARE_BYTES: usize = 16 << 20;

impl Spares {
    pub(super) fn take(&mut self) -> Spare {
        let spare = self.kept.pop().unwrap_or_default();
        self.bytes -= spare.frames.capacity();
        spare
    }

    pub(super) fn give(&mut self, batch: Batch) {
        if self.kept.len() < MAX_SPARES
            && let Some(spare) = batch.recycle()
            && self.bytes + spare.frames.capacity() <= MAX_SPARE_BYTES
        {
            self.bytes += spare.frames.capacity();
            self.kept.push(spare);
        }
    }
}
