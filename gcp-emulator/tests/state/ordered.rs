//! Ordering keys.

use gcp_emulator::pubsub::proto::RetryPolicy;

use crate::world::{World, text, texts};

fn ordered() -> World {
    World::new(|sub| sub.enable_message_ordering = true)
}

#[test]
fn the_whole_run_of_a_key_is_delivered_without_waiting_for_acknowledgements() {
    let mut world = ordered();
    world.publish_keyed("k", &["0", "1", "2"]);
    let stream = world.open();
    assert_eq!(texts(&world.drain(stream)), ["0", "1", "2"]);
    world.publish_keyed("k", &["3"]);
    assert_eq!(texts(&world.drain(stream)), ["3"]);
}

#[test]
fn a_key_stays_on_its_stream_while_something_is_outstanding_there() {
    let mut world = ordered();
    let one = world.open();
    let other = world.open();
    world.publish_keyed("k", &["0"]);
    let got = world.drain(one);
    world.publish_keyed("k", &["1"]);
    world.publish(&["free"]);
    assert_eq!(
        texts(&world.drain(other)),
        ["free"],
        "messages without a key go anywhere"
    );
    let more = world.drain(one);
    assert_eq!(texts(&more), ["1"]);
    world.ack(&[&got[0], &more[0]]).unwrap();
    world.publish_keyed("k", &["2"]);
    assert_eq!(texts(&world.drain(other)), ["2"]);
}

#[test]
fn a_second_pull_gets_nothing_of_a_key_that_is_out() {
    let mut world = ordered();
    world.publish_keyed("k", &["0", "1", "2"]);
    let first = world.pull(2);
    assert_eq!(texts(&first), ["0", "1"]);
    assert!(world.pull(2).is_empty());
    world.ack(&first.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(texts(&world.pull(2)), ["2"]);
}

#[test]
fn after_a_lapse_the_successors_come_again_in_order_acknowledged_ones_included() {
    let mut world = ordered();
    world.publish_keyed("k", &["0", "1", "2", "3"]);
    world.publish_keyed("j", &["other"]);
    let stream = world.open();
    let got = world.drain(stream);
    let of = |name: &str| got.iter().find(|m| text(m) == name).unwrap();
    world.pass_secs(5);
    world.ack(&[of("1"), of("3"), of("other")]).unwrap();
    world.modify(&[of("2")], 60).unwrap();
    assert_eq!(world.record().backlog, 2);
    world.pass_secs(5);
    let again = world.drain(stream);
    assert_eq!(texts(&again), ["0", "1", "2", "3"]);
    world.ack(&[of("2")]).unwrap();
    assert_eq!(
        world.record().backlog,
        4,
        "the lease that was cut short means nothing any more"
    );
    world.ack(&again.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(world.record().backlog, 0);
}

#[test]
fn a_nack_brings_the_successors_back_as_well() {
    let mut world = ordered();
    world.publish_keyed("k", &["0", "1", "2"]);
    let stream = world.open();
    let got = world.drain(stream);
    world.nack(&[&got[1]]);
    assert_eq!(texts(&world.drain(stream)), ["1", "2"]);
    let attempts: Vec<u32> = world
        .record()
        .deliveries
        .iter()
        .map(|d| d.attempt)
        .collect();
    assert_eq!(attempts, [1, 1, 1, 2, 1], "a successor did not fail");
}

#[test]
fn nacking_a_whole_run_at_once_brings_it_back_in_order() {
    let mut world = ordered();
    world.publish_keyed("k", &["0", "1", "2"]);
    let got = world.pull(3);
    world.nack(&[&got[0], &got[1], &got[2]]);
    let again = world.pull(3);
    assert_eq!(texts(&again), ["0", "1", "2"]);
    world.nack(&[&again[2], &again[1], &again[0]]);
    assert_eq!(texts(&world.pull(3)), ["0", "1", "2"]);
}

#[test]
fn acknowledgements_count_in_any_order_and_prefixes_are_done() {
    let mut world = ordered();
    world.publish_keyed("k", &["0", "1", "2"]);
    let got = world.pull(3);
    world.ack(&[&got[2]]).unwrap();
    world.ack(&[&got[0]]).unwrap();
    assert_eq!(world.record().backlog, 1);
    world.ack(&[&got[1]]).unwrap();
    assert_eq!(world.record().backlog, 0);
    world.pass_secs(60);
    assert!(world.pull(3).is_empty());
}

#[test]
fn a_retry_pause_holds_back_the_whole_key() {
    let mut world = World::new(|sub| {
        sub.enable_message_ordering = true;
        sub.retry_policy = Some(RetryPolicy {
            minimum_backoff: Some(prost_types::Duration {
                seconds: 20,
                nanos: 0,
            }),
            maximum_backoff: Some(prost_types::Duration {
                seconds: 60,
                nanos: 0,
            }),
        });
    });
    world.publish_keyed("k", &["0", "1"]);
    world.publish_keyed("j", &["2"]);
    let got = world.pull(1);
    world.nack(&[&got[0]]);
    assert_eq!(texts(&world.pull(3)), ["2"]);
    world.pass_secs(19);
    assert!(!texts(&world.pull(3)).contains(&"1".to_owned()));
    world.pass_secs(1);
    assert_eq!(texts(&world.pull(2)), ["0", "1"]);
}

#[test]
fn a_key_moves_when_its_stream_is_gone_and_its_leases_are_over() {
    let mut world = ordered();
    world.publish_keyed("k", &["0", "1"]);
    let one = world.open();
    world.drain(one);
    let other = world.open();
    world.state.close_stream(world.now, one);
    assert!(world.drain(other).is_empty());
    world.pass_secs(10);
    assert_eq!(texts(&world.drain(other)), ["0", "1"]);
}

#[test]
fn without_ordering_a_key_is_only_a_label() {
    let mut world = World::new(|_| ());
    world.publish_keyed("k", &["0", "1", "2"]);
    let got = world.pull(2);
    assert_eq!(texts(&world.pull(2)), ["2"]);
    world.nack(&[&got[0]]);
    assert_eq!(texts(&world.pull(3)), ["0"]);
}

#[test]
fn a_late_acknowledgement_does_not_take_a_message_out_of_the_run_it_was_called_back_into() {
    let mut world = ordered();
    world.publish_keyed("k", &["0", "1", "2", "3"]);
    let stream = world.open();
    let got = world.drain(stream);
    world.modify(&[&got[0]], 20).unwrap();
    world.modify(&[&got[1]], 15).unwrap();
    world.pass_secs(10);
    assert_eq!(
        world.record().lapses,
        1,
        "2 lapsed, and 3 is called back behind it"
    );
    world.pass_secs(5);
    assert_eq!(
        world.record().lapses,
        2,
        "1 lapsed: 2 and 3 come again behind it"
    );
    world.ack(&[&got[2]]).unwrap();
    assert_eq!(world.record().acks, 0);
    assert_eq!(texts(&world.drain(stream)), ["1", "2", "3"]);
}
