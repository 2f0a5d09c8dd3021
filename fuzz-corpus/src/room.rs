//! How much memory a target may take.

/// A bound on the memory that one input may make a target hold at a time, in bytes.
///
/// It grows with the input, since whoever sends bytes may make us hold something for each; a number
/// in the input may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    base: u64,
    per_byte: u64,
}

impl Room {
    /// `base` bytes, and `per_byte` more for each byte of the input.
    #[must_use]
    pub const fn new(base: u64, per_byte: u64) -> Self {
        Self { base, per_byte }
    }

    pub(crate) fn of(self, input: &[u8]) -> u64 {
        let length = u64::try_from(input.len()).unwrap_or(u64::MAX);
        self.base
            .saturating_add(self.per_byte.saturating_mul(length))
    }
}

impl Default for Room {
    /// 64 KiB, and 1 KiB per byte: two bytes of protobuf make an empty message of a list, which
    /// takes up to 300 bytes, three times while the list grows.
    fn default() -> Self {
        Self::new(64 << 10, 1 << 10)
    }
}
