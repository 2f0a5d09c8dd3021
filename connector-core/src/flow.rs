//! Budgets in items and bytes, shareable between connectors.

mod budget;

pub use budget::{Budget, Holder, Member};

/// An amount of items and of their bytes: a limit, or what is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Number of items.
    pub items: usize,
    /// Bytes of the items as encoded.
    pub bytes: usize,
}

impl Limits {
    /// Items and bytes.
    #[must_use]
    pub const fn new(items: usize, bytes: usize) -> Self {
        Self { items, bytes }
    }

    /// A limit on items alone.
    #[must_use]
    pub const fn items(items: usize) -> Self {
        Self {
            items,
            bytes: usize::MAX,
        }
    }

    /// A limit on bytes alone.
    #[must_use]
    pub const fn bytes(bytes: usize) -> Self {
        Self {
            items: usize::MAX,
            bytes,
        }
    }

    /// Whether `held` is below this limit in both dimensions.
    ///
    /// Admission asks "below the cap", never "does it fit": with the second question one item
    /// larger than the whole limit would wait for ever.
    #[must_use]
    pub const fn admits(self, held: Self) -> bool {
        held.items < self.items && held.bytes < self.bytes
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.items == 0 && self.bytes == 0
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            items: self.items.saturating_add(other.items),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            items: self.items.saturating_sub(other.items),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            items: self.items.max(other.items),
            bytes: self.bytes.max(other.bytes),
        }
    }

    pub(crate) const fn split(self, ways: usize) -> Self {
        Self {
            items: self.items / ways,
            bytes: self.bytes / ways,
        }
    }
}
