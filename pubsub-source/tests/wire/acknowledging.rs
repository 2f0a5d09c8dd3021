//! What is acknowledged, when, and how often it is tried.

use std::time::Duration;

use connector_core::{Checkpoint, Epoch};
use gcp_emulator::{Answer, Body, Code, Fault, Method, Rule};
use prost::Message as _;
use pubsub_source::SourceError;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_checkpoint_never_covers_what_was_fetched_and_not_handed_out() {
    let world = World::new();
    world.publish([1, 2, 3]);
    let (mut source, driver) = world.source().build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    assert_eq!(read(&mut source, 1).await, [1]);
    assert_eq!(source.stats().buffered + 1, 3, "the others are fetched");
    let state = seal(&mut source, 1).await;
    assert_eq!(state.named(), 1);
    assert_eq!(commit(&mut source, 1).await.settled, 1);
    // A crash: nothing is given back.
    driver.abort();
    drop(driver.await);
    drop(source);

    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    assert_eq!(sorted(read(&mut source, 2).await), [2, 3]);
    nothing_for(&mut source, Duration::from_secs(120)).await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_acknowledges_everything_up_to_it_and_nothing_beyond() {
    let world = World::new();
    world.publish(1..=3);
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    read(&mut source, 1).await;
    seal(&mut source, 2).await;
    read(&mut source, 1).await;
    seal(&mut source, 3).await;
    assert_eq!(commit(&mut source, 2).await.settled, 2);
    assert_eq!(
        commit(&mut source, 1).await.total(),
        0,
        "a late notification changes nothing"
    );
    assert_eq!(world.acked(), 2);
    source.abort(Epoch::new(3));
    seal(&mut source, 4).await;
    assert_eq!(
        commit(&mut source, 4).await.settled,
        1,
        "an aborted epoch is part of the next"
    );
    assert_eq!(world.acked(), 3);
}

/// Acknowledge and ModifyAckDeadline are limited to 524,288 bytes, and ids become longer.
#[tokio::test(start_paused = true)]
async fn requests_are_cut_by_encoded_bytes_and_only_the_failed_one_is_sent_again() {
    let long_name = format!("projects/demo-project/subscriptions/{}", "s".repeat(219));
    let world = World::with(|server| server.ack_id_length(500), |_| {});
    world
        .emulator
        .create_subscription(&long_name, TOPIC, |_| {})
        .unwrap();
    world.publish(0..20_000);
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .skip(1)
            .once()
            .then(Fault::answer(Code::Unavailable, "try again")),
    );
    let endpoint = pubsub_source::Endpoint::in_memory(world.emulator.dialer());
    let mut source = pubsub_source::PubsubSource::builder(long_name.parse().unwrap())
        .endpoint(endpoint)
        .first_outstanding(100_000)
        .build()
        .unwrap();
    read(&mut source, 20_000).await;
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 20_000);

    let seen = world.emulator.observe();
    assert_eq!(seen.subscription(&long_name).acked_ids().len(), 20_000);
    let mut sent = 0;
    for call in seen.requests_of(Method::Acknowledge) {
        let Body::Acknowledge(request) = &call.body else {
            panic!("an Acknowledge has its body")
        };
        assert!(request.ack_ids.len() <= 1000);
        assert!(
            request.encoded_len() <= 512_000,
            "{} bytes",
            request.encoded_len()
        );
        sent += request.ack_ids.len();
    }
    // One request of a full one's ids went twice, and nothing else did.
    assert!(sent > 20_900 && sent <= 21_000, "{sent} ids were sent");
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_that_fails_is_kept_and_sent_again_without_a_redelivery() {
    let world = World::new();
    world.publish(0..10);
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .once()
            .then(Fault::DropConnection),
    );
    let mut source = world.source().build().unwrap();
    read(&mut source, 10).await;
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 10);
    assert_eq!(world.acked(), 10);
    assert_eq!(world.record().delivered, 10);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_whose_answer_is_lost_is_sent_again() {
    for fault in [
        Fault::Never.after_effect(),
        Fault::answer(Code::Unavailable, "").after_effect(),
        Fault::ResetStream(2).after_effect(),
    ] {
        let world = World::new();
        world.publish(0..10);
        world
            .emulator
            .faults()
            .add(Rule::on(Method::Acknowledge).once().then(fault));
        let mut source = world.source().build().unwrap();
        read(&mut source, 10).await;
        seal(&mut source, 1).await;
        assert_eq!(commit(&mut source, 1).await.total(), 10);
        assert_eq!(world.acked(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_as_a_whole_does_not_take_its_neighbours_along() {
    let world = World::new();
    world.publish(0..8);
    let mut source = world.source().build().unwrap();
    read(&mut source, 8).await;
    let poison = world.record().deliveries[3].ack_id.to_string();
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .when(move |call| match &call.body {
                Body::Acknowledge(request) => request.ack_ids.contains(&poison),
                _ => false,
            })
            .then(Fault::answer(Code::InvalidArgument, "bad id")),
    );
    seal(&mut source, 1).await;
    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (7, 1));
    assert_eq!(world.acked(), 7);
}

#[tokio::test(start_paused = true)]
async fn acknowledgements_that_are_not_allowed_end_the_source() {
    let world = World::new();
    world.publish([1]);
    world
        .emulator
        .faults()
        .add(Rule::on(Method::Acknowledge).then(Fault::answer(Code::PermissionDenied, "no")));
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    let receipt = source.commit(Epoch::new(1));
    let error = last_word(&mut source).await;
    assert!(matches!(error, SourceError::Denied { .. }), "{error:?}");
    assert!(receipt.await.is_err(), "the receipt resolves all the same");
}

/// With exactly-once delivery the service answers for each id.
#[tokio::test(start_paused = true)]
async fn on_an_exactly_once_subscription_each_id_has_its_own_verdict() {
    let world = World::with(
        |server| server,
        |settings| settings.enable_exactly_once_delivery = true,
    );
    world.publish([1, 2, 3]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 3).await;
    assert!(
        source.stats().extended >= 3,
        "handed out only after the lease was confirmed"
    );
    let ids: Vec<String> = world
        .record()
        .deliveries
        .iter()
        .map(|delivery| delivery.ack_id.to_string())
        .collect();
    let (second, third) = (ids[1].clone(), ids[2].clone());
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .once()
            .then(Fault::answer_with(move |_| {
                Answer::ack_ids([
                    (second.as_str(), "PERMANENT_FAILURE_INVALID_ACK_ID"),
                    (third.as_str(), "TRANSIENT_FAILURE_OTHER"),
                ])
            })),
    );
    seal(&mut source, 1).await;
    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (2, 1));
    let seen = world.emulator.observe();
    let second_try = seen.requests_of(Method::Acknowledge).nth(1).unwrap();
    let Body::Acknowledge(request) = &second_try.body else {
        panic!("an Acknowledge has its body")
    };
    assert_eq!(
        request.ack_ids,
        [ids[2].clone()],
        "the third alone is sent again"
    );
    assert_eq!(source.stats().lease_seconds, 60);
}
