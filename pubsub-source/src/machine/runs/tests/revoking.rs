//! What is revoked, and what may come next while it is not known, or known, what came out before.

use super::*;

#[test]
fn everything_that_waits_in_every_key_is_revoked_once() {
    let mut key = Key::new();
    let waiting: Vec<DeliveryId> = (0..3)
        .map(|number| {
            key.arrive(number, Known::Nothing);
            key.id(number)
        })
        .collect();
    key.key = key.runs.key("other");
    key.arrive(9, Known::Nothing);
    let other = key.id(9);
    key.key = key.runs.key("k");
    assert_eq!(key.runs.cut(key.key, waiting[2]), [waiting[2]]);
    assert_eq!(key.runs.cut_all(), [waiting[0], waiting[1], other]);
    key.runs.check_invariants();
    assert!(key.runs.cut_all().is_empty());
}

#[test]
fn a_key_goes_on_when_all_that_was_revoked_had_come_out() {
    let mut key = Key::new();
    key.arrive(0, Known::Nothing);
    let zero = key.id(0);
    assert_eq!(key.runs.cut(key.key, zero), [zero]);
    key.runs.handle_out(key.key, zero);
    assert_eq!(turn(key.arrive(1, Known::Nothing)), 0);
}

#[test]
fn what_a_durable_epoch_names_need_not_come_again_for_new_messages_that_were_dropped() {
    let mut key = Key::new();
    key.hand_out_new(0..3);
    key.arrive(3, Known::Nothing);
    let three = key.id(3);
    key.runs.cut(key.key, three);
    key.runs.handle_withdrawn(key.key, three);
    assert_eq!(key.arrive(2, Known::Seen), Fate::Suppress);
}

#[test]
fn nothing_comes_next_and_nothing_is_awaited_while_it_is_not_known_what_came_out() {
    let mut key = Key::new();
    key.hand_out_new(0..3);
    key.arrive(3, Known::Nothing);
    let three = key.id(3);
    let two = MessageKey::Number(2);
    key.runs.release(key.key, &two, in_turn(0));
    key.runs.cut(key.key, three);
    let unknown = Fate::Drop {
        wait: Duration::ZERO,
    };
    assert_eq!(key.arrive(4, Known::Nothing), unknown);
    assert_eq!(key.arrive(2, Known::Nothing), unknown, "it was given back");
    key.runs.handle_withdrawn(key.key, three);
    assert_ne!(turn(key.arrive(2, Known::Nothing)), 0);
}

/// It was leased for as long as the handle had it.
#[test]
fn what_the_handle_had_taken_may_come_again_for_as_long_after_that() {
    let mut key = Key::new();
    key.hand_out_new(0..2);
    key.arrive(2, Known::Nothing);
    let two = key.id(2);
    key.runs.cut(key.key, two);
    key.runs.handle_timeout(key.now);
    key.wait(PATIENCE / 2);
    key.runs.handle_withdrawn(key.key, two);
    key.runs.handle_timeout(key.now);
    key.wait(PATIENCE / 2);
    assert!(is_dropped(key.arrive(3, Known::Nothing)), "2 may come");
    key.wait(PATIENCE / 2);
    assert_eq!(turn(key.arrive(3, Known::Nothing)), 0);
}

/// 2 and 3 were dropped. 3 was sent again half-way, and 2 is gone.
fn one_gone() -> Key {
    let mut key = Key::new();
    key.hand_out_new(0..2);
    key.drop_new(2..4);
    key.wait(PATIENCE / 2);
    let wait = PATIENCE / 2;
    assert_eq!(key.arrive(3, Known::Nothing), Fate::Drop { wait });
    key.wait(PATIENCE / 2);
    key
}

#[test]
fn what_is_gone_by_now_is_not_awaited() {
    let mut key = one_gone();
    let wait = PATIENCE;
    assert_eq!(key.arrive(4, Known::Nothing), Fate::Drop { wait });
}

/// Of several streams one may be read later than another.
#[test]
fn what_may_still_come_is_judged_by_when_a_message_was_sent_and_not_by_the_one_before() {
    let mut key = one_gone();
    for _ in 0..2 {
        assert!(is_dropped(key.arrive(4, Known::Nothing)), "3 is awaited");
    }
    let sent = key.sent;
    key.sent -= PATIENCE / 2;
    assert!(is_dropped(key.arrive(3, Known::Nothing)), "2 was, then");
    key.sent = sent;
    assert_eq!(turn(key.arrive(3, Known::Nothing)), 0);
}

#[test]
fn what_is_dropped_later_and_lies_before_what_was_awaited_comes_before_it() {
    let mut key = Key::new();
    key.hand_out_new(0..2);
    let waiting: Vec<DeliveryId> = (2..5)
        .map(|number| {
            key.arrive(number, Known::Nothing);
            key.id(number)
        })
        .collect();
    for id in key.runs.cut(key.key, waiting[1]) {
        key.runs.handle_withdrawn(key.key, id);
    }
    key.runs.handle_timeout(key.now);
    key.wait(PATIENCE / 2);
    assert!(is_dropped(key.arrive(4, Known::Nothing)));
    key.wait(PATIENCE / 2);
    for _ in 0..2 {
        assert!(is_dropped(key.arrive(5, Known::Nothing)), "4 is awaited");
    }
    assert_eq!(key.runs.cut(key.key, waiting[0]), [waiting[0]]);
    key.runs.handle_withdrawn(key.key, waiting[0]);
    assert!(is_dropped(key.arrive(4, Known::Nothing)), "2 lies before");
    assert_eq!(turn(key.arrive(2, Known::Nothing)), 0);
}
