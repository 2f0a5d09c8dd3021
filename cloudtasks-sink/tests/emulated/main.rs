//! The sink over real gRPC and the embedded server, in memory and in paused time.

mod checkpoints;
mod closing;
mod creating;
mod failing;
mod naming;
mod rejecting;
mod setting_up;
mod world;
