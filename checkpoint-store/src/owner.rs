//! Who owns a store.

use std::fmt;

/// An owner of a store, as another process sees it in an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// The number of the ownership; it goes up by at least one with every owner.
    pub generation: u64,
    /// The process id the owner had, in its own process namespace.
    pub pid: u32,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}, generation {}", self.pid, self.generation)
    }
}

/// An owner that may be unknown, in the words of an error text.
pub(crate) struct Described<'a>(pub(crate) &'a Option<Owner>);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(owner) => owner.fmt(f),
            None => f.write_str("an owner that left no readable record"),
        }
    }
}
