//! Sets of messages.

use std::fmt;

/// Messages by their numbers, which are below 64.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cover(u64);

impl Cover {
    pub(crate) fn insert(&mut self, message: usize) {
        assert!(message < 64, "{message} is too many");
        self.0 |= 1 << message;
    }

    pub(crate) const fn remove(&mut self, message: usize) {
        self.0 &= !(1 << message);
    }

    pub(crate) const fn has(self, message: usize) -> bool {
        self.0 >> message & 1 == 1
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Cover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries((0..64).filter(|message| self.has(*message)))
            .finish()
    }
}
