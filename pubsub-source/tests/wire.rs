//! The source over real gRPC and the embedded server, in memory and in paused time.

#[path = "wire/world.rs"]
mod world;

#[path = "wire/acknowledging.rs"]
mod acknowledging;
#[path = "wire/closing.rs"]
mod closing;
#[path = "wire/delivery.rs"]
mod delivery;
#[path = "wire/leases.rs"]
mod leases;
#[path = "wire/redelivery.rs"]
mod redelivery;
#[path = "wire/settling.rs"]
mod settling;
#[path = "wire/streams.rs"]
mod streams;
