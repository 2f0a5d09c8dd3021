//! Payloads, copied out of their response.

use bytes::Bytes;

use crate::message::Message;

/// Payloads are copied into blocks of this many bytes, if they are not larger themselves. A host
/// that keeps one message keeps no more than this of others, and an allocation serves many.
const BLOCK: usize = 4096;

/// Copies of payloads that lie together, until they are handed over to their messages.
#[derive(Debug)]
pub(super) struct Payloads {
    /// At most so many bytes are still to come.
    left: usize,
    block: Vec<u8>,
    /// Where each ends, and the number of its message.
    ends: Vec<(usize, usize)>,
}

impl Payloads {
    /// For payloads of at most so many bytes together.
    pub(super) fn of(bytes: usize) -> Self {
        Self {
            left: bytes,
            block: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Copies the payload of a message. Hands over what was copied before when its block is full.
    pub(super) fn add(&mut self, payload: &[u8], message: usize, messages: &mut [Message]) {
        if self.block.len() + payload.len() > BLOCK {
            self.hand_over(messages);
        }
        if self.block.capacity() == 0 {
            self.block
                .reserve_exact(self.left.min(BLOCK).max(payload.len()));
        }
        self.left = self.left.saturating_sub(payload.len());
        self.block.extend_from_slice(payload);
        self.ends.push((self.block.len(), message));
    }

    /// Hands what was copied over to its messages.
    pub(super) fn hand_over(&mut self, messages: &mut [Message]) {
        let block = Bytes::from(std::mem::take(&mut self.block));
        if let [(_, alone)] = *self.ends {
            self.ends.clear();
            if let Some(message) = messages.get_mut(alone) {
                message.data = block;
            }
            return;
        }
        let mut start = 0;
        for (end, message) in self.ends.drain(..) {
            if let Some(message) = messages.get_mut(message) {
                message.data = block.slice(start..end);
            }
            start = end;
        }
    }
}
