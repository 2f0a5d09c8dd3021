//! Services that answer their caller.

use connector_core::CheckpointError;
use gcp_emulator::{Code, Fault};
use pubsub_sink::{PublishMessage, Published};

use crate::world::{Bin, World, numbers, record};

#[tokio::test(start_paused = true)]
async fn each_submitter_gets_the_id_of_its_own_message() {
    let world = World::new(&["events"]);
    let mut sink = world.sink();
    let mut receipts = Vec::new();
    for n in numbers(0..50) {
        sink.ready().await.unwrap();
        receipts.push(sink.submit(record("events", n)));
    }
    let mut ids = Vec::new();
    for receipt in receipts {
        let published = receipt.await.unwrap();
        ids.push(published.message_id().unwrap().to_owned());
    }
    let seen = world
        .emulator
        .observe()
        .topic("projects/demo/topics/events");
    for message in &seen.messages {
        let number: usize = String::from_utf8_lossy(&message.data).parse().unwrap();
        assert_eq!(ids[number], message.message_id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_submitter_learns_of_a_rejection_and_of_the_lack_of_room() {
    let world = World::new(&["events"]);
    let bin = Bin::default();
    let limits = connector_core::Limits::new(1, 1 << 20);
    let mut sink = world
        .builder()
        .on_rejected(bin)
        .limits(limits)
        .build()
        .unwrap();
    let mut empty = record("events", "");
    empty.message = PublishMessage::default();
    sink.ready().await.unwrap();
    let rejected = sink.submit(empty);
    let unready = sink.submit(record("events", "x")).await.unwrap();
    assert!(matches!(unready, Published::NotAccepted), "{unready:?}");
    assert!(matches!(
        rejected.await.unwrap(),
        Published::Rejected { .. }
    ));
    assert_eq!(world.stored("events").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_submitter_is_told_when_the_sink_ends() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::answer(Code::PermissionDenied, "no"));
    let mut sink = world.sink();
    sink.ready().await.unwrap();
    let receipt = sink.submit(record("events", "x"));
    assert!(matches!(receipt.await, Err(CheckpointError::Closed { .. })));
    let after = sink.submit(record("events", "y")).await;
    assert!(matches!(after, Err(CheckpointError::Closed { .. })));
}
