use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn key(number: u64) -> MessageKey {
    MessageKey::Number(number)
}

#[test]
fn an_entry_is_used_up_by_the_first_confirmed_acknowledgement() {
    let now = crate::driver::now();
    let mut seen = Seen::new(10);
    seen.admit(now, vec![key(1), key(2)], 100, HOUR);
    assert!(seen.suppresses(&key(1), 100));
    assert!(seen.remove(&key(1)));
    assert!(!seen.suppresses(&key(1), 100));
    assert!(seen.suppresses(&key(2), 100));
}

#[test]
fn a_message_published_later_is_another_one_with_the_same_id() {
    let mut seen = Seen::new(10);
    seen.admit(crate::driver::now(), vec![key(1)], 100, HOUR);
    assert!(!seen.suppresses(&key(1), 101));
    assert!(seen.suppresses(&key(1), 99));
}

#[test]
fn lifetimes_count_only_while_a_stream_is_open() {
    let start = crate::driver::now();
    let minute = Duration::from_secs(60);
    let mut seen = Seen::new(10);
    seen.admit(start, vec![key(1)], 100, minute);
    seen.expire(start + HOUR);
    assert!(seen.suppresses(&key(1), 100));
    assert_eq!(seen.next_timeout(), None);

    let opened = start + HOUR;
    seen.handle_open(opened, true);
    assert_eq!(seen.next_timeout(), Some(opened + minute));
    seen.handle_open(opened + minute / 2, false);
    seen.handle_open(opened + HOUR, true);
    assert_eq!(seen.next_timeout(), Some(opened + HOUR + minute / 2));
    seen.expire(opened + HOUR + minute / 2);
    assert!(!seen.suppresses(&key(1), 100));
    assert_eq!(seen.len(), 0);
}

#[test]
fn the_oldest_leave_first_when_the_window_is_full() {
    let now = crate::driver::now();
    let mut seen = Seen::new(3);
    seen.admit(now, vec![key(1), key(2)], 100, HOUR);
    seen.admit(now, vec![key(3), key(4)], 100, HOUR);
    assert_eq!((seen.len(), seen.overflowed()), (2, 2));
    assert!(!seen.suppresses(&key(1), 100));
    assert!(seen.suppresses(&key(4), 100));
    seen.admit(now, (10..20).map(key).collect(), 100, HOUR);
    assert_eq!(seen.len(), 3);
    assert!(seen.suppresses(&key(19), 100) && !seen.suppresses(&key(16), 100));
}

#[derive(Debug, Clone)]
enum Step {
    Admit(Vec<u64>, i64),
    Remove(u64),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop::collection::vec(0u64..30, 0..8), 0i64..5)
            .prop_map(|(ids, by)| Step::Admit(ids, by)),
        4 => (0u64..30).prop_map(Step::Remove),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #[test]
    fn the_window_is_a_map_from_ids_to_their_newest_guard(
        steps in prop::collection::vec(step(), 0..60)
    ) {
        let now = crate::driver::now();
        let mut seen = Seen::new(1000);
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Admit(ids, by) => {
                    model.extend(ids.iter().map(|id| (*id, by)));
                    seen.admit(now, ids.into_iter().map(key).collect(), by, HOUR);
                }
                Step::Remove(id) => {
                    prop_assert_eq!(seen.remove(&key(id)), model.remove(&id).is_some());
                }
                Step::Clear => {
                    seen.clear();
                    model.clear();
                }
            }
            seen.check_invariants();
            for id in 0..30 {
                for published in 0..5 {
                    let expected = model.get(&id).is_some_and(|by| published <= *by);
                    prop_assert_eq!(seen.suppresses(&key(id), published), expected);
                }
            }
            let named: Vec<MessageKey> =
                seen.view(now).iter().flat_map(SeenView::iter).cloned().collect();
            prop_assert_eq!(named.len(), model.len());
        }
    }
}
