//! Attempts that fail, and the next ones.

use std::time::Duration;

use super::world::{failure, standard};
use crate::{
    SinkError,
    machine::{Answer, Class, Failure, Notice},
};

#[test]
fn a_failed_request_is_sent_again_as_the_same_bytes_after_growing_pauses() {
    let mut world = standard();
    world.accept(0, "", false);
    world.perform();
    let first = world.calls[0].encoded.clone();
    let mut pauses = Vec::new();
    let mut deadlines = Vec::new();
    for _ in 0..12 {
        deadlines.push(world.calls[0].deadline.as_secs());
        world.refuse(0, Class::Transient);
        let at = world.machine.poll_timeout().unwrap();
        pauses.push((at - world.now).as_millis());
        world.now = at;
        world.machine.handle_timeout(at);
        world.perform();
        assert_eq!(world.calls[0].encoded, first);
    }
    assert_eq!(
        pauses,
        [
            100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 60000, 60000
        ]
    );
    assert_eq!(deadlines, [5, 10, 20, 40, 60, 60, 60, 60, 60, 60, 60, 60]);
    world.serve(0, false);
    assert_eq!(world.machine.stats().requests_retried, 12);
    let told = |wanted: fn(&Notice) -> bool| world.notices.iter().filter(|n| wanted(n)).count();
    assert_eq!(
        told(|n| matches!(n, Notice::Failing { .. })),
        1,
        "one warning per outage"
    );
}

#[test]
fn a_used_up_quota_is_given_more_time_than_an_outage() {
    let mut world = standard();
    world.accept(0, "", false);
    world.perform();
    world.refuse(0, Class::Exhausted);
    let at = world.machine.poll_timeout().unwrap();
    assert_eq!(at - world.now, Duration::from_secs(1));
}

#[test]
fn a_wait_that_the_service_asks_for_is_heeded_up_to_the_cap_of_the_schedule() {
    for (class, wish, heeded) in [
        (Class::Transient, 7, 7),
        (Class::Exhausted, 7, 7),
        (Class::Transient, 86_400, 60),
        (Class::Exhausted, 86_400, 60),
    ] {
        let mut world = standard();
        world.accept(0, "", false);
        world.perform();
        let call = world.calls.remove(0);
        let asking = Failure {
            retry_after: Some(Duration::from_secs(wish)),
            ..failure(class)
        };
        let answer = Answer::Failed(asking);
        world.machine.handle_answer(world.now, call.id, answer, 0.5);
        let at = world.machine.poll_timeout().unwrap();
        assert_eq!(
            at - world.now,
            Duration::from_secs(heeded),
            "{class:?} {wish}"
        );
    }
}

#[test]
fn the_retry_budget_ends_the_sink_and_names_the_topic() {
    let mut world = standard();
    world.accept(7, "", false);
    world.perform();
    let start = world.now;
    while world.machine.ended().is_none() {
        world.refuse(0, Class::Transient);
        if let Some(at) = world.machine.poll_timeout() {
            world.now = at;
            world.machine.handle_timeout(at);
            world.perform();
        }
    }
    assert!(world.now - start <= Duration::from_secs(600));
    assert!(world.now - start >= Duration::from_secs(500));
    let SinkError::RetriesExhausted { topic, .. } = world.ended() else {
        panic!("{}", world.ended());
    };
    assert_eq!(topic.id(), "topic-7");
}

#[test]
fn the_halves_of_a_refused_request_have_retry_budgets_of_their_own() {
    let mut world = standard();
    world.accept(0, "", false);
    world.accept(0, "", true);
    world.perform();
    for _ in 0..5 {
        world.refuse(0, Class::Transient);
        let at = world.machine.poll_timeout().unwrap();
        world.pass(at - world.now);
        world.perform();
    }
    world.serve(0, false);
    world.perform();
    assert_eq!(world.calls[0].request.messages.len(), 1, "the first half");
    assert_eq!(world.calls[0].deadline, Duration::from_secs(5));
    world.refuse(0, Class::Transient);
    let at = world.machine.poll_timeout().unwrap();
    assert_eq!(at - world.now, Duration::from_millis(100));
}

#[test]
fn an_answer_that_does_not_name_every_message_proves_nothing() {
    let mut world = standard();
    world.accept(0, "", false);
    world.accept(0, "", false);
    world.perform();
    let call = world.calls.remove(0);
    let short = Answer::Stored(["1".to_owned()].into_iter().collect());
    world.machine.handle_answer(world.now, call.id, short, 0.5);
    assert!(matches!(
        world.ended(),
        SinkError::IncompleteAnswer {
            sent: 2,
            named: 1,
            ..
        }
    ));
}
