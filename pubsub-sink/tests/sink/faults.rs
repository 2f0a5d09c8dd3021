//! Every fault at once, for as long as records come.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use connector_core::{Checkpoint, Epoch};
use gcp_emulator::{Call, Code, Fault, Method, Rule};
use pubsub_sink::{Delivery, PubsubDeadLetterQueue};

use crate::world::{LONG, World, feed, full, is_poisoned, keyed, numbers, published, record, wide};

/// Every `period`-th publish request, beginning with number `first`.
fn each(period: u64, first: u64, fault: Fault) -> Rule {
    let seen = Arc::new(AtomicU64::new(0));
    let hits = move |_: &Call| seen.fetch_add(1, Ordering::Relaxed) % period == first;
    Rule::on(Method::Publish).when(hits).then(fault)
}

/// The plan: stored and the answer lost, connections and streams that break, before and after the
/// effect.
fn plan(world: &World) {
    let faults = [
        Fault::answer(Code::Unavailable, "the answer is lost").after_effect(),
        Fault::GoAway(0x0),
        Fault::GoAway(0x0).after_effect(),
        Fault::GoAwayUnseen(0x0),
        Fault::ResetStream(0x2),
        Fault::ResetStream(0x8).after_effect(),
        Fault::DropConnection,
        Fault::Never,
    ];
    for (first, fault) in (0..).zip(faults) {
        world.fault(each(23, 2 * first, fault));
    }
}

async fn everything_arrives(delivery: Delivery) {
    let world = World::new(&["events", "others"]);
    plan(&world);
    let mut sink = world
        .builder()
        .delivery(delivery)
        .batch_messages(20)
        .build()
        .unwrap();
    for epoch in 1..=20usize {
        if epoch == 10 {
            // Half a minute of nothing but UNAVAILABLE.
            let outage = Rule::on(Method::Publish).then(Fault::answer(Code::Unavailable, "down"));
            let outage = world.emulator.faults().add(outage);
            let faults = world.emulator.faults().clone();
            let end = async move {
                tokio::time::sleep(Duration::from_secs(30)).await;
                faults.remove(outage);
            };
            drop(tokio::runtime::Handle::current().spawn(end));
        }
        let range = numbers((epoch - 1) * 200..epoch * 200);
        let topic = |at: usize| ["events", "others"][at % 2];
        let records = range.into_iter().enumerate();
        feed(&mut sink, records.map(|(at, n)| record(topic(at), n))).await;
        let covered = epoch * 200;
        let epoch = Epoch::new(epoch as u64);
        let snapshot = sink.snapshot(epoch);
        tokio::time::timeout(LONG, snapshot).await.unwrap().unwrap();
        let commit = sink.commit(epoch);
        tokio::time::timeout(LONG, commit).await.unwrap().unwrap();
        let stored = [world.stored("events"), world.stored("others")].concat();
        let distinct: BTreeSet<&String> = stored.iter().collect();
        assert_eq!(
            distinct.len(),
            covered,
            "nothing is lost, nothing comes early"
        );
    }
    let stats = sink.stats();
    assert!(stats.requests_retried > 20, "{stats:?}");
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_flushing_sink_loses_nothing_to_a_plan_of_every_fault() {
    everything_arrives(Delivery::Flush).await;
}

#[tokio::test(start_paused = true)]
async fn a_staged_sink_loses_nothing_to_a_plan_of_every_fault() {
    everything_arrives(Delivery::Staged).await;
}

#[tokio::test(start_paused = true)]
async fn a_poisoned_record_in_every_tenth_batch_costs_its_neighbours_nothing() {
    let world = World::new(&["events", "rejected"]);
    let rejected = full("rejected");
    world.fault(
        Rule::on(Method::Publish)
            .when(move |call| call.resource() != Some(&rejected) && is_poisoned(call))
            .then(Fault::answer(
                Code::InvalidArgument,
                "does not match the schema",
            )),
    );
    let queue = PubsubDeadLetterQueue::builder(full("rejected").parse().unwrap())
        .endpoint(world.endpoint())
        .build()
        .unwrap();
    let mut sink = world
        .builder()
        .on_rejected(queue)
        .batch_messages(10)
        .limits(wide())
        .build()
        .unwrap();
    let payload = |number: usize| {
        let poison = if number % 100 == 55 { "!" } else { "" };
        format!("{number}{poison}")
    };
    feed(&mut sink, (0..2_000).map(|n| record("events", payload(n)))).await;
    sink.snapshot(Epoch::new(1)).await.unwrap();
    let mut stored = world.stored("events");
    stored.sort_by_key(|number| number.parse::<usize>().unwrap());
    let good: Vec<String> = numbers(0..2_000)
        .into_iter()
        .filter(|number| number.parse::<usize>().unwrap() % 100 != 55)
        .collect();
    assert_eq!(stored, good, "each once");
    assert_eq!(world.stored("rejected").len(), 20);
    let stats = sink.stats();
    assert_eq!(stats.records_rejected, 20);
    // 200 batches, and about 2·log₂(10) requests more for each of the guilty.
    assert!(
        stats.requests_sent <= 200 + 20 * 8,
        "{}",
        stats.requests_sent
    );
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_requests_fail_every_other_time_keeps_its_order() {
    let world = World::new(&["events"]);
    let seen = Arc::new(AtomicU64::new(0));
    let fails = move |call: &Call| {
        published(call).messages[0].ordering_key == "k"
            && seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
    };
    let lost = Fault::answer(Code::Unavailable, "down");
    world.fault(Rule::on(Method::Publish).when(fails).then(lost));
    let mut sink = world
        .builder()
        .message_ordering(true)
        .batch_messages(7)
        .build()
        .unwrap();
    feed(
        &mut sink,
        numbers(0..300).into_iter().map(|n| keyed("events", "k", n)),
    )
    .await;
    sink.snapshot(Epoch::new(1)).await.unwrap();
    assert_eq!(world.stored("events"), numbers(0..300));
}
