//! Messages as records, over real gRPC and the embedded server, in memory and in paused time.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a test that cannot go on fails, and spawns its drivers"
)]

#[path = "wire/listening.rs"]
mod listening;
#[path = "wire/world.rs"]
#[expect(dead_code, reason = "shared with the tests of whole messages")]
mod world;

#[path = "decoding/barriers.rs"]
mod barriers;
#[path = "decoding/cuts.rs"]
mod cuts;
#[path = "decoding/lines.rs"]
mod lines;
#[path = "decoding/messages.rs"]
mod messages;
#[path = "decoding/payloads.rs"]
mod payloads;
#[path = "decoding/policies.rs"]
mod policies;
#[path = "decoding/redeliveries.rs"]
mod redeliveries;
