//! Messages that are at fault themselves.

use std::num::NonZeroU32;

use connector_core::{CheckpointError, Verdict};
use gcp_wire::Code;

use super::world::{World, ordered, standard};
use crate::{Published, SinkError, machine::Class, settings::Settings};

#[test]
fn only_the_guilty_messages_of_a_refused_request_reach_the_handler() {
    let mut world = standard();
    for number in 0..10 {
        world.accept(0, "", number == 4);
    }
    world.snapshot();
    world.heal();
    assert_eq!(world.handled.iter().copied().collect::<Vec<_>>(), [4]);
    let mut stored = world.stored.clone();
    stored.sort_unstable();
    assert_eq!(
        stored,
        [0, 1, 2, 3, 5, 6, 7, 8, 9],
        "each neighbour exactly once"
    );
    assert!(matches!(world.resolved[..], [(Some(_), Ok(()))]));
}

#[test]
fn a_hundred_confirmed_rejections_in_a_row_end_the_sink_after_the_last_was_handed_over() {
    let mut world = World::new(Settings {
        max_consecutive_rejections: NonZeroU32::new(3),
        ..Settings::default()
    });
    for poisoned in [true, true, false, true, true, true, true] {
        world.accept(0, "", poisoned);
        world.perform();
        if !world.calls.is_empty() {
            world.serve(0, false);
        }
        world.perform();
        while !world.handling.is_empty() {
            world.decide(0, Verdict::Drop);
        }
    }
    let SinkError::TooManyRejections { count, .. } = world.ended() else {
        panic!("{}", world.ended());
    };
    assert_eq!(*count, 3);
    assert_eq!(
        world.handled.iter().copied().collect::<Vec<_>>(),
        [0, 1, 3, 4, 5]
    );
}

#[test]
fn a_verdict_to_fail_ends_the_sink_with_the_reason() {
    let mut world = standard();
    world.reject(0, "");
    world.perform();
    world.decide(0, Verdict::Fail);
    assert!(matches!(world.ended(), SinkError::Rejected { .. }));
    assert!(
        !world.accept(0, "", false),
        "nothing is taken after the end"
    );
}

#[test]
fn the_handler_owes_a_bounded_number_of_verdicts() {
    let mut world = standard();
    for _ in 0..1_500 {
        world.reject(0, "");
    }
    world.perform();
    assert_eq!(world.handling.len(), 1_000);
    world.decide(0, Verdict::Drop);
    world.perform();
    assert_eq!(world.handling.len(), 1_000, "the next one follows");
    world.heal();
    assert_eq!(world.handled.len(), 1_500);
}

#[test]
fn a_submitter_learns_its_own_message_id() {
    let mut world = standard();
    world.accept(0, "", false);
    let reply = world.machine.reply();
    world.submit(0, "", false, Some(reply));
    let refused = world.machine.reply();
    world.submit(0, "", true, Some(refused));
    world.heal();
    let of = |id| {
        let (_, published) = world
            .answers
            .iter()
            .find(|(reply, _)| *reply == id)
            .unwrap();
        published
    };
    assert_eq!(of(reply).message_id(), Some("1"));
    assert!(matches!(of(refused), Published::Rejected { .. }));
    assert_eq!(world.answers.len(), 2);
}

#[test]
fn a_refusal_counts_once_its_message_is_known_and_a_divided_request_does_not() {
    let mut world = standard();
    world.accept(0, "", false);
    world.perform();
    world.refuse(0, Class::Transient);
    for number in 1..10 {
        world.accept(0, "", number == 4);
    }
    world.heal();
    let failures = world.machine.failures().iter();
    let failures: Vec<(Code, u64)> = failures.map(|(code, count)| (*code, *count)).collect();
    assert_eq!(
        failures,
        [(Code::InvalidArgument, 1), (Code::Unavailable, 1)]
    );
    assert!(world.machine.stats().requests_divided > 0);
}

#[test]
fn without_a_bound_a_key_full_of_refused_messages_goes_on_behind_the_last() {
    let mut world = World::new(Settings {
        ordering: true,
        max_consecutive_rejections: None,
        ..Settings::default()
    });
    for number in 0..201 {
        world.accept(0, "k", number < 200);
    }
    world.snapshot();
    world.heal();
    assert!(world.machine.ended().is_none());
    assert_eq!(world.handled.len(), 200);
    assert_eq!(world.stored, [200]);
    assert!(matches!(world.resolved[..], [(Some(_), Ok(()))]));
}

#[test]
fn a_bound_of_one_ends_the_sink_with_the_first_refusal_once_that_was_handed_over() {
    let mut world = World::new(Settings {
        max_consecutive_rejections: NonZeroU32::new(1),
        ..Settings::default()
    });
    world.accept(0, "", true);
    world.accept(0, "", true);
    world.heal();
    assert!(matches!(
        world.ended(),
        SinkError::TooManyRejections { count: 1, .. }
    ));
    assert!(world.handled.contains(&0));
}

#[test]
fn only_a_stored_message_of_whatever_topic_ends_a_row_of_refusals() {
    let mut world = World::new(Settings {
        max_consecutive_rejections: NonZeroU32::new(2),
        ..Settings::default()
    });
    let row = |world: &World| world.machine.stats().consecutive_rejections;
    world.accept(0, "", true);
    world.heal();
    world.reject(0, "");
    world.heal();
    assert_eq!(
        row(&world),
        1,
        "what the sink rejects itself does not count"
    );
    world.accept(1, "", false);
    world.heal();
    assert_eq!(row(&world), 0);
    world.accept(0, "", true);
    world.heal();
    assert!(world.machine.ended().is_none());
    world.accept(0, "", true);
    world.heal();
    assert!(matches!(
        world.ended(),
        SinkError::TooManyRejections { count: 2, .. }
    ));
}

#[test]
fn a_handler_that_gives_no_verdict_ends_the_sink_and_no_key_goes_on() {
    let mut world = ordered();
    world.reject(0, "k");
    world.accept(0, "k", false);
    world.perform();
    let (id, _) = world.handling.remove(0);
    let broken = Err(CheckpointError::driver_gone());
    world.machine.handle_verdict(world.now, id, broken);
    world.perform();
    assert!(matches!(world.ended(), SinkError::Handler { .. }));
    assert!(world.sent.is_empty());
}
