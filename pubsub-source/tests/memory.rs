//! What a held delivery costs in memory, counted by the allocator. The server is another process.

#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test that cannot go on fails"
)]

#[path = "processes/role.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests over processes, which use all of it"
)]
mod role;
#[path = "processes/server.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests over processes, which use all of it"
)]
mod server;

use std::time::Duration;

use futures::StreamExt;
use peak_alloc::PeakAlloc;
use pubsub_source::{Endpoint, PubsubSource};
use server::{SUBSCRIPTION, Server, serve};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Far more than a slow machine needs.
const LIMIT: Duration = Duration::from_secs(120);

/// Bytes for each delivery that was handed out and is held, ack id included.
const BOUND: usize = 230;

const HELD: usize = 100_000;

#[test]
fn a_delivery_that_is_held_costs_at_most_230_bytes_with_its_ack_id_of_176() {
    if let Some(role) = role::role() {
        serve(role[1].parse().unwrap());
        return;
    }
    let name = "a_delivery_that_is_held_costs_at_most_230_bytes_with_its_ack_id_of_176";
    let server = Server::start(name, HELD as u64);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut source = PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
            .endpoint(Endpoint::emulator(&server.address).unwrap())
            .first_outstanding(HELD)
            .build()
            .unwrap();
        // Connections and their buffers are made later, and count too.
        let before = PeakAlloc.current_usage();
        for _ in 0..HELD {
            let message = tokio::time::timeout(LIMIT, source.next()).await;
            drop(message.unwrap().unwrap().unwrap());
        }
        assert_eq!(source.stats().leased, HELD);
        let held = PeakAlloc.current_usage() - before;
        println!("{} bytes for each of {HELD} deliveries", held / HELD);
        assert!(held <= BOUND * HELD, "{} bytes for each", held / HELD);
    });
}
