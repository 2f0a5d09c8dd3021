//! Ordering keys.

use connector_core::Verdict;

use super::world::{World, ordered, standard};
use crate::machine::Class;

#[test]
fn a_key_is_never_overtaken_while_its_request_is_tried_again() {
    let mut world = ordered();
    world.accept(0, "k", false);
    world.perform();
    for _ in 0..3 {
        world.accept(0, "k", false);
        world.accept(0, "j", false);
    }
    world.perform();
    world.refuse(0, Class::Transient);
    world.perform();
    let keys: Vec<&str> = world
        .sent
        .iter()
        .map(|request| request.messages[0].ordering_key.as_str())
        .collect();
    assert_eq!(
        keys,
        ["k", "j"],
        "the other key goes on, this one waits for its retry"
    );
    world.heal();
    let key = |key: &str| {
        world.stored_by_key[&("projects/demo/topics/topic-0".to_owned(), key.to_owned())].clone()
    };
    assert_eq!(key("k"), [0, 1, 3, 5]);
    assert_eq!(key("j"), [2, 4, 6]);
}

#[test]
fn a_key_waits_for_the_verdict_on_its_refused_message() {
    let mut world = ordered();
    world.accept(0, "k", true);
    world.perform();
    world.accept(0, "k", false);
    world.accept(0, "", false);
    world.serve(0, false);
    world.perform();
    let waiting: Vec<u32> = world
        .calls
        .iter()
        .flat_map(|call| World::numbers(&call.request))
        .collect();
    assert_eq!(waiting, [2], "only the message without a key has left");
    world.decide(0, Verdict::Drop);
    world.heal();
    assert_eq!(world.stored, [2, 1]);
}

#[test]
fn a_keyed_message_without_ordering_ends_the_sink_and_names_the_setting() {
    let mut world = standard();
    assert!(!world.accept(0, "customer-7", false));
    let text = world.ended().to_string();
    assert!(
        text.contains("customer-7") && text.contains("message_ordering(true)"),
        "{text}"
    );
    assert!(text.contains("projects/demo/topics/topic-0"), "{text}");
}
