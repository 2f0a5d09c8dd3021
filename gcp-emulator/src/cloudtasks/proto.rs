//! The messages of `google.cloud.tasks.v2` and `google.longrunning` that are answered.
//!
//! Declared by hand: the published type crate lacks a task's retry configuration, a queue's HTTP
//! target and the batch calls. Numbers and types are those of the public interface definition.

#![expect(
    clippy::exhaustive_structs,
    reason = "wire messages: callers build them with struct update syntax"
)]

mod operations;
mod queues;
mod requests;
mod tasks;

pub use operations::*;
pub use queues::*;
pub use requests::*;
pub use tasks::*;
