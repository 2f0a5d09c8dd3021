//! What a state of staged messages does after a crash.

use std::{collections::BTreeMap, time::Duration};

use connector_core::{Checkpoint, CheckpointError, Epoch, Restored};
use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_sink::{BuildError, PubsubSink, SinkError, SinkState};
use tokio::{runtime::Handle, task::AbortHandle};

use crate::world::{
    LONG, Record, World, checkpoint, feed, full, keyed, now, numbers, record, seal,
};

const INCARNATION: &str = "sink-incarnation";
const SEQUENCE: &str = "sink-sequence";

/// A sink whose process can be killed.
struct Mortal {
    sink: PubsubSink<Record>,
    driver: AbortHandle,
}

fn start(world: &World, restored: impl IntoIterator<Item = Restored<SinkState>>) -> Mortal {
    let (sink, driver) = world
        .staged()
        .identity_attributes(INCARNATION, SEQUENCE)
        .restore(restored)
        .build_with_driver()
        .unwrap();
    let driver = Handle::current().spawn(driver).abort_handle();
    Mortal { sink, driver }
}

impl Mortal {
    async fn kill(self, world: &World) {
        self.driver.abort();
        world.emulator.drop_connections();
        tokio::task::yield_now().await;
        drop(self.sink);
    }
}

