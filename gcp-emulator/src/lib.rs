#![doc = include_str!("../README.md")]

mod call;
mod clock;
pub mod cloudtasks;
mod code;
mod connection;
mod emulator;
mod fault;
pub mod flood;
mod front;
mod hub;
mod method;
mod observation;
mod page;
pub mod pubsub;
mod routing;
mod time;

pub use call::{Body, Call};
pub use code::Code;
pub use emulator::{Emulator, EmulatorBuilder};
pub use fault::{Answer, AnswerMaker, Fault, FaultPlan, Faults, Rule, RuleId, Trigger};
pub use method::Method;
pub use observation::Observation;
pub use page::PageRefusal;
pub use time::Time;

/// `google.protobuf.Empty`, under a name the generated server glue can spell.
type Empty = ();
