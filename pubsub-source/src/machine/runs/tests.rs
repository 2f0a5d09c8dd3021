use proptest::prelude::*;

use super::*;

const PATIENCE: Duration = Duration::from_secs(120);

/// One key, with what a machine would know of its messages.
struct Key {
    runs: Runs,
    key: KeyNo,
    now: Instant,
    /// When what arrives was sent at the earliest.
    sent: Instant,
    batch: u64,
}

impl Key {
    fn new() -> Self {
        Self::after(i64::MIN, Vec::new())
    }

    fn after(floor: i64, behind: Vec<Arc<str>>) -> Self {
        let mut runs = Runs::new(PATIENCE, floor, behind);
        let key = runs.key("k");
        let now = crate::driver::now();
        Self {
            runs,
            key,
            now,
            sent: now,
            batch: 0,
        }
    }

    /// A message arrives in a response of its own.
    fn arrive(&mut self, number: u64, known: Known) -> Fate {
        self.batch += 1;
        self.arrive_too(number, known)
    }

    /// A message arrives in the same response as the one before.
    fn arrive_too(&mut self, number: u64, known: Known) -> Fate {
        let message = MessageKey::Number(number);
        let published = i64::try_from(number).unwrap() / 10;
        let id = self.id(number);
        let fate = self.runs.arrive(
            self.now,
            self.sent,
            self.key,
            id,
            (published, &message),
            known,
        );
        if let Fate::HandOut { .. } = fate {
            self.runs.queue(self.key, id, (published, message));
        }
        self.runs.check_invariants();
        fate
    }

    fn id(&self, number: u64) -> DeliveryId {
        DeliveryId::new(self.batch, u16::try_from(number).unwrap())
    }

    /// Messages arrive one by one that nobody has seen, and are handed out.
    fn hand_out_new(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            assert_eq!(
                self.arrive(number, Known::Nothing),
                Fate::HandOut { turn: 0 }
            );
            self.runs.handle_out(self.key, self.id(number));
        }
    }
}

fn turn(fate: Fate) -> u32 {
    match fate {
        Fate::HandOut { turn } => turn,
        Fate::Suppress | Fate::Drop => panic!("{fate:?}"),
    }
}

#[test]
fn a_whole_redelivery_of_what_is_held_is_suppressed() {
    let mut key = Key::new();
    key.hand_out_new(0..5);
    for number in 1..5 {
        assert_eq!(key.arrive(number, Known::Held(0)), Fate::Suppress);
    }
    assert_eq!(key.arrive(5, Known::Nothing), Fate::HandOut { turn: 0 });
}

