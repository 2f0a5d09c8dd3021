//! The sink in a host's loop.

use std::time::Duration;

use connector_core::{
    Budget, Checkpoint, Epoch, Erased, Limits, Next, Restored, SavedState, StateError, Versioned,
    next_when,
};
use futures::{SinkExt, stream};
use gcp_emulator::Fault;
use pubsub_sink::{BuildError, SinkState};

use crate::world::{LONG, World, feed, numbers, record};

#[tokio::test(start_paused = true)]
async fn everything_accepted_before_a_snapshot_is_stored_when_its_receipt_resolves() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::Delay(Duration::from_millis(50)));
    let mut sink = world.sink();
    let mut epoch = Epoch::default();
    for round in 0..10 {
        feed(
            &mut sink,
            numbers(round * 300..(round + 1) * 300)
                .into_iter()
                .map(|n| record("events", n)),
        )
        .await;
        epoch = epoch.next();
        let receipt = sink.snapshot(epoch);
        receipt.await.unwrap();
        assert_eq!(world.stored("events").len(), (round + 1) * 300);
        let committed = sink.commit(epoch).await.unwrap();
        assert_eq!(committed.settled, 300);
    }
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_hosts_step_takes_a_message_only_when_the_sink_has_room() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::Delay(Duration::from_millis(50)));
    let limits = Limits::new(10, 1 << 20);
    let mut sink = world.builder().limits(limits).build().unwrap();
    let mut source = stream::iter(numbers(0..1_000).into_iter().map(Ok::<_, std::io::Error>));
    let run = async {
        loop {
            match next_when(&mut source, &mut sink).await.unwrap() {
                Next::Record(number) => {
                    futures::Sink::start_send(
                        std::pin::Pin::new(&mut sink),
                        record("events", number),
                    )
                    .unwrap();
                    assert!(sink.stats().in_flight_records <= 10);
                }
                Next::End => break,
                other => panic!("{other:?}"),
            }
        }
        sink.close().await.unwrap();
    };
    tokio::time::timeout(LONG, run).await.unwrap();
    assert_eq!(world.stored("events").len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn two_sinks_share_a_budget_and_both_go_on() {
    let world = World::new(&["events", "others"]);
    world.fault_on_publish(Fault::Delay(Duration::from_millis(20)));
    let budget = Budget::new(Limits::new(20, 1 << 20));
    let build = |name: &str| {
        let builder = world.builder().instance(name).budget(budget.clone());
        builder.build().unwrap()
    };
    let (mut one, mut two) = (build("one"), build("two"));
    let most = std::cell::Cell::new(0);
    let feeding = async |sink: &mut pubsub_sink::PubsubSink<_>, topic: &str| {
        for n in numbers(0..200) {
            sink.feed(record(topic, n)).await.unwrap();
            most.set(most.get().max(budget.held().items));
        }
        sink.flush().await.unwrap();
    };
    tokio::join!(feeding(&mut one, "events"), feeding(&mut two, "others"));
    assert_eq!(
        world.stored("events").len() + world.stored("others").len(),
        400
    );
    assert!(most.get() <= 22, "{} held", most.get());
    assert_eq!(budget.held(), Limits::default(), "nothing is held at rest");
}

#[tokio::test(start_paused = true)]
async fn a_saved_state_survives_its_envelope_and_refuses_the_wrong_builder() {
    let world = World::new(&["events"]);
    let sink = world.builder().instance("invoices").build().unwrap();
    let mut sink = Erased::new(sink);
    let saved: SavedState = sink.snapshot(Epoch::new(4)).await.unwrap();
    assert_eq!(
        (saved.connector(), saved.instance()),
        ("pubsub-sink", "invoices")
    );
    let bytes = postcard::to_allocvec(&saved).unwrap();
    let state: SinkState = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(state.instance(), "invoices");
    let restored = Restored::new(Epoch::new(4), state);
    let mut again = world
        .builder()
        .instance("invoices")
        .restore([restored.clone()])
        .build()
        .unwrap();
    assert_eq!(again.restored().await.unwrap().total(), 0);
    assert!(
        again.snapshot(Epoch::new(4)).await.is_err(),
        "epochs go on above"
    );
    again.snapshot(Epoch::new(5)).await.unwrap();
    let wrong = world
        .builder()
        .instance("orders")
        .restore([restored])
        .build();
    assert!(matches!(
        wrong,
        Err(BuildError::State(StateError::OtherInstance { .. }))
    ));
}

#[tokio::test(start_paused = true)]
async fn without_checkpoints_the_sink_is_an_ordinary_one() {
    let world = World::new(&["events"]);
    let mut sink = world.sink();
    sink.send(record("events", "0")).await.unwrap();
    assert_eq!(
        world.stored("events"),
        ["0"],
        "send resolves when the message is stored"
    );
    sink.close().await.unwrap();
}
