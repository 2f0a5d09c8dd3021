//! Subscriptions that keep the order of keys.

use std::{collections::BTreeMap, time::Duration};

use connector_core::{Checkpoint, Epoch};
use gcp_emulator::{
    Code, Fault, Method, Rule,
    pubsub::{proto::PubsubMessage, state::OnStreamClose},
};
use pubsub_source::{Disposition, Message, PubsubSource, SourceError};

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

fn ordered() -> World {
    World::with(
        |server| server,
        |subscription| subscription.enable_message_ordering = true,
    )
}

fn source(world: &World) -> pubsub_source::SourceBuilder {
    world.source().message_ordering(true)
}

/// Publishes numbers with a key.
fn publish(world: &World, key: &str, numbers: impl IntoIterator<Item = u64>) {
    let messages: Vec<PubsubMessage> = numbers
        .into_iter()
        .map(|number| PubsubMessage {
            data: number.to_string().into(),
            ordering_key: key.to_owned(),
            ..PubsubMessage::default()
        })
        .collect();
    for request in messages.chunks(1000) {
        world.emulator.publish(TOPIC, request.to_vec()).unwrap();
    }
}

/// Each key goes on where it was, or back to an earlier point.
#[derive(Default)]
struct Watch {
    ends: BTreeMap<String, u64>,
    handed_out: BTreeMap<(String, u64), u32>,
}

impl Watch {
    fn see(&mut self, message: &Message) {
        let key = message.ordering_key().unwrap().to_owned();
        let number = number(message);
        let end = self.ends.insert(key.clone(), number);
        let goes_on = end.map_or(number == 0, |end| number <= end + 1);
        assert!(goes_on, "key {key}: {number} after {end:?}");
        *self.handed_out.entry((key, number)).or_default() += 1;
    }
}

async fn read_on(source: &mut PubsubSource, watch: &mut Watch, count: usize) {
    for _ in 0..count {
        watch.see(&next(source).await);
    }
}

/// One key with many messages, many with few, a slow host and a stream that breaks in the middle.
#[tokio::test(start_paused = true)]
async fn each_key_comes_in_order_also_over_a_reconnect() {
    let world = World::with(
        |server| server.on_stream_close(OnStreamClose::RedeliverAtOnce),
        |subscription| subscription.enable_message_ordering = true,
    );
    world.emulator.faults().add(
        Rule::on(Method::StreamingPull)
            .once()
            .then(Fault::answer(Code::Unavailable, "closing").after_responses(6)),
    );
    publish(&world, "k", 0..1000);
    for key in 0..50 {
        publish(&world, &format!("k{key}"), 0..20);
    }
    let mut source = source(&world).build().unwrap();
    let mut watch = Watch::default();
    let mut epoch = 0;
    // An acknowledgement that crosses the reconnect does nothing: its message comes again then, and
    // with it all of its key.
    while watch.handed_out.len() < 2000 {
        watch.see(&next(&mut source).await);
        tokio::time::sleep(Duration::from_millis(3)).await;
        if watch.handed_out.len() % 100 == 0 {
            epoch += 1;
            seal(&mut source, epoch).await;
            drop(source.commit(Epoch::new(epoch)));
        }
    }
    seal(&mut source, epoch + 1).await;
    commit(&mut source, epoch + 1).await;
    world.until_acked(2000).await;
    nothing_for(&mut source, SECOND * 120).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_message_that_is_given_back_comes_after_it() {
    let world = ordered();
    publish(&world, "k", 0..10);
    publish(&world, "j", 0..3);
    let mut source = source(&world).build().unwrap();
    let mut watch = Watch::default();
    let mut second = None;
    for _ in 0..4 {
        let message = next(&mut source).await;
        watch.see(&message);
        if number(&message) == 1 {
            second = Some(message.delivery());
        }
    }
    let nack = source.settle(second.unwrap(), Disposition::Nack).unwrap();
    // Of k 0 is not given back; 1, 2 and 3 come again with all that follows.
    read_on(&mut source, &mut watch, 12).await;
    assert_eq!(nack.await.unwrap().settled, 1);
    let times = |key: &str, number| watch.handed_out[&(key.to_owned(), number)];
    assert_eq!(times("k", 0), 1);
    assert_eq!((times("k", 1), times("k", 3), times("k", 4)), (2, 2, 1));
    assert_eq!((0..3).map(|n| times("j", n)).sum::<u32>(), 3);
    assert_eq!(source.stats().dropped_behind, 6, "4 to 9 had been fetched");
    seal(&mut source, 1).await;
    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (13, 2));
    assert_eq!(world.acked(), 13);
    nothing_for(&mut source, SECOND * 120).await;
}

