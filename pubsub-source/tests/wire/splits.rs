//! Several splits behind one handle.

use std::time::Duration;

use connector_core::{Checkpoint, CheckpointError, Epoch};
use futures::StreamExt;
use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_source::{
    BuildError, Disposition, PubsubSource, SettleError, SourceError, SubscriptionName,
};

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

const BOTH: [&str; 2] = [SUBSCRIPTION, OTHER];

#[tokio::test(start_paused = true)]
async fn several_subscriptions_are_one_stream_with_one_checkpoint() {
    let world = World::new().with_other(|_| {});
    world.publish(0..10);
    world.publish_to(OTHER_TOPIC, 10..20);
    let mut source = world.source_of(&BOTH).build().unwrap();
    let mut first = read(&mut source, 20).await;
    assert_eq!(
        sorted(std::mem::take(&mut first)),
        (0..20).collect::<Vec<_>>()
    );
    let state = seal(&mut source, 1).await;
    assert_eq!(state.named(), 20);
    assert_eq!(commit(&mut source, 1).await.settled, 20);
    for subscription in BOTH {
        let record = world.emulator.observe().subscription(subscription);
        assert_eq!(record.acks, 10, "{subscription}");
    }
    let stats = source.stats();
    assert_eq!((stats.handed_out, stats.acknowledged), (20, 20));
    assert_eq!((stats.snapshots, stats.commits), (1, 1), "of the source");
    for (name, stats) in source.stats_by_split() {
        assert_eq!(stats.acknowledged, 10, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_covers_of_each_split_what_was_handed_out() {
    let world = World::with(|server| server.response_messages(4), |_| {}).with_other(|_| {});
    world.publish(0..8);
    world.publish_to(OTHER_TOPIC, 10..18);
    let mut source = world.source_of(&BOTH).build().unwrap();
    let before = read(&mut source, 6).await;
    let state = seal(&mut source, 1).await;
    read(&mut source, 10).await;
    drop(source);

    let mut source = world
        .source_of(&BOTH)
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let rest = read(&mut source, 10).await;
    nothing_for(&mut source, SECOND * 120).await;
    let all = sorted([before, rest].concat());
    assert_eq!(all, (0..8).chain(10..18).collect::<Vec<_>>());
    assert_eq!(source.stats().recognised, 6);
}

#[tokio::test(start_paused = true)]
async fn a_busy_subscription_does_not_starve_a_quiet_one() {
    let world = World::with(|server| server.response_messages(100), |_| {}).with_other(|_| {});
    world.publish(0..1000);
    world.publish_to(OTHER_TOPIC, 5000..5250);
    let mut source = world.source_of(&BOTH).build().unwrap();
    read(&mut source, 1).await;
    // Everything is fetched now.
    tokio::time::sleep(SECOND).await;
    let numbers = read(&mut source, 599).await;
    let quiet = numbers.iter().filter(|number| **number >= 5000).count();
    assert_eq!(quiet, 250, "one response of each in turn");
    let longest = numbers.chunk_by(|a, b| (*a >= 5000) == (*b >= 5000));
    let longest = longest.take(4).map(<[u64]>::len).max();
    assert!(longest <= Some(100), "{longest:?} in a row");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_one_split_ends_the_source_and_the_others_give_back() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 600,
    )
    .with_other(|_| {});
    world.publish(0..10);
    let mut source = world
        .source_of(&BOTH)
        .max_extension(SECOND * 600)
        .build()
        .unwrap();
    let message = next(&mut source).await;
    seal(&mut source, 1).await;
    world.emulator.delete_subscription(OTHER).unwrap();
    world.emulator.drop_connections();

    // The host does nothing at all meanwhile.
    let mut other = world.source().build().unwrap();
    let all = tokio::time::timeout(SECOND * 20, read(&mut other, 10)).await;
    assert_eq!(sorted(all.unwrap()), (0..10).collect::<Vec<_>>());

    let error = last_word(&mut source).await;
    let SourceError::Missing { subscription, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(subscription.as_str(), OTHER);
    assert!(source.next().await.is_none());
    let receipt = source.commit(Epoch::new(1)).await;
    assert!(matches!(receipt, Err(CheckpointError::Closed { .. })));
    let receipt = source.snapshot(Epoch::new(2)).await;
    assert!(matches!(receipt, Err(CheckpointError::Closed { .. })));
    let settled = source.settle(message.delivery(), Disposition::Ack);
    assert!(matches!(settled, Err(SettleError::Closed { .. })));
}

/// The one that died may have a hard time giving back what it held.
#[tokio::test(start_paused = true)]
async fn the_others_give_back_at_once_however_long_the_one_that_died_takes() {
    let world = World::new().with_other(|_| {});
    world.publish(0..10);
    world.publish_to(OTHER_TOPIC, 20..30);
    let mut source = world.source_of(&BOTH).build().unwrap();
    read(&mut source, 20).await;
    let of_other = |call: &gcp_emulator::Call| call.resource() == Some(OTHER);
    let faults = world.emulator.faults();
    faults.add(
        Rule::on(Method::ModifyAckDeadline)
            .when(of_other)
            .then(Fault::Never),
    );
    let denied = Fault::answer(Code::PermissionDenied, "not any more");
    faults.add(Rule::on(Method::StreamingPull).when(of_other).then(denied));
    world.emulator.drop_connections();
    let given_back = world
        .emulator
        .wait_until(
            |seen| seen.subscription(SUBSCRIPTION).nacks >= 10,
            SECOND * 2,
        )
        .await;
    assert!(given_back, "{} of 10", world.record().nacks);
    let error = last_word(&mut source).await;
    assert!(matches!(error, SourceError::Denied { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn splits_of_one_subscription_are_read_as_one_and_hand_nothing_out_twice() {
    let world = World::new();
    world.publish(0..10);
    let mut source = world
        .source_of(&[SUBSCRIPTION, SUBSCRIPTION, SUBSCRIPTION])
        .build()
        .unwrap();
    assert_eq!(source.subscriptions().count(), 1);
    read(&mut source, 10).await;
    assert_eq!(world.record().streams.len(), 3, "one for each split");
    let seen = world.emulator.observe();
    for message in &seen.topic(TOPIC).messages {
        let id = &message.message_id;
        assert!(world.emulator.redeliver_early(SUBSCRIPTION, id));
    }
    nothing_for(&mut source, SECOND * 30).await;
    assert_eq!(
        source.stats().redelivered,
        10,
        "whichever stream they come on"
    );
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 10);
    world.until_acked(10).await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_names_its_split() {
    let world = World::new().with_other(|_| {});
    world.publish([1]);
    world.publish_to(OTHER_TOPIC, [2]);
    let mut source = world.source_of(&BOTH).build().unwrap();
    let messages = [next(&mut source).await, next(&mut source).await];
    let [first, second] = &messages;
    assert_ne!(first.delivery(), second.delivery());
    let of_other = messages.iter().find(|message| number(message) == 2);
    let of_other = of_other.unwrap().delivery();
    let receipt = source.settle(of_other, Disposition::Ack).unwrap();
    assert_eq!(receipt.await.unwrap().settled, 1);
    let seen = world.emulator.observe();
    assert_eq!(seen.subscription(OTHER).acks, 1);
    assert_eq!(seen.subscription(SUBSCRIPTION).acks, 0);
    let again = source.settle(of_other, Disposition::Ack).unwrap_err();
    assert!(
        matches!(again, SettleError::Unknown { delivery } if delivery == of_other),
        "{again:?}"
    );
    // A source that reads less than the one the delivery is of.
    let mut alone = world.source().build().unwrap();
    let foreign = alone.settle(of_other, Disposition::Ack).unwrap_err();
    assert!(
        matches!(foreign, SettleError::Unknown { .. }),
        "{foreign:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn closing_takes_one_budget_for_all_splits_together() {
    let world = World::new().with_other(|_| {});
    world.publish(0..5);
    world.publish_to(OTHER_TOPIC, 10..17);
    let mut source = world
        .source_of(&BOTH)
        .close_budget(SECOND * 3)
        .build()
        .unwrap();
    let mut numbers = read(&mut source, 12).await;
    numbers.clear();
    world
        .emulator
        .faults()
        .add(Rule::on(Method::ModifyAckDeadline).then(Fault::Never));
    let started = tokio::time::Instant::now();
    let error = source.close().await.unwrap_err();
    assert!(started.elapsed() <= SECOND * 4, "{:?}", started.elapsed());
    let SourceError::CloseTimedOut { releases, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(releases, 12, "of both");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_one_driver_ends_all_splits() {
    let world = World::new().with_other(|_| {});
    world.publish([1]);
    let (mut source, driver) = world.source_of(&BOTH).build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    let receipt = source.commit(Epoch::new(1));
    driver.abort();
    drop(driver.await);
    let resolved = receipt.await;
    assert!(matches!(resolved, Err(CheckpointError::Closed { .. })));
    let error = last_word(&mut source).await;
    assert!(matches!(error, SourceError::DriverGone { .. }), "{error:?}");
}

/// Readers that come and go take all states of all readers, each its own part of them.
#[tokio::test(start_paused = true)]
async fn states_of_two_readers_are_recognised_by_one_reader_of_both() {
    let world = World::new().with_other(|_| {});
    world.publish(0..3);
    world.publish_to(OTHER_TOPIC, 10..13);
    let mut states = Vec::new();
    for subscription in BOTH {
        let mut source = world.source_of(&[subscription]).build().unwrap();
        read(&mut source, 3).await;
        states.push(restored(7, &seal(&mut source, 7).await));
    }
    let mut source = world.source_of(&BOTH).restore(states).build().unwrap();
    let receipt = source.restored();
    nothing_for(&mut source, SECOND * 10).await;
    assert_eq!(receipt.await.unwrap().lapsed, 6);
    assert_eq!(source.stats().recognised, 6);
    let early = source.snapshot(Epoch::new(7)).await;
    assert!(
        matches!(early, Err(CheckpointError::OutOfOrder { .. })),
        "{early:?}"
    );
}

/// Ids are unique per topic, and two subscriptions of one topic deliver the same ones.
#[tokio::test(start_paused = true)]
async fn what_two_subscriptions_of_one_topic_deliver_has_a_fate_of_its_own_in_each() {
    let world = World::new();
    let create = |name| world.emulator.create_subscription(name, TOPIC, |_| {});
    create(OTHER).unwrap();
    world.publish(0..5);
    let mut source = world.source_of(&BOTH).build().unwrap();
    let twice = sorted([0, 1, 2, 3, 4].repeat(2));
    let mut messages = Vec::new();
    for _ in 0..10 {
        messages.push(next(&mut source).await);
    }
    assert_eq!(sorted(messages.iter().map(number).collect()), twice);
    let of_other = |message: &&pubsub_source::Message| message.subscription().as_str() == OTHER;
    let given_back = messages.iter().find(of_other).unwrap();
    let settled = source.settle(given_back.delivery(), Disposition::Nack);
    settled.unwrap().await.unwrap();
    let again = next(&mut source).await;
    assert_eq!(again.id(), given_back.id());
    assert_eq!(again.subscription(), given_back.subscription());

    let state = seal(&mut source, 1).await;
    assert_eq!(state.named(), 10);
    drop(source);
    // What the state names of one of them is recognised there, and only there.
    let mut alone = world
        .source_of(&[OTHER])
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    nothing_for(&mut alone, SECOND * 120).await;
    assert_eq!(alone.stats().recognised, 5);
    let acked = |name| world.emulator.observe().subscription(name).acks;
    assert_eq!((acked(SUBSCRIPTION), acked(OTHER)), (0, 5));
}

/// As many connections as there may be are shared by more subscriptions.
#[tokio::test(start_paused = true)]
async fn as_many_subscriptions_as_a_source_may_have_are_read_by_one() {
    let world = World::new();
    let names: Vec<String> = (0..4096)
        .map(|number| format!("projects/demo-project/subscriptions/many-{number}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    drop(world.source_of(&names).build_with_driver().unwrap());
    let one_more = [&names[..], &[SUBSCRIPTION]].concat();
    let error = world.source_of(&one_more).build_with_driver().unwrap_err();
    assert!(error.to_string().contains("is 4097"), "{error}");
}

#[test]
fn splits_of_one_subscription_keep_no_order_and_are_refused_with_it() {
    let name: SubscriptionName = SUBSCRIPTION.parse().unwrap();
    let source = PubsubSource::builder_of([name.clone(), name]).message_ordering(true);
    let text = source.build_with_driver().unwrap_err().to_string();
    assert!(
        text.contains("message_ordering is true") && text.contains("subscription is 2"),
        "{text}"
    );
}

#[test]
fn several_subscriptions_need_a_name_that_stays_when_one_is_added() {
    let names = BOTH.map(|name| name.parse::<SubscriptionName>().unwrap());
    let unnamed = PubsubSource::builder_of(names);
    let error = unnamed.build_with_driver().unwrap_err();
    assert!(
        matches!(
            &error,
            BuildError::Contradiction {
                first: "instance",
                ..
            }
        ),
        "{error}"
    );
    let none = PubsubSource::builder_of(Vec::<SubscriptionName>::new());
    let error = none.build_with_driver().unwrap_err();
    assert!(error.to_string().contains("is 0, allowed is 1"), "{error}");
}
