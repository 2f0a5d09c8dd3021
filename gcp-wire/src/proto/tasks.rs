//! The messages of `google.cloud.tasks.v2`, field numbers as in its interface definition.
//!
//! Maps are ordered, so that encoding the same message twice gives the same bytes: an unanswered
//! batch is sent again byte for byte.
#![expect(
    clippy::exhaustive_structs,
    clippy::exhaustive_enums,
    reason = "messages are built field by field; new fields come with a new version of the interface"
)]

mod batch;
mod queue_type;
mod request;
mod target;
mod task_type;

pub use self::batch::*;
pub use self::queue_type::*;
pub use self::request::*;
pub use self::target::*;
pub use self::task_type::*;

#[cfg(test)]
mod tests;
