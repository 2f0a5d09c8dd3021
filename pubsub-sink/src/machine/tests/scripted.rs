//! One behaviour each, scripted.

use std::{num::NonZeroU32, time::Duration};

use connector_core::{CheckpointError, Epoch, Verdict};

use super::world::World;
use crate::{
    MissingTopics, Published, SinkError,
    machine::{Class, Creation, Notice, Retry},
    settings::Settings,
};

fn world() -> World {
    World::new(Settings::default())
}

fn ordered() -> World {
    let retry = Retry {
        total: None,
        ..Settings::default().retry
    };
    World::new(Settings {
        ordering: true,
        retry,
        ..Settings::default()
    })
}

fn sent_sizes(world: &World) -> Vec<usize> {
    world
        .sent
        .iter()
        .map(|request| request.messages.len())
        .collect()
}

#[test]
fn a_request_leaves_at_once_until_four_are_in_flight_then_the_batch_grows() {
    let mut world = world();
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
    let mut world = world();
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
fn a_failed_request_is_sent_again_as_the_same_bytes_after_growing_pauses() {
    let mut world = world();
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
    let mut world = world();
    world.accept(0, "", false);
    world.perform();
    world.refuse(0, Class::Exhausted);
    let at = world.machine.poll_timeout().unwrap();
    assert_eq!(at - world.now, Duration::from_secs(1));
}

#[test]
fn the_retry_budget_ends_the_sink_and_names_the_topic() {
    let mut world = world();
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
fn only_the_guilty_messages_of_a_refused_request_reach_the_handler() {
    let mut world = world();
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
fn a_verdict_to_fail_ends_the_sink_with_the_reason() {
    let mut world = world();
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
fn a_keyed_message_without_ordering_ends_the_sink_and_names_the_setting() {
    let mut world = world();
    assert!(!world.accept(0, "customer-7", false));
    let text = world.ended().to_string();
    assert!(
        text.contains("customer-7") && text.contains("message_ordering(true)"),
        "{text}"
    );
    assert!(text.contains("projects/demo/topics/topic-0"), "{text}");
}

#[test]
fn a_snapshot_waits_for_the_handlers_flush_and_a_failed_one_stays_owed() {
    let mut world = world();
    world.reject(0, "");
    let first = world.snapshot();
    world.perform();
    world.decide(0, Verdict::Drop);
    world.perform();
    assert!(world.resolved.is_empty(), "the handler has not flushed");
    world.end_flush(false);
    world.perform();
    assert!(matches!(
        world.resolved[..],
        [(Some(epoch), Err(CheckpointError::Incomplete { .. }))] if epoch == first
    ));
    world.abort(first);
    world.snapshot();
    world.perform();
    assert!(world.flushing.is_some(), "the next snapshot flushes again");
    world.end_flush(true);
    world.perform();
    assert!(matches!(world.resolved[1], (_, Ok(()))));
}

#[test]
fn records_after_the_cut_do_not_hold_up_the_snapshot() {
    let mut world = world();
    world.accept(0, "", false);
    world.perform();
    world.snapshot();
    world.accept(1, "", false);
    world.perform();
    world.serve(0, false);
    world.perform();
    world.end_flush(true);
    world.perform();
    assert!(matches!(world.resolved[..], [(Some(_), Ok(()))]));
    assert_eq!(world.machine.held().items, 1);
}

#[test]
fn a_standstill_ends_the_sink_only_while_someone_waits() {
    let mut world = ordered();
    world.accept(3, "k", false);
    world.perform();
    world.pass(Duration::from_secs(3600));
    assert!(world.machine.ended().is_none(), "nobody waits");
    world.snapshot();
    world.pass(Duration::from_secs(599));
    assert!(world.machine.ended().is_none());
    world.pass(Duration::from_secs(1));
    let SinkError::Stalled { topic, items, .. } = world.ended() else {
        panic!("{}", world.ended());
    };
    assert_eq!(topic.as_ref().unwrap().id(), "topic-3");
    assert_eq!(*items, 1);
}

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
fn an_answer_that_does_not_name_every_message_proves_nothing() {
    let mut world = world();
    world.accept(0, "", false);
    world.accept(0, "", false);
    world.perform();
    let call = world.calls.remove(0);
    let short = crate::machine::Answer::Stored(vec!["1".into()]);
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

#[test]
fn a_submitter_learns_its_own_message_id() {
    let mut world = world();
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
fn epochs_go_on_above_the_restored_one() {
    let resumed = crate::machine::Resumed {
        epoch: Epoch::new(7),
        messages: Vec::new(),
        quarantined: Vec::new(),
    };
    let (mut machine, commit) = crate::machine::Machine::new(Settings::default(), Some(resumed));
    let now = crate::clock::now();
    assert!(matches!(
        machine.snapshot(now, Epoch::new(7)),
        Err(CheckpointError::OutOfOrder { .. })
    ));
    match machine.poll_effect(now) {
        Some(crate::machine::Effect::Committed(id, committed)) => {
            assert_eq!(Some(id), commit);
            assert_eq!(committed.unwrap().total(), 0);
        }
        other => panic!("{other:?}"),
    }
    assert!(machine.snapshot(now, Epoch::new(8)).is_ok());
}

#[test]
fn close_sends_what_is_left_and_its_budget_ends_it_otherwise() {
    let mut world = world();
    world.accept(0, "", false);
    let id = world.machine.close(world.now);
    world.cuts.insert(id, (None, 1));
    world.perform();
    world.pass(Duration::from_secs(29));
    assert!(world.machine.ended().is_none());
    world.serve(0, false);
    world.perform();
    world.end_flush(true);
    world.perform();
    assert!(matches!(world.resolved[..], [(None, Ok(()))]));
    assert!(matches!(world.ended(), SinkError::ClosedByHost));

    let mut world = self::world();
    world.accept(0, "", false);
    world.machine.close(world.now);
    world.perform();
    world.pass(Duration::from_secs(30));
    assert!(matches!(world.ended(), SinkError::Unsent { items: 1, .. }));
}

#[test]
fn a_missing_topic_is_created_once_and_what_waited_for_it_is_published_in_order() {
    let mut world = ordered();
    world.missing.insert(super::world::topic(0).to_string());
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
        let log = &world.stored_by_key[&(super::world::topic(0).to_string(), key.to_owned())];
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
    let mut world = world();
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
    let mut world = world();
    world.missing.insert(super::world::topic(0).to_string());
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

    let mut world = self::world();
    world.accept(0, "", false);
    world.perform();
    world.refuse(0, Class::Missing);
    world.perform();
    let refused = Creation::Refused(connector_core::Cause::new(crate::MessageError::Empty));
    let topic = world.creating.remove(0);
    world
        .machine
        .handle_created(world.now, &topic, refused, 0.5);
    assert!(matches!(world.ended(), SinkError::TopicNotCreated { .. }));
}

#[test]
fn a_commit_that_is_complete_is_told_also_when_the_sink_ends_at_that_moment() {
    let mut world = world();
    world.accept(0, "", false);
    let epoch = world.snapshot();
    world.perform();
    world.serve(0, false);
    world.commit(epoch);
    world.machine.fail(SinkError::DriverGone);
    world.perform();
    assert_eq!(world.committed.len(), 1);
    assert_eq!(world.committed[0].settled, 1);
}

#[test]
fn a_request_that_is_stored_ends_the_wait_of_those_that_missed_the_topic() {
    let mut world = world();
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
fn the_halves_of_a_refused_request_have_retry_budgets_of_their_own() {
    let mut world = world();
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
fn the_handler_owes_a_bounded_number_of_verdicts() {
    let mut world = world();
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
