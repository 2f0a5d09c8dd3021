//! The source over real gRPC and the embedded server, in memory and in paused time.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "a test that cannot go on fails, spawns its drivers, and names the variant it means"
)]

#[path = "wire/world.rs"]
mod world;

#[path = "wire/listening.rs"]
mod listening;

#[path = "wire/log.rs"]
mod log;

#[path = "wire/acknowledging.rs"]
mod acknowledging;
#[path = "wire/budgets.rs"]
mod budgets;
#[path = "wire/closing.rs"]
mod closing;
#[path = "wire/confirming.rs"]
mod confirming;
#[path = "wire/delivery.rs"]
mod delivery;
#[path = "wire/events.rs"]
mod events;
#[path = "wire/exactly_once.rs"]
mod exactly_once;
#[path = "wire/job.rs"]
mod job;
#[path = "wire/leases.rs"]
mod leases;
#[path = "wire/ordering.rs"]
mod ordering;
#[path = "wire/outages.rs"]
mod outages;
#[path = "wire/patience.rs"]
mod patience;
#[path = "wire/pausing.rs"]
mod pausing;
#[path = "wire/positions.rs"]
mod positions;
#[path = "wire/redelivery.rs"]
mod redelivery;
#[path = "wire/rescaling.rs"]
mod rescaling;
#[path = "wire/saved.rs"]
mod saved;
#[path = "wire/settling.rs"]
mod settling;
#[path = "wire/splits.rs"]
mod splits;
#[path = "wire/starting.rs"]
mod starting;
#[path = "wire/stopping.rs"]
mod stopping;
#[path = "wire/streams.rs"]
mod streams;
#[path = "wire/watchdogs.rs"]
mod watchdogs;
