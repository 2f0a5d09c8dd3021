mod gaps;
mod remembering;
mod revoking;

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
    /// When the messages were published, where clocks are apart.
    published: Vec<i64>,
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
            published: Vec::new(),
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
        let published = self.published.get(usize::try_from(number).unwrap());
        let published = published.map_or(i64::try_from(number).unwrap() / 10, |at| *at);
        let id = self.id(number);
        let fate = self.runs.arrive(
            self.now,
            self.sent,
            self.key,
            id,
            (published, &message),
            known,
        );
        if let Fate::HandOut(passage) = fate {
            self.runs.queue(self.key, id, (published, message), passage);
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
            assert_eq!(turn(self.arrive(number, Known::Nothing)), 0);
            self.runs.handle_out(self.key, self.id(number));
        }
    }
}

fn turn(fate: Fate) -> u32 {
    match fate {
        Fate::HandOut(passage) => passage.turn,
        Fate::Suppress | Fate::Drop { .. } => panic!("{fate:?}"),
    }
}

fn in_turn(turn: u32) -> Passage {
    Passage { turn, rank: 0 }
}

fn is_dropped(fate: Fate) -> bool {
    matches!(fate, Fate::Drop { .. })
}

#[test]
fn a_whole_redelivery_of_what_is_held_is_suppressed() {
    let mut key = Key::new();
    key.hand_out_new(0..5);
    for number in 1..5 {
        assert_eq!(key.arrive(number, Known::Held(in_turn(0))), Fate::Suppress);
    }
    assert_eq!(turn(key.arrive(5, Known::Nothing)), 0);
}

