//! The ack ids of one response, copied into one allocation.

/// Ack ids, one after the other.
///
/// A copy on purpose: a slice of the response would pin all of its payloads for as long as one
/// delivery of it is held, and a `String` each costs an allocation and 24 bytes of bookkeeping.
#[derive(Debug, Clone, Default)]
pub(crate) struct AckIds {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl AckIds {
    /// Room for `count` ids of `bytes` bytes in all.
    pub(crate) fn with_capacity(count: usize, bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(count),
        }
    }

    /// Adds an id. Answers false, and adds nothing, when 4 GiB would be exceeded.
    pub(crate) fn push(&mut self, id: &[u8]) -> bool {
        let Ok(end) = u32::try_from(self.bytes.len() + id.len()) else {
            return false;
        };
        self.bytes.extend_from_slice(id);
        self.ends.push(end);
        true
    }

    /// The id at `index`.
    ///
    /// # Panics
    ///
    /// When there is none: a delivery's index is given out with its ack id.
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Gives back what was allocated ahead: nothing is added any more.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
