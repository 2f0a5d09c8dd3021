//! A store in memory, for tests.

mod fault;
mod place;
mod store;

pub use fault::MemoryFault;
pub use place::MemoryPlace;
pub use store::MemoryStore;
