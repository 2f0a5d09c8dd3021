//! What the `throughput` program and its peers measure, and how they say it.
//!
//! All of them take the same flags, look at the same clocks and print the same line of JSON, so
//! that what differs between two lines is the client. Depends on no connector: the peers are
//! built without ours.

mod latencies;
mod meter;
mod report;
mod runtime;
mod usage;

pub use latencies::Latencies;
pub use meter::Meter;
pub use report::{Flags, Measured, nothing_in, period, span};
pub use runtime::{now, on_threads};
pub use usage::Usage;

/// Why a measurement came to nothing.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
