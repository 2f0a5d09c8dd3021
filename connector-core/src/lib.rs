#![doc = include_str!("../README.md")]

pub mod backoff;
pub mod checkpoint;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod decode;
pub mod destination;
pub mod encode;
pub mod epoch;
pub mod erased;
pub mod failure;
pub mod figures;
pub mod flow;
pub mod host;
pub mod ledger;
pub mod progress;
mod report;
pub mod saved;
pub mod shard;
pub mod trace;
pub mod wall_clock;

pub use checkpoint::{Cause, Checkpoint, CheckpointError, Committed, Receipt, Resolver, Restored};
pub use decode::Decode;
pub use destination::{DestinationResolver, Fixed, Resolution};
pub use encode::{BoxError, Encode};
pub use epoch::Epoch;
pub use erased::Erased;
pub use failure::{Fail, FailureHandler, LogAndDrop, Rejected, RejectedReason, Verdict};
pub use flow::{Budget, Limits, Member};
pub use host::{Next, next_when, settle};
pub use progress::ProgressWatch;
pub use report::Report;
pub use saved::{SavedState, SavedStates, StateError, Versioned};
pub use shard::shard;
pub use trace::TraceContext;
pub use wall_clock::WallClock;
