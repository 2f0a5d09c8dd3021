//! Batches and when they leave.

use std::time::Duration;

use connector_core::Verdict;

use super::world::{World, sent_sizes, standard};
use crate::settings::Settings;

#[test]
fn a_request_leaves_at_once_until_four_are_in_flight_then_the_batch_grows() {
    let mut world = standard();
    for _ in 0..4 {
        world.accept(0, "", false);
        world.perform();
    }
    for _ in 0..10 {
        world.accept(0, "", false);
        world.perform();
    }
    assert_eq!(sent_sizes(&world), [1, 1, 1, 1]);
    world.serve(2, false);
    world.perform();
    assert_eq!(sent_sizes(&world), [1, 1, 1, 1, 10]);
}

#[test]
fn requests_hold_at_most_a_thousand_messages() {
    let mut world = standard();
    for _ in 0..2_500 {
        world.accept(0, "", false);
    }
    world.perform();
    assert_eq!(sent_sizes(&world), [1000, 1000, 500]);
}

#[test]
fn a_message_above_the_batch_threshold_leaves_alone_and_holds_up_nobody() {
    let mut world = World::new(Settings {
        batch_bytes: 60,
        in_flight: 1,
        ..Settings::default()
    });
    // The topic takes 30 bytes, a record 8: three fit, and a large one never does.
    world.accept(0, "", false);
    world.perform();
    for _ in 0..3 {
        world.accept(0, "", false);
    }
    world.heal();
    assert_eq!(sent_sizes(&world), [1, 3]);
    assert!(
        world
            .sent
            .iter()
            .all(|request| prost::Message::encoded_len(request) <= 60)
    );
    let mut small = World::new(Settings {
        batch_bytes: 10,
        ..Settings::default()
    });
    small.accept(0, "", false);
    small.accept(0, "", false);
    small.heal();
    assert_eq!(sent_sizes(&small), [1, 1]);
}

#[test]
fn a_linger_keeps_a_batch_back_and_ends_when_someone_waits() {
    let linger = Duration::from_secs(3600);
    let lingering = || {
        World::new(Settings {
            linger,
            ..Settings::default()
        })
    };
    let mut world = lingering();
    world.accept(0, "", false);
    world.perform();
    assert!(world.sent.is_empty());
    world.pass(linger);
    world.perform();
    assert_eq!(sent_sizes(&world), [1], "after the linger");

    let mut world = lingering();
    world.accept(0, "", false);
    world.snapshot();
    world.perform();
    assert_eq!(sent_sizes(&world), [1], "a snapshot waits");

    let mut world = lingering();
    world.accept(0, "", false);
    world.machine.await_room(world.now);
    world.perform();
    assert_eq!(sent_sizes(&world), [1], "the host waits for room");

    let mut world = lingering();
    for _ in 0..1000 {
        world.accept(0, "", false);
    }
    world.perform();
    assert_eq!(sent_sizes(&world), [1000], "a full batch needs no company");
}

#[test]
fn a_batch_whose_key_was_blocked_while_the_linger_was_off_still_leaves_after_it() {
    let mut world = World::new(Settings {
        linger: Duration::from_millis(100),
        max_destinations: 2,
        ordering: true,
        ..Settings::default()
    });
    world.reject(2, "a");
    world.accept(0, "", false);
    world.accept(1, "", false);
    // Three destinations of two: nothing lingers, but this key waits for a verdict.
    world.accept(2, "a", false);
    world.perform();
    // Two again: from now on batches linger, and this one has never been timed.
    world.serve(0, false);
    world.decide(0, Verdict::Drop);
    world.pass(Duration::from_millis(100));
    world.perform();
    let last = world.sent.last().unwrap();
    assert_eq!(World::numbers(last), [3]);
}
