//! Traces that go on behind a topic.

use futures::SinkExt;
use pubsub_sink::{PublishMessage, TraceContext};

use crate::world::{World, full, record};

const ATTRIBUTE: &str = "googclient_traceparent";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test(start_paused = true)]
async fn a_record_carries_its_position_in_a_trace_and_one_without_keeps_the_encoders() {
    let world = World::new(&["events"]);
    let context: TraceContext = PARENT.parse().unwrap();
    let mut sink = world
        .builder()
        .trace_context(move |record| {
            let traced = record.message.payload().as_ref() == b"traced";
            traced.then_some(context)
        })
        .build()
        .unwrap();
    sink.feed(record("events", "traced")).await.unwrap();
    let mut own = record("events", "own");
    own.message = PublishMessage::new("own").attribute(ATTRIBUTE, "the encoder's");
    sink.feed(own).await.unwrap();
    sink.feed(record("events", "without")).await.unwrap();
    sink.close().await.unwrap();
    let seen = world.emulator.observe().topic(&full("events"));
    let positions: Vec<Option<&str>> = seen
        .messages
        .iter()
        .map(|message| message.attributes.get(ATTRIBUTE).map(String::as_str))
        .collect();
    assert_eq!(positions, [Some(PARENT), Some("the encoder's"), None]);
}
