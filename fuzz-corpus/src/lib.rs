#![doc = include_str!("../README.md")]

mod corpus;
mod finding;
mod mutation;
mod room;
mod target;

pub use finding::{Finding, Why};
pub use room::Room;
pub use target::Target;
