#![doc = include_str!("conformance/guide.md")]

mod chance;
mod check;
mod clause;
pub mod flush_sink;
mod handler;
mod harness;
mod histories;
mod run;
pub mod source;
pub mod staged_sink;
mod tests_macro;
mod violation;

pub use chance::Chance;
pub use clause::Clause;
pub use handler::{FlakyHandler, FlushRefused};
pub use harness::{Harness, Hold, SinkHarness, SourceHarness, StateOf};
pub use histories::{Counts, Histories};
pub use run::{run_flush_sink, run_source, run_staged_sink};
pub use violation::Violation;
