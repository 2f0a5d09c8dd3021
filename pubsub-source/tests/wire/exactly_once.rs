//! Subscriptions with exactly-once delivery.

use std::{collections::BTreeSet, time::Duration};

use connector_core::{Checkpoint, Epoch};
use gcp_emulator::{Answer, Body, Code, Fault, Method, Rule, pubsub::state::LateAcks};
use gcp_wire::proto;
use pubsub_source::SourceError;

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

fn exactly_once() -> World {
    World::with(
        |server| server,
        |settings| settings.enable_exactly_once_delivery = true,
    )
}

/// Switches exactly-once delivery on or off, as an operator does while the source reads.
async fn switch(world: &World, on: bool) {
    use gcp_wire::{Connection, ConnectionOptions, Credentials, method::UPDATE_SUBSCRIPTION};
    let connection = Connection::unary(
        pubsub_source::Endpoint::in_memory(world.emulator.dialer()),
        Credentials::anonymous(),
        ConnectionOptions::default(),
    );
    let request = proto::pubsub::UpdateSubscriptionRequest {
        subscription: Some(proto::pubsub::Subscription {
            name: SUBSCRIPTION.to_owned(),
            enable_exactly_once_delivery: on,
            ..Default::default()
        }),
        update_mask: Some(proto::FieldMask {
            paths: vec!["enable_exactly_once_delivery".to_owned()],
        }),
    };
    let connection = connection.unwrap();
    let updated = connection.call(&UPDATE_SUBSCRIPTION, SUBSCRIPTION, request, SECOND * 10);
    updated.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_comes_out_only_after_its_lease_was_confirmed() {
    let world = exactly_once();
    world.emulator.faults().add(
        Rule::on(Method::ModifyAckDeadline)
            .once()
            .then(Fault::Delay(SECOND * 5)),
    );
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND * 4).await;
    assert_eq!(source.stats().buffered, 1);
    assert_eq!(read(&mut source, 1).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn of_an_extension_that_failed_for_some_only_those_are_sent_again_or_dropped() {
    let world = exactly_once();
    world.publish([1, 2, 3]);
    let mut source = world.source().build().unwrap();
    world
        .emulator
        .faults()
        .add(
            Rule::on(Method::ModifyAckDeadline)
                .once()
                .then(Fault::answer_with(|call| {
                    let Body::ModifyAckDeadline(request) = &call.body else {
                        panic!("it is one")
                    };
                    Answer::ack_ids([
                        (
                            request.ack_ids[1].as_str(),
                            "PERMANENT_FAILURE_INVALID_ACK_ID",
                        ),
                        (request.ack_ids[2].as_str(), "TRANSIENT_FAILURE_OTHER"),
                    ])
                })),
        );
    // The second is somebody else's, as far as the service says; it comes again in its time.
    assert_eq!(read(&mut source, 2).await, [1, 3]);
    assert_eq!(source.stats().lapsed_in_buffer, 1);
    let ids: Vec<String> = world
        .record()
        .deliveries
        .iter()
        .map(|delivery| delivery.ack_id.to_string())
        .collect();
    let seen = world.emulator.observe();
    let again = seen.requests_of(Method::ModifyAckDeadline).nth(1).unwrap();
    let Body::ModifyAckDeadline(request) = &again.body else {
        panic!("a ModifyAckDeadline has its body")
    };
    assert_eq!(request.ack_ids, [ids[2].clone()]);
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 2);
    assert_eq!(read(&mut source, 1).await, [2]);
    seal(&mut source, 2).await;
    assert_eq!(commit(&mut source, 2).await.settled, 1);
    nothing_for(&mut source, SECOND * 600).await;
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_of_what_waits_has_its_own_lease_confirmed_first() {
    let world = exactly_once();
    world.publish([1]);
    // The first confirmation takes 5 s, that of the redelivery 20 s.
    for seconds in [5, 20] {
        let rule = Rule::on(Method::ModifyAckDeadline).once();
        world
            .emulator
            .faults()
            .add(rule.then(Fault::Delay(SECOND * seconds)));
    }
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND).await;
    let id = world.record().deliveries[0].message_id.to_string();
    assert!(world.emulator.redeliver_early(SUBSCRIPTION, &id));
    nothing_for(&mut source, SECOND * 12).await;
    assert_eq!(source.stats().redelivered, 1);
    assert_eq!(read(&mut source, 1).await, [1]);
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 1);
}

