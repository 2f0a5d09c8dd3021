#![doc = include_str!("../README.md")]

mod damage;
mod error;
mod file_store;
mod memory;
mod owner;
mod progress;
mod store;

pub use damage::{Damage, Stake};
pub use error::StoreError;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use file_store::fuzzing;
pub use file_store::{FileStore, FileStoreBuilder};
pub use memory::{MemoryFault, MemoryPlace, MemoryStore};
pub use owner::Owner;
pub use progress::Progress;
pub use store::CheckpointStore;
