//! Exactly-once subscriptions.

use std::collections::BTreeMap;

use gcp_emulator::Code;
use gcp_emulator::pubsub::proto::StreamingPullRequest;
use gcp_emulator::pubsub::state::{AckFailure, Refusal};

use crate::world::{World, texts};

fn exactly_once() -> World {
    World::new(|sub| sub.enable_exactly_once_delivery = true)
}

fn failures(refusal: Refusal) -> BTreeMap<String, AckFailure> {
    assert_eq!(refusal.code(), Code::InvalidArgument);
    let Refusal::AckIds { failures } = refusal else {
        panic!("{refusal:?} names no ids")
    };
    failures
}

#[test]
fn failed_ids_are_named_and_the_others_take_effect() {
    let mut world = exactly_once();
    world.publish(&["a", "b", "c"]);
    let got = world.pull(3);
    world.modify(&[&got[1]], 30).unwrap();
    world.pass_secs(10);
    let failed = failures(world.ack(&[&got[0], &got[1], &got[2]]).unwrap_err());
    let gone: Vec<&String> = failed.keys().collect();
    assert_eq!(failed.len(), 2);
    assert!(gone.contains(&&got[0].ack_id) && gone.contains(&&got[2].ack_id));
    assert!(
        failed
            .values()
            .all(|why| why.reason() == "PERMANENT_FAILURE_INVALID_ACK_ID")
    );
    assert_eq!((world.record().acks, world.record().refused), (1, 2));
    assert_eq!(world.record().backlog, 2);
}

#[test]
fn after_the_lease_nothing_counts_not_even_before_the_redelivery() {
    let mut world = exactly_once();
    world.publish(&["a"]);
    let got = world.pull(1);
    world.pass_secs(10);
    assert_eq!(failures(world.ack(&[&got[0]]).unwrap_err()).len(), 1);
    assert_eq!(failures(world.modify(&[&got[0]], 10).unwrap_err()).len(), 1);
    assert_eq!(world.pull(1).len(), 1);
}

#[test]
fn acknowledging_twice_fails_the_second_time() {
    let mut world = exactly_once();
    world.publish(&["a"]);
    let got = world.pull(1);
    world.ack(&[&got[0]]).unwrap();
    assert_eq!(failures(world.ack(&[&got[0]]).unwrap_err()).len(), 1);
}

#[test]
fn a_malformed_id_is_a_failure_of_its_own() {
    let mut world = exactly_once();
    world.publish(&["a"]);
    let mut stranger = world.pull(1).remove(0);
    stranger.ack_id = "nonsense".to_owned();
    let failed = failures(world.ack(&[&stranger]).unwrap_err());
    assert_eq!(failed["nonsense"], AckFailure::InvalidAckId);
}

#[test]
fn on_a_stream_the_fates_are_confirmed() {
    let mut world = exactly_once();
    world.publish(&["a", "b", "c", "d"]);
    let stream = world.open();
    let got = world.drain(stream);
    world.ack(&[&got[1]]).unwrap();
    let request = StreamingPullRequest {
        ack_ids: vec![got[0].ack_id.clone(), got[1].ack_id.clone()],
        modify_deadline_ack_ids: vec![got[2].ack_id.clone(), got[1].ack_id.clone()],
        modify_deadline_seconds: vec![30, 30],
        ..StreamingPullRequest::default()
    };
    world
        .state
        .handle_stream_request(world.now, stream, &request)
        .unwrap();
    let response = world.response(stream);
    assert!(
        response
            .subscription_properties
            .unwrap()
            .exactly_once_delivery_enabled
    );
    let acks = response.acknowledge_confirmation.unwrap();
    assert_eq!(acks.ack_ids, [got[0].ack_id.clone()]);
    assert_eq!(acks.invalid_ack_ids, [got[1].ack_id.clone()]);
    let extensions = response.modify_ack_deadline_confirmation.unwrap();
    assert_eq!(extensions.ack_ids, [got[2].ack_id.clone()]);
    assert_eq!(extensions.invalid_ack_ids, [got[1].ack_id.clone()]);
}

#[test]
fn ordered_acknowledgements_out_of_order_fail_for_the_time_being() {
    let mut world = World::new(|sub| {
        sub.enable_exactly_once_delivery = true;
        sub.enable_message_ordering = true;
    });
    world.publish_keyed("k", &["0", "1"]);
    let got = world.pull(2);
    let failed = failures(world.ack(&[&got[1]]).unwrap_err());
    assert_eq!(
        failed[&got[1].ack_id].reason(),
        "TRANSIENT_FAILURE_UNORDERED_ACK_ID"
    );
    world.ack(&[&got[1], &got[0]]).unwrap();
    assert_eq!(
        world.record().backlog,
        0,
        "one request may name them in any order"
    );
}

#[test]
fn an_ordinary_subscription_takes_every_id_it_gave_out() {
    let mut world = World::new(|_| ());
    world.publish(&["a"]);
    let got = world.pull(1);
    world.ack(&[&got[0]]).unwrap();
    world.ack(&[&got[0]]).unwrap();
    world.modify(&[&got[0]], 10).unwrap();
    assert_eq!(world.record().ignored, 2);
    assert!(texts(&world.pull(1)).is_empty());
}