#[test]
fn behind_a_message_that_comes_again_everything_does() {
    let mut key = Key::new();
    key.hand_out_new(0..5);
    assert_eq!(key.arrive(1, Known::Held(in_turn(0))), Fate::Suppress);
    assert_ne!(turn(key.arrive(2, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(3, Known::Held(in_turn(0)))), 0);
    assert_ne!(turn(key.arrive(4, Known::Seen)), 0);
    // Up to a message that nobody has seen.
    assert_eq!(turn(key.arrive(5, Known::Nothing)), 0);
    assert_eq!(key.arrive(4, Known::Seen), Fate::Suppress);
}

#[test]
fn what_came_again_in_one_response_is_suppressed_when_it_comes_once_more() {
    let mut key = Key::new();
    key.hand_out_new(0..4);
    let first = turn(key.arrive(1, Known::Nothing));
    assert_eq!(turn(key.arrive_too(2, Known::Held(in_turn(0)))), first);
    assert_eq!(key.arrive(1, Known::Held(in_turn(first))), Fate::Suppress);
    assert_eq!(key.arrive(2, Known::Held(in_turn(first))), Fate::Suppress);
    assert_ne!(turn(key.arrive(3, Known::Held(in_turn(0)))), first);
}

#[test]
fn a_message_that_was_given_back_starts_its_key_anew() {
    let mut key = Key::new();
    key.hand_out_new(0..3);
    key.arrive(3, Known::Nothing);
    let three = key.id(3);
    key.runs
        .release(key.key, &MessageKey::Number(1), in_turn(0));
    key.runs.cut(key.key, DeliveryId::new(0, 9));
    key.runs.handle_withdrawn(key.key, three);
    assert_ne!(turn(key.arrive(1, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(2, Known::Held(in_turn(0)))), 0);
    assert_eq!(turn(key.arrive(3, Known::Nothing)), 0);
}

/// The host has 0 to 5 and then 1 once more; 2 was let through once more, and dropped.
fn stepped_back(give_back: impl FnOnce(&mut Key, u32)) -> Key {
    let mut key = Key::new();
    key.hand_out_new(0..6);
    let back = turn(key.arrive(1, Known::Nothing));
    key.runs.handle_out(key.key, key.id(1));
    assert_ne!(turn(key.arrive(2, Known::Seen)), 0);
    let two = key.id(2);
    give_back(&mut key, back);
    key.runs.cut(key.key, DeliveryId::new(0, 9));
    key.runs.handle_withdrawn(key.key, two);
    key
}

#[test]
fn what_was_given_back_does_not_come_next_while_the_host_is_behind_it() {
    let mut key = stepped_back(|key, _| {
        key.runs
            .release(key.key, &MessageKey::Number(4), in_turn(0));
    });
    assert!(
        is_dropped(key.arrive(4, Known::Nothing)),
        "2 and 3 are missing"
    );
    assert_ne!(turn(key.arrive(2, Known::Seen)), 0);
    assert_ne!(turn(key.arrive(3, Known::Seen)), 0);
    assert_ne!(turn(key.arrive(4, Known::Nothing)), 0);
}

#[test]
fn a_step_back_takes_precedence_over_what_was_given_back_before() {
    let mut key = Key::new();
    key.hand_out_new(0..6);
    key.runs
        .release(key.key, &MessageKey::Number(4), in_turn(0));
    assert_ne!(turn(key.arrive(1, Known::Nothing)), 0);
    key.runs.handle_out(key.key, key.id(1));
    assert_ne!(turn(key.arrive(2, Known::Seen)), 0);
    let two = key.id(2);
    key.runs.cut(key.key, two);
    key.runs.handle_withdrawn(key.key, two);
    assert!(
        is_dropped(key.arrive(4, Known::Nothing)),
        "2 and 3 are missing"
    );
    assert_ne!(turn(key.arrive(2, Known::Seen)), 0);
}

#[test]
fn what_was_handed_out_last_may_be_given_back_after_a_step_back_too() {
    let mut key = stepped_back(|key, back| {
        key.runs
            .release(key.key, &MessageKey::Number(1), in_turn(back));
    });
    assert_ne!(turn(key.arrive(1, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(2, Known::Seen)), 0);
}

#[test]
fn what_came_out_before_what_was_dropped_is_passed_over_in_whichever_turn_it_did() {
    let mut key = Key::new();
    let hand_out = |key: &mut Key, number| {
        let Fate::HandOut(passage) = key.arrive(number, Known::Nothing) else {
            panic!("{number} is kept");
        };
        key.runs.handle_out(key.key, key.id(number));
        passage
    };
    let first: Vec<Passage> = (0..6).map(|number| hand_out(&mut key, number)).collect();
    key.runs.release(key.key, &MessageKey::Number(1), first[1]);
    let again = hand_out(&mut key, 1);
    assert_eq!(again.rank, first[1].rank);
    assert_ne!(turn(key.arrive(2, Known::Held(first[2]))), again.turn);
    let two = key.id(2);
    key.runs.cut(key.key, two);
    key.runs.handle_withdrawn(key.key, two);
    assert_eq!(key.arrive(1, Known::Held(again)), Fate::Suppress);
    assert!(is_dropped(key.arrive(3, Known::Held(first[3]))));
    assert_ne!(turn(key.arrive(2, Known::Nothing)), 0);
}

#[test]
fn a_host_that_is_behind_is_named_and_gets_everything_again_after_a_restore() {
    let mut key = Key::new();
    key.hand_out_new(0..3);
    assert!(key.runs.behind().is_empty() && !key.runs.is_behind());
    key.arrive(1, Known::Nothing);
    assert!(key.runs.behind().is_empty(), "it is not out yet");
    key.runs.handle_out(key.key, key.id(1));
    let behind = key.runs.behind();
    assert_eq!(behind, ["k".into()]);
    assert!(key.runs.is_behind());
    let mut restored = Key::after(0, behind);
    assert_ne!(turn(restored.arrive(2, Known::Seen)), 0);

    let mut restored = Key::after(0, Vec::new());
    assert_eq!(restored.arrive(2, Known::Seen), Fate::Suppress);
}

#[test]
fn a_forgotten_key_takes_no_old_message_for_a_new_one() {
    let mut key = Key::new();
    key.hand_out_new(0..20);
    key.runs.sweep(key.now, &BTreeSet::new());
    key.key = key.runs.key("k");
    assert_ne!(turn(key.arrive(12, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(13, Known::Seen)), 0);
    assert_eq!(turn(key.arrive(40, Known::Nothing)), 0);
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
    key.runs.sweep(key.now, &BTreeSet::new());
    key.key = key.runs.key("k");
    assert_ne!(turn(key.arrive(2, Known::Seen)), 0);
}

proptest! {
    /// The service sends everything from some message on, again and again; of each message the
    /// machine knows that it is held, that a durable epoch names it, or nothing any more. The
    /// clocks of those who stamp them need not agree.
    #[test]
    fn what_comes_out_are_runs_without_a_gap(
        published in prop::collection::vec(0i64..20, 0..40),
        passes in prop::collection::vec((0u64..12, 1u64..8, any::<u16>(), any::<bool>()), 1..30)
    ) {
        let mut key = Key::new();
        key.published = published;
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
                if let Fate::HandOut(passage) = fate {
                    key.runs.handle_out(key.key, key.id(number));
                    prop_assert!(end.is_none_or(|end| number <= end + 1), "{number} after {end:?}");
                    end = Some(number);
                    known.insert(number, Known::Held(passage));
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