/// How often each identity was stored in a topic.
fn identities(world: &World, topic: &str) -> BTreeMap<(String, String), usize> {
    let seen = world.emulator.observe().topic(&full(topic));
    let mut counts = BTreeMap::new();
    for message in &seen.messages {
        let identity = (
            message.attributes[INCARNATION].clone(),
            message.attributes[SEQUENCE].clone(),
        );
        *counts.entry(identity).or_default() += 1;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn with_the_settled_mark_a_restart_publishes_nothing() {
    let world = World::new(&["events"]);
    let mut first = start(&world, []);
    feed(
        &mut first.sink,
        [record("events", "0"), record("events", "1")],
    )
    .await;
    let (saved, committed) = checkpoint(&mut first.sink, 1).await;
    assert_eq!(committed.settled, 2);
    first.kill(&world).await;
    let mut second = start(&world, [saved.settled()]);
    assert_eq!(second.sink.restored().await.unwrap().total(), 0);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.count(Method::Publish), 1);
    assert_eq!(second.sink.stats().records_restored, 0);
}

#[tokio::test(start_paused = true)]
async fn without_the_mark_all_that_the_state_names_is_published_again_under_its_identities() {
    let world = World::new(&["events"]);
    let mut first = start(&world, []);
    feed(
        &mut first.sink,
        numbers(0..10).into_iter().map(|n| record("events", n)),
    )
    .await;
    let (saved, _) = checkpoint(&mut first.sink, 1).await;
    first.kill(&world).await;
    let mut second = start(&world, [saved.restored()]);
    assert_eq!(second.sink.restored().await.unwrap().settled, 10);
    assert_eq!(second.sink.stats().records_restored, 10);
    assert_eq!(world.stored("events").len(), 20);
    let seen = identities(&world, "events");
    assert_eq!(seen.len(), 10, "a consumer can tell the repeated ones");
    assert!(seen.values().all(|times| *times == 2));
    // New messages are of the new incarnation: no identity is used again for another message.
    feed(&mut second.sink, [record("events", "new")]).await;
    checkpoint(&mut second.sink, 2).await;
    assert_eq!(identities(&world, "events").len(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_the_checkpoint_is_durable_leaves_nothing_outside() {
    let world = World::new(&["events"]);
    let mut first = start(&world, []);
    let (empty, _) = checkpoint(&mut first.sink, 1).await;
    feed(&mut first.sink, [record("events", "0")]).await;
    seal(&mut first.sink, 2).await;
    first.kill(&world).await;
    let mut second = start(&world, [empty.restored()]);
    second.sink.restored().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(world.stored("events").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_commit_repeats_what_the_state_names_and_loses_nothing() {
    let world = World::new(&["events", "others"]);
    let others = full("others");
    let rule = Rule::on(Method::Publish).when(move |call| call.resource() == Some(&others));
    let held = world.emulator.faults().add(rule.then(Fault::Never));
    let mut first = start(&world, []);
    feed(
        &mut first.sink,
        [record("events", "0"), record("others", "1")],
    )
    .await;
    seal(&mut first.sink, 1).await;
    drop(first.sink.commit(Epoch::new(1)));
    while world.stored("events").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // What is confirmed by now, the next state does not name.
    let saved = seal(&mut first.sink, 2).await;
    assert_eq!(saved.restored().state.messages(), 1);
    first.kill(&world).await;
    world.emulator.faults().remove(held);
    let mut second = start(&world, [saved.restored()]);
    assert_eq!(second.sink.restored().await.unwrap().settled, 1);
    assert_eq!(world.stored("events"), ["0"]);
    assert_eq!(world.stored("others"), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_several_states_name_is_published_once_and_not_at_all_where_one_is_settled()
{
    let world = World::new(&["events"]);
    let mut first = start(&world, []);
    feed(&mut first.sink, [record("events", "0")]).await;
    let one = seal(&mut first.sink, 1).await;
    feed(&mut first.sink, [record("events", "1")]).await;
    let two = seal(&mut first.sink, 2).await;
    first.kill(&world).await;
    let states = [one.restored(), two.restored(), two.restored()];
    let mut second = start(&world, states);
    assert_eq!(second.sink.restored().await.unwrap().settled, 2);
    assert_eq!(world.stored("events"), ["0", "1"]);
    second.kill(&world).await;
    let mut third = start(&world, [one.settled(), two.restored()]);
    assert_eq!(third.sink.restored().await.unwrap().settled, 1);
    assert_eq!(world.stored("events"), ["0", "1", "1"]);
}

#[tokio::test(start_paused = true)]
async fn one_state_can_be_restored_more_than_once_in_one_process() {
    let world = World::new(&["events"]);
    let mut first = start(&world, []);
    feed(&mut first.sink, [record("events", "0")]).await;
    let state = first.sink.snapshot(Epoch::new(1)).await.unwrap();
    first.kill(&world).await;
    for times in 1..=2 {
        let restored = Restored::new(Epoch::new(1), state.clone());
        let mut sink = start(&world, [restored]);
        assert_eq!(sink.sink.restored().await.unwrap().settled, 1);
        assert_eq!(world.stored("events").len(), times);
        sink.kill(&world).await;
    }
    assert_eq!(state.messages(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_flushing_sink_refuses_a_state_that_names_messages_and_takes_one_that_names_none() {
    let world = World::new(&["events"]);
    let mut first = start(&world, []);
    feed(&mut first.sink, [record("events", "0")]).await;
    let (named, _) = checkpoint(&mut first.sink, 1).await;
    let (none, _) = checkpoint(&mut first.sink, 2).await;
    let refused = world.builder().restore([named.restored()]).build();
    assert!(matches!(
        refused,
        Err(BuildError::StagedState {
            messages: 1,
            quarantined: 0
        })
    ));
    let mut flushing = world.builder().restore([none.restored()]).build().unwrap();
    assert_eq!(flushing.restored().await.unwrap().total(), 0);
    // And back: a flushing sink's state names nothing.
    let flushed = seal(&mut flushing, 3).await;
    let mut staged = start(&world, [flushed.restored()]);
    assert_eq!(staged.sink.restored().await.unwrap().total(), 0);
    assert_eq!(world.stored("events"), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_restore_commits_ends_the_sink_when_nothing_of_it_completes() {
    let world = World::new(&["events"]);
    let builder = || world.staged().message_ordering(true);
    let mut first = builder().build().unwrap();
    feed(&mut first, [keyed("events", "key", "0")]).await;
    let saved = seal(&mut first, 1).await;
    drop(first);
    world.fault_on_publish(Fault::answer(Code::Unavailable, "down"));
    // The host waits for nothing but the receipt.
    let started = now();
    let mut second = builder().restore([saved.restored()]).build().unwrap();
    let lost = tokio::time::timeout(LONG, second.restored()).await;
    let lost = lost.expect("the wait is bounded");
    assert!(matches!(lost, Err(CheckpointError::Closed { .. })));
    assert_eq!(started.elapsed().as_secs(), 600);
    assert!(matches!(
        second.ready().await,
        Err(SinkError::Stalled { items: 1, .. })
    ));
}
