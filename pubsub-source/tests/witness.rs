//! The source against Google's Pub/Sub emulator: what our own server may have wrong is seen here.
//!
//! Needs the feature `witness` and a running emulator at `PUBSUB_EMULATOR_HOST`, without which the
//! tests fail; only those that kill an emulator start one of their own. Resources have fresh names,
//! so a running server can be used again and again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(
    dead_code,
    unreachable_pub,
    reason = "shared with the processes that read from our own server"
)]
#[path = "processes/role.rs"]
mod role;
#[path = "witness/world.rs"]
mod world;

#[path = "witness/door.rs"]
mod door;
#[path = "witness/log.rs"]
mod log;

#[path = "witness/crashes.rs"]
mod crashes;
#[path = "witness/delivery.rs"]
mod delivery;
#[path = "witness/exactly_once.rs"]
mod exactly_once;
#[path = "witness/killed.rs"]
mod killed;
#[path = "witness/leases.rs"]
mod leases;
#[path = "witness/order.rs"]
mod order;
#[path = "witness/outages.rs"]
mod outages;
#[path = "witness/processes.rs"]
mod processes;
#[path = "witness/sharing.rs"]
mod sharing;
#[path = "witness/splits.rs"]
mod splits;
#[path = "witness/starting.rs"]
mod starting;