/// An acknowledgement that is answered OK and has no effect: the service sends the message again and
/// everything behind it.
#[tokio::test(start_paused = true)]
async fn once_a_forgotten_message_comes_again_what_is_held_behind_it_does_too() {
    let world = ordered();
    publish(&world, "k", 0..4);
    let mut source = source(&world).build().unwrap();
    let mut watch = Watch::default();
    read_on(&mut source, &mut watch, 2).await;
    seal(&mut source, 1).await;
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .once()
            .then(Fault::OkWithoutEffect),
    );
    assert_eq!(commit(&mut source, 1).await.settled, 2);
    read_on(&mut source, &mut watch, 2).await;
    let second = seal(&mut source, 2).await;
    // Without 2 and 3 the host would go 0, 1, 2, 3, 0, 1, 4.
    read_on(&mut source, &mut watch, 4).await;
    assert!(watch.handed_out.values().all(|times| *times == 2));
    assert_eq!(source.stats().repeated, 2);
    // Both epochs name what was handed out in both.
    let third = seal(&mut source, 3).await;
    assert_eq!((second.named(), third.named()), (2, 6));
    assert_eq!(commit(&mut source, 2).await.lapsed, 2);
    assert_eq!(commit(&mut source, 3).await.settled, 4);
    assert_eq!(world.acked(), 4);
    nothing_for(&mut source, SECOND * 600).await;
}

#[tokio::test(start_paused = true)]
async fn the_acknowledgements_of_a_key_leave_in_order_one_request_at_a_time() {
    let world = ordered();
    publish(&world, "k", 0..3500);
    let mut source = source(&world).first_outstanding(5000).build().unwrap();
    let mut watch = Watch::default();
    let mut ids = Vec::new();
    for _ in 0..3500 {
        let message = next(&mut source).await;
        watch.see(&message);
        ids.push(message.id().to_owned());
    }
    seal(&mut source, 1).await;
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .skip(1)
            .once()
            .then(Fault::answer(Code::Unavailable, "try again")),
    );
    assert_eq!(commit(&mut source, 1).await.settled, 3500);
    let record = world.record();
    let acked: Vec<&str> = record.acked.iter().map(|one| &*one.message_id).collect();
    assert_eq!(acked, ids);
}

#[tokio::test(start_paused = true)]
async fn a_larger_limit_is_told_by_a_stream_that_opens_after_the_old_one_has_ended() {
    let world = ordered();
    publish(&world, "k", 0..100);
    let mut source = source(&world).first_outstanding(10).build().unwrap();
    let mut watch = Watch::default();
    for epoch in 1..=10 {
        read_on(&mut source, &mut watch, 10).await;
        seal(&mut source, epoch).await;
        commit(&mut source, epoch).await;
    }
    assert!(source.stats().told_limit > 10);
    assert!(source.stats().streams_opened > 1);
    assert_eq!(watch.handed_out.len(), 100);
    assert_eq!(
        (source.stats().redelivered, source.stats().repeated),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_does_not_keep_the_order_ends_the_source_and_says_what_to_do() {
    let world = World::new();
    world.publish([1]);
    let mut source = source(&world).build().unwrap();
    let error = last_word(&mut source).await;
    assert!(matches!(error, SourceError::Unordered { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains(SUBSCRIPTION) && text.contains("message_ordering"),
        "{text}"
    );
    assert_eq!(world.acked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_was_created_anew_without_order_ends_the_source() {
    let world = ordered();
    publish(&world, "k", [0]);
    let mut source = source(&world).build().unwrap();
    assert_eq!(number(&next(&mut source).await), 0);
    world.emulator.delete_subscription(SUBSCRIPTION).unwrap();
    world
        .emulator
        .create_subscription(SUBSCRIPTION, TOPIC, |_| {})
        .unwrap();
    publish(&world, "k", [1]);
    let error = last_word(&mut source).await;
    assert!(
        matches!(
            error,
            SourceError::Unordered { .. } | SourceError::Missing { .. }
        ),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn several_streams_are_refused_with_both_values() {
    let world = ordered();
    let error = source(&world).streams(3).build().unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("message_ordering is true") && text.contains("streams is 3"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_a_key_goes_on_behind_what_the_checkpoint_covers() {
    let world = ordered();
    publish(&world, "k", 0..10);
    let mut first = source(&world).build().unwrap();
    let mut watch = Watch::default();
    read_on(&mut first, &mut watch, 4).await;
    let state = seal(&mut first, 1).await;
    assert_eq!(state.named(), 4);
    let mut lost = Watch {
        ends: watch.ends.clone(),
        ..Watch::default()
    };
    read_on(&mut first, &mut lost, 3).await;
    drop(first);
    let mut second = source(&world)
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    read_on(&mut second, &mut watch, 6).await;
    assert_eq!(watch.handed_out.len(), 10, "{:?}", watch.handed_out);
    seal(&mut second, 2).await;
    commit(&mut second, 2).await;
    world.until_acked(10).await;
}
