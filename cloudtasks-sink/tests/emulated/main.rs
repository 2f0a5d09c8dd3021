//! The sink over real gRPC and the embedded server, in memory and in paused time.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on fails; tests read clocks, spawn drivers, and name the variant they mean"
)]

mod batching;
mod checkpoints;
mod closing;
mod creating;
mod failing;
#[path = "../../../pubsub-source/tests/wire/listening.rs"]
mod listening;
mod naming;
mod operations;
mod pacing;
mod queues;
mod rejecting;
mod setting_up;
mod spans;
mod staged;
mod storm;
mod streaks;
mod targets;
mod world;
