//! Claims about the machine.

mod attempts;
mod batches;
mod cuts;
mod keys;
mod laws;
mod rejections;
mod staging;
mod topics;
mod world;
