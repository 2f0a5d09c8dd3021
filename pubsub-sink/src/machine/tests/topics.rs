//! Topics: missing, created, in use and let go.

use std::time::Duration;

use connector_core::Cause;

use super::world::{World, ordered, standard, topic};
use crate::{
    MessageError, MissingTopics, SinkError,
    machine::{Class, Creation, Notice},
    settings::Settings,
};

#[test]
fn a_missing_topic_ends_the_sink_and_names_it_when_none_is_to_be_created() {
    let mut world = World::new(Settings {
        missing_topics: MissingTopics::End,
        ..Settings::default()
    });
    world.accept(5, "", false);
    world.perform();
    world.refuse(0, Class::Missing);
    let text = world.ended().to_string();
    assert!(text.contains("projects/demo/topics/topic-5"), "{text}");
}

#[test]
fn the_least_recently_used_clean_destination_makes_room() {
    let mut world = World::new(Settings {
        max_destinations: 2,
        ..Settings::default()
    });
    world.accept(0, "", false);
    world.accept(1, "", false);
    world.perform();
    world.serve(0, false);
    assert!(!world.machine.is_crowded());
    world.accept(2, "", false);
    assert!(
        !world.machine.is_crowded(),
        "topic 0 was clean and made room"
    );
    world.accept(3, "", false);
    assert!(world.machine.is_crowded(), "none was clean");
    world.perform();
    world.serve(0, false);
    assert!(
        !world.machine.is_crowded(),
        "the first to become clean makes room"
    );
    assert_eq!(world.machine.stats().destinations, 2);
    world.heal();
    world.pass(Duration::from_secs(3600));
    assert_eq!(
        world.machine.stats().destinations,
        0,
        "idle ones are released"
    );
}

#[test]
fn a_missing_topic_is_created_once_and_what_waited_for_it_is_published_in_order() {
    let mut world = ordered();
    world.missing.insert(topic(0).to_string());
    for n in 0..12 {
        world.accept(0, ["a", "b", ""][n % 3], false);
        world.perform();
    }
    while !world.calls.is_empty() {
        world.serve(0, false);
        world.perform();
    }
    assert_eq!(world.creating.len(), 1, "one administrative call");
    let sent = world.sent.len();
    world.accept(0, "c", false);
    world.perform();
    assert_eq!(world.sent.len(), sent, "nothing overtakes what waits");
    assert!(world.machine.stats().parked_records > 0);
    world.heal();
    assert_eq!(world.machine.stats().topics_created, 1);
    assert_eq!(world.machine.stats().parked_records, 0);
    for key in ["a", "b"] {
        let log = &world.stored_by_key[&(topic(0).to_string(), key.to_owned())];
        assert!(log.is_sorted(), "{key}: {log:?}");
        assert_eq!(log.len(), 4);
    }
    assert_eq!(world.stored.len(), 13);
    let told = world.notices.iter();
    assert_eq!(
        told.filter(|n| matches!(n, Notice::TopicCreated { .. }))
            .count(),
        1
    );
}

#[test]
fn a_created_topic_that_does_not_show_is_waited_for_and_then_given_up() {
    let mut world = standard();
    world.accept(4, "", false);
    world.perform();
    world.refuse(0, Class::Missing);
    let start = world.now;
    let mut pauses = Vec::new();
    loop {
        world.perform();
        world.create(0, true);
        world.perform();
        world.refuse(0, Class::Missing);
        if world.machine.ended().is_some() {
            break;
        }
        let at = world.machine.poll_timeout().unwrap();
        pauses.push((at - world.now).as_millis());
        world.pass(at - world.now);
    }
    assert_eq!(
        pauses,
        [500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000]
    );
    assert!(world.now - start < Duration::from_secs(60));
    let SinkError::TopicMissing { topic, .. } = world.ended() else {
        panic!("{}", world.ended());
    };
    assert_eq!(topic.id(), "topic-4");
}

#[test]
fn a_creation_that_fails_for_now_is_repeated_and_one_that_is_refused_ends_the_sink() {
    let mut world = standard();
    world.missing.insert(topic(0).to_string());
    world.accept(0, "", false);
    world.perform();
    world.serve(0, false);
    world.perform();
    for _ in 0..3 {
        world.create(0, false);
        let at = world.machine.poll_timeout().unwrap();
        world.pass(at - world.now);
        world.perform();
    }
    world.heal();
    assert_eq!(world.stored, [0]);

    let mut world = standard();
    world.accept(0, "", false);
    world.perform();
    world.refuse(0, Class::Missing);
    world.perform();
    let refused = Creation::Refused(Cause::new(MessageError::Empty));
    let topic = world.creating.remove(0);
    world
        .machine
        .handle_created(world.now, &topic, refused, 0.5);
    assert!(matches!(world.ended(), SinkError::TopicNotCreated { .. }));
}

#[test]
fn a_request_that_is_stored_ends_the_wait_of_those_that_missed_the_topic() {
    let mut world = standard();
    for _ in 0..2 {
        world.accept(0, "", false);
        world.perform();
    }
    world.delete(0);
    world.serve(0, false);
    world.perform();
    world.appear(0);
    world.serve(0, false);
    world.perform();
    assert_eq!(world.stored, [1]);
    let waiting = world
        .calls
        .iter()
        .flat_map(|call| World::numbers(&call.request));
    assert_eq!(
        waiting.collect::<Vec<_>>(),
        [0],
        "sent again without waiting for the creation"
    );
}

#[test]
fn a_sink_that_ends_while_a_topic_is_created_publishes_nothing_more() {
    let mut world = standard();
    world.delete(0);
    world.accept(0, "", false);
    world.accept(1, "", false);
    world.perform();
    world.serve(0, false);
    world.perform();
    world.accept(0, "", false);
    world.refuse(0, Class::Fatal);
    world.create(0, true);
    world.perform();
    assert!(matches!(world.ended(), SinkError::Refused { .. }));
    assert!(world.stored.is_empty());
    assert_eq!(world.sent.len(), 2, "what waited for the topic is given up");
}
