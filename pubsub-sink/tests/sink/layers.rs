//! Messages put together from parts.

use futures::SinkExt;
use pubsub_sink::PubsubSink;

use crate::world::{World, full};

#[tokio::test(start_paused = true)]
async fn a_message_is_put_together_from_a_payload_attributes_and_a_key() {
    let world = World::new(&["events"]);
    let mut sink = PubsubSink::payload(|record: &(u32, &str)| {
        Ok((record.0 != 13).then(|| record.0.to_string()))
    })
    .attributes(|record: &(u32, &str)| [("customer", record.1.to_owned())])
    .attributes(|_: &(u32, &str)| [("shop", "berlin")])
    .ordering_key(|record: &(u32, &str)| (!record.1.is_empty()).then_some(record.1))
    .message_ordering(true)
    .topic(full("events").parse().unwrap())
    .endpoint(world.endpoint())
    .build()
    .unwrap();
    for record in [(42, "acme"), (13, "skipped"), (7, "")] {
        sink.send(record).await.unwrap();
    }
    assert_eq!(sink.stats().records_skipped, 1);
    sink.close().await.unwrap();
    let seen = world.emulator.observe().topic(&full("events"));
    let messages: Vec<_> = seen.messages.iter().collect();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].data.as_ref(), b"42");
    assert_eq!(messages[0].ordering_key, "acme");
    assert_eq!(messages[0].attributes["customer"], "acme");
    assert_eq!(messages[0].attributes["shop"], "berlin");
    assert_eq!(messages[1].data.as_ref(), b"7");
    assert_eq!(messages[1].ordering_key, "");
}
