//! Claims about the machine.

mod laws;
mod scripted;
mod world;