#[test]
fn behind_a_message_that_comes_again_everything_does() {
    let mut key = Key::new();
    key.hand_out_new(0..5);
    assert_eq!(key.arrive(1, Known::Held(0)), Fate::Suppress);
    assert_ne!(turn(key.arrive(2, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(3, Known::Held(0))), 0);
    assert_ne!(turn(key.arrive(4, Known::Seen)), 0);
    // Up to a message that nobody has seen.
    assert_eq!(key.arrive(5, Known::Nothing), Fate::HandOut { turn: 0 });
    assert_eq!(key.arrive(4, Known::Seen), Fate::Suppress);
}

#[test]
fn what_came_again_in_one_response_is_suppressed_when_it_comes_once_more() {
    let mut key = Key::new();
    key.hand_out_new(0..4);
    let first = turn(key.arrive(1, Known::Nothing));
    assert_eq!(turn(key.arrive_too(2, Known::Held(0))), first);
    assert_eq!(key.arrive(1, Known::Held(first)), Fate::Suppress);
    assert_eq!(key.arrive(2, Known::Held(first)), Fate::Suppress);
    assert_ne!(turn(key.arrive(3, Known::Held(0))), first);
}

#[test]
fn what_arrives_before_the_dropped_ones_come_again_would_leave_a_gap() {
    let mut key = Key::new();
    key.hand_out_new(0..3);
    key.arrive(3, Known::Nothing);
    let three = key.id(3);
    key.arrive(4, Known::Nothing);
    let four = key.id(4);
    assert_eq!(key.runs.cut(key.key, DeliveryId::new(0, 9)), [three, four]);
    assert_eq!(
        key.arrive(3, Known::Nothing),
        Fate::Drop,
        "did it come out?"
    );
    key.runs.handle_withdrawn(key.key, three);
    key.runs.handle_withdrawn(key.key, four);
    assert_eq!(key.arrive(5, Known::Nothing), Fate::Drop);
    assert_eq!(key.arrive(2, Known::Held(0)), Fate::Suppress);
    assert_eq!(key.arrive(3, Known::Nothing), Fate::HandOut { turn: 0 });
    assert_eq!(key.arrive(4, Known::Nothing), Fate::HandOut { turn: 0 });
}

#[test]
fn a_message_that_came_out_before_its_revocation_was_seen_is_not_waited_for() {
    let mut key = Key::new();
    key.arrive(0, Known::Nothing);
    let zero = key.id(0);
    key.arrive(1, Known::Nothing);
    let one = key.id(1);
    key.runs.cut(key.key, zero);
    key.runs.handle_out(key.key, zero);
    key.runs.handle_withdrawn(key.key, one);
    assert_eq!(key.arrive(2, Known::Nothing), Fate::Drop);
    assert_eq!(key.arrive(1, Known::Nothing), Fate::HandOut { turn: 0 });
}

#[test]
fn a_message_that_is_gone_does_not_hold_its_key_up_for_ever() {
    let mut key = Key::new();
    key.arrive(0, Known::Nothing);
    let zero = key.id(0);
    key.runs.cut(key.key, zero);
    key.runs.handle_withdrawn(key.key, zero);
    key.runs.handle_timeout(key.now);
    assert_eq!(key.arrive(1, Known::Nothing), Fate::Drop);
    key.now += PATIENCE;
    assert_eq!(
        key.arrive(1, Known::Nothing),
        Fate::Drop,
        "it may have waited unread since before"
    );
    key.sent = key.now;
    assert_eq!(key.arrive(1, Known::Nothing), Fate::HandOut { turn: 0 });
}

#[test]
fn a_message_that_was_given_back_starts_its_key_anew() {
    let mut key = Key::new();
    key.hand_out_new(0..3);
    key.arrive(3, Known::Nothing);
    let three = key.id(3);
    key.runs.release(key.key, &MessageKey::Number(1));
    key.runs.cut(key.key, DeliveryId::new(0, 9));
    key.runs.handle_withdrawn(key.key, three);
    assert_ne!(turn(key.arrive(1, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(2, Known::Held(0))), 0);
    assert_eq!(key.arrive(3, Known::Nothing), Fate::HandOut { turn: 0 });
}

#[test]
fn a_host_that_is_behind_is_named_and_gets_everything_again_after_a_restore() {
    let mut key = Key::new();
    key.hand_out_new(0..3);
    assert!(key.runs.behind().is_empty());
    key.arrive(1, Known::Nothing);
    assert!(key.runs.behind().is_empty(), "it is not out yet");
    key.runs.handle_out(key.key, key.id(1));
    let behind = key.runs.behind();
    assert_eq!(behind, ["k".into()]);
    let mut restored = Key::after(0, behind);
    assert_ne!(turn(restored.arrive(2, Known::Seen)), 0);

    let mut restored = Key::after(0, Vec::new());
    assert_eq!(restored.arrive(2, Known::Seen), Fate::Suppress);
}

#[test]
fn a_forgotten_key_takes_no_old_message_for_a_new_one() {
    let mut key = Key::new();
    key.hand_out_new(0..20);
    key.runs.sweep(&BTreeSet::new());
    key.key = key.runs.key("k");
    assert_ne!(turn(key.arrive(12, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(13, Known::Seen)), 0);
    assert_eq!(key.arrive(40, Known::Nothing), Fate::HandOut { turn: 0 });
}

#[test]
fn a_step_back_is_not_forgotten_without_a_trace() {
    let mut key = Key::new();
    key.hand_out_new(0..3);
    key.arrive(1, Known::Nothing);
    let one = key.id(1);
    key.runs.cut(key.key, one);
    key.runs.handle_withdrawn(key.key, one);
    key.runs.handle_timeout(key.now);
    key.now += PATIENCE;
    key.sent = key.now;
    key.arrive(1, Known::Nothing);
    key.runs.handle_withdrawn(key.key, key.id(1));
    key.runs.sweep(&BTreeSet::new());
    key.key = key.runs.key("k");
    assert_ne!(turn(key.arrive(2, Known::Seen)), 0);
}

proptest! {
    /// The service sends everything from some message on, again and again; of each message the
    /// machine knows that it is held, that a durable epoch names it, or nothing any more.
    #[test]
    fn what_comes_out_are_runs_without_a_gap(
        passes in prop::collection::vec((0u64..12, 1u64..8, any::<u16>(), any::<bool>()), 1..30)
    ) {
        let mut key = Key::new();
        let mut known: BTreeMap<u64, Known> = BTreeMap::new();
        let mut end = None;
        let (mut sent, mut at) = (0u64, 0u64);
        for (back, count, fates, apart) in passes {
            let first = at.saturating_sub(back);
            at = first + count;
            key.batch += 1;
            for number in first..first + count {
                let is = known.get(&number).copied().unwrap_or(Known::Nothing);
                let fate = if apart {
                    key.arrive(number, is)
                } else {
                    key.arrive_too(number, is)
                };
                if let Fate::HandOut { turn } = fate {
                    key.runs.handle_out(key.key, key.id(number));
                    prop_assert!(end.is_none_or(|end| number <= end + 1), "{number} after {end:?}");
                    end = Some(number);
                    known.insert(number, Known::Held(turn));
                }
                sent = sent.max(number + 1);
            }
            // Some are confirmed and forgotten, some confirmed late and remembered.
            for (number, fate) in (0..sent).rev().zip((0..8).map(|bit| fates >> (2 * bit) & 3)) {
                match fate {
                    0 => drop(known.remove(&number)),
                    1 if known.contains_key(&number) => drop(known.insert(number, Known::Seen)),
                    _ => {}
                }
            }
        }
    }
}
