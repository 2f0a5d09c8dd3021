#![doc = include_str!("../README.md")]

mod damage;
mod error;
mod file_store;
mod memory;
mod owner;
mod progress;
#[cfg(feature = "simulation")]
mod simulated_disk;
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
#[cfg(feature = "simulation")]
pub use simulated_disk::{DiskFault, SimulatedDisk};
pub use store::CheckpointStore;
