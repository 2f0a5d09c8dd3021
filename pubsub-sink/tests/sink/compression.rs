//! Requests that are compressed on their way.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_sink::Endpoint;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    runtime::Handle,
};

use crate::world::{World, feed, record};

/// An endpoint in front of the world's, and the bytes that went through it to the server.
fn counted(world: &World) -> (Endpoint, Arc<AtomicUsize>) {
    let dial = world.emulator.dialer();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let endpoint = Endpoint::in_memory(move || {
        let server = dial()?;
        let (client, relay) = tokio::io::duplex(1 << 16);
        Handle::current().spawn(pass(relay, server, Arc::clone(&count)));
        Ok(client)
    });
    (endpoint, sent)
}

async fn pass(client: DuplexStream, server: DuplexStream, count: Arc<AtomicUsize>) {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let up = async {
        let mut buffer = vec![0; 1 << 14];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            count.fetch_add(read, Ordering::Relaxed);
            if to_server.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}

/// The bytes sent for a thousand records of a kilobyte that repeats itself.
async fn sent_with(gzip: bool) -> usize {
    let world = World::new(&["events"]);
    // Sent again, a request is compressed again.
    let unavailable = Fault::answer(Code::Unavailable, "an outage");
    world.fault(Rule::on(Method::Publish).once().then(unavailable));
    let (endpoint, sent) = counted(&world);
    let mut sink = world
        .builder()
        .endpoint(endpoint)
        .gzip(gzip)
        .build()
        .unwrap();
    let payloads: Vec<String> = (0..1_000)
        .map(|n| format!("{n} {}", "abcdefgh".repeat(128)))
        .collect();
    feed(
        &mut sink,
        payloads.iter().map(|payload| record("events", payload)),
    )
    .await;
    sink.close().await.unwrap();
    let mut stored = world.stored("events");
    stored.sort_unstable();
    let mut expected = payloads;
    expected.sort_unstable();
    assert_eq!(stored, expected, "every payload arrives as it was");
    sent.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn compressed_requests_are_small_on_the_wire_and_whole_at_the_server() {
    let (plain, packed) = (sent_with(false).await, sent_with(true).await);
    assert!(plain > 1_000_000, "{plain} bytes");
    assert!(packed * 10 < plain, "{packed} bytes instead of {plain}");
}