#[tokio::test(start_paused = true)]
async fn an_ack_id_that_is_lost_is_told_and_not_tried_for_ever() {
    let world = exactly_once();
    world.publish([1, 2]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 2).await;
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge).then(Fault::answer_with(|call| {
            let Body::Acknowledge(request) = &call.body else {
                panic!("it is one")
            };
            let failed = request.ack_ids.iter();
            Answer::ack_ids(failed.map(|id| (id.as_str(), "PERMANENT_FAILURE_INVALID_ACK_ID")))
        })),
    );
    seal(&mut source, 1).await;
    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (0, 2));
    let calls = world.emulator.observe().count(Method::Acknowledge);
    assert_eq!(calls, 1);
    nothing_for(&mut source, SECOND * 30).await;
    assert_eq!(world.emulator.observe().count(Method::Acknowledge), calls);
}

#[tokio::test(start_paused = true)]
async fn switched_on_while_running_its_rules_hold_from_the_next_response_on() {
    let world = World::with(|server| server.late_acks(LateAcks::Always), |_| {});
    world.publish(0..5);
    let mut source = world.source().build().unwrap();
    let mut epoch = 0;
    for _ in 0..4 {
        epoch += 1;
        seal(&mut source, epoch).await;
        nothing_but(&mut source, 1).await;
    }
    assert_eq!(source.stats().lease_seconds, 20);
    let extended = source.stats().extended;
    assert_eq!(extended, 0, "an ordinary lease needs no confirmation");

    // One is buffered still when the next response says that the rules have changed.
    switch(&world, true).await;
    world.emulator.faults().add(
        Rule::on(Method::ModifyAckDeadline)
            .once()
            .then(Fault::Delay(SECOND * 3)),
    );
    world.publish([5]);
    world
        .emulator
        .wait_until(
            |seen| seen.subscription(SUBSCRIPTION).deliveries.len() == 6,
            LONG,
        )
        .await;
    assert_eq!(sorted(read(&mut source, 2).await), [4, 5]);
    assert_eq!(source.stats().lease_seconds, 60);
    assert!(source.stats().extended >= 1);

    // What was handed out before is answered for one by one as well.
    let first = world.record().deliveries[0].ack_id.to_string();
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .once()
            .then(Fault::answer_with(move |_| {
                Answer::ack_ids([(first.as_str(), "PERMANENT_FAILURE_INVALID_ACK_ID")])
            })),
    );
    seal(&mut source, 10).await;
    let committed = commit(&mut source, 10).await;
    assert_eq!((committed.settled, committed.lapsed), (5, 1));
}

/// Reads so many messages.
async fn nothing_but(source: &mut pubsub_source::PubsubSource, count: usize) {
    let numbers: BTreeSet<u64> = read(source, count).await.into_iter().collect();
    assert_eq!(numbers.len(), count);
    tokio::time::sleep(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn switched_off_while_running_what_waits_for_a_confirmation_comes_out() {
    let world = exactly_once();
    world
        .emulator
        .faults()
        .add(Rule::on(Method::ModifyAckDeadline).then(Fault::answer(Code::Unavailable, "down")));
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND * 5).await;
    assert_eq!(source.stats().lease_seconds, 60);
    switch(&world, false).await;
    world.publish([2]);
    assert_eq!(sorted(read(&mut source, 2).await), [1, 2]);
    seal(&mut source, 1).await;
    tokio::time::sleep(SECOND).await;
    seal(&mut source, 2).await;
    tokio::time::sleep(SECOND).await;
    seal(&mut source, 3).await;
    assert_eq!(source.stats().lease_seconds, 20);
    assert_eq!(commit(&mut source, 3).await.settled, 2);
}

/// What ends the source is no answer for single ids, whatever its details say of some of them.
#[tokio::test(start_paused = true)]
async fn a_refusal_for_good_confirms_no_acknowledgement_though_it_names_others() {
    let world = exactly_once();
    world.publish([1, 2]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 2).await;
    let first = world.record().deliveries[0].ack_id.to_string();
    world
        .emulator
        .faults()
        .add(
            Rule::on(Method::Acknowledge).then(Fault::answer_with(move |_| {
                let mut answer =
                    Answer::ack_ids([(first.as_str(), "PERMANENT_FAILURE_INVALID_ACK_ID")]);
                answer.code = Code::PermissionDenied;
                answer
            })),
        );
    seal(&mut source, 1).await;
    let receipt = source.commit(Epoch::new(1));
    let error = last_word(&mut source).await;
    assert!(matches!(error, SourceError::Denied { .. }), "{error:?}");
    let told = receipt.await;
    assert!(told.is_err(), "{told:?}");
    assert_eq!(world.acked(), 0);
}
