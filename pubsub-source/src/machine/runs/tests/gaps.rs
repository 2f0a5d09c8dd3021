//! What was dropped, and what comes next then.

use super::*;

/// What lies between two deliveries of a message that nobody extends.
const LEASE: Duration = Duration::from_secs(20);

impl Key {
    /// Time passes, and what arrives from now on was sent after it.
    pub(super) fn wait(&mut self, time: Duration) {
        self.now += time;
        self.sent = self.now;
        self.runs.handle_timeout(self.now);
    }

    /// Messages arrive that nobody has seen, and are dropped since the lease of what the host has
    /// is over.
    pub(super) fn drop_new(&mut self, numbers: std::ops::Range<u64>) {
        let mut waiting = Vec::new();
        for number in numbers {
            self.arrive(number, Known::Nothing);
            waiting.push(self.id(number));
        }
        assert_eq!(self.runs.cut(self.key, DeliveryId::new(0, 99)), waiting);
        for id in waiting {
            self.runs.handle_withdrawn(self.key, id);
        }
        self.runs.handle_timeout(self.now);
    }
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
    assert!(
        is_dropped(key.arrive(3, Known::Nothing)),
        "did it come out?"
    );
    key.runs.handle_withdrawn(key.key, three);
    key.runs.handle_withdrawn(key.key, four);
    assert!(is_dropped(key.arrive(5, Known::Nothing)));
    assert_eq!(key.arrive(2, Known::Held(in_turn(0))), Fate::Suppress);
    assert_eq!(turn(key.arrive(3, Known::Nothing)), 0);
    assert_eq!(turn(key.arrive(4, Known::Nothing)), 0);
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
    assert!(is_dropped(key.arrive(2, Known::Nothing)));
    assert_eq!(turn(key.arrive(1, Known::Nothing)), 0);
}

#[test]
fn a_message_that_is_gone_does_not_hold_its_key_up_for_ever() {
    let mut key = Key::new();
    key.arrive(0, Known::Nothing);
    let zero = key.id(0);
    key.runs.cut(key.key, zero);
    key.runs.handle_withdrawn(key.key, zero);
    key.runs.handle_timeout(key.now);
    assert!(is_dropped(key.arrive(1, Known::Nothing)));
    key.now += PATIENCE;
    assert!(
        is_dropped(key.arrive(1, Known::Nothing)),
        "it may have waited unread since before"
    );
    key.sent = key.now;
    assert_eq!(turn(key.arrive(1, Known::Nothing)), 0);
}

#[test]
fn what_comes_again_and_again_behind_a_message_that_is_gone_goes_on() {
    let mut key = Key::new();
    key.hand_out_new(0..2);
    key.drop_new(2..5);
    for _ in 0..5 {
        key.wait(LEASE);
        assert!(is_dropped(key.arrive(3, Known::Nothing)));
        assert!(is_dropped(key.arrive(4, Known::Nothing)));
    }
    key.wait(LEASE);
    assert_eq!(turn(key.arrive(3, Known::Nothing)), 0);
    assert_eq!(turn(key.arrive(4, Known::Nothing)), 0);
}

#[test]
fn each_message_that_is_gone_is_awaited_by_itself() {
    let mut key = Key::new();
    key.hand_out_new(0..2);
    key.drop_new(2..5);
    key.wait(PATIENCE / 2);
    assert!(is_dropped(key.arrive(3, Known::Nothing)));
    key.wait(PATIENCE / 2);
    assert!(
        is_dropped(key.arrive(4, Known::Nothing)),
        "3 was sent again"
    );
    key.wait(PATIENCE);
    assert_eq!(turn(key.arrive(4, Known::Nothing)), 0);
}

#[test]
fn what_is_dropped_may_be_held_back_for_as_long_as_it_would_be_dropped() {
    let mut key = Key::new();
    key.hand_out_new(0..2);
    key.drop_new(2..3);
    key.wait(PATIENCE / 3);
    let wait = PATIENCE * 2 / 3;
    assert_eq!(key.arrive(3, Known::Nothing), Fate::Drop { wait });
    assert_eq!(key.arrive(4, Known::Nothing), Fate::Drop { wait });
    // A request that holds 3 back was late: 4 comes first.
    key.wait(wait);
    assert!(is_dropped(key.arrive(4, Known::Nothing)));
    assert_eq!(turn(key.arrive(3, Known::Nothing)), 0);
}

#[test]
fn a_message_of_long_ago_does_not_show_that_another_is_gone() {
    let mut key = Key::new();
    key.hand_out_new(0..8);
    key.arrive(2, Known::Nothing);
    key.runs.handle_out(key.key, key.id(2));
    key.drop_new(3..4);
    assert!(is_dropped(key.arrive(5, Known::Nothing)));
    // Nothing was read for a long time, and the service begins anew before what is awaited.
    key.wait(PATIENCE * 3 / 2);
    assert!(
        is_dropped(key.arrive(1, Known::Nothing)),
        "before 3 or behind 5?"
    );
    assert_ne!(turn(key.arrive(3, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(5, Known::Nothing)), 0);
}

#[test]
fn what_the_host_has_comes_again_behind_a_step_back_whose_next_message_is_gone() {
    let mut key = Key::new();
    key.hand_out_new(0..8);
    let back = turn(key.arrive(2, Known::Nothing));
    key.runs.handle_out(key.key, key.id(2));
    assert_eq!(turn(key.arrive_too(3, Known::Held(in_turn(0)))), back);
    let three = key.id(3);
    key.runs.cut(key.key, three);
    key.runs.handle_withdrawn(key.key, three);
    key.runs.handle_timeout(key.now);
    assert_eq!(key.arrive(2, Known::Held(in_turn(back))), Fate::Suppress);
    // 3 is gone.
    key.wait(LEASE);
    assert!(
        is_dropped(key.arrive(4, Known::Held(in_turn(0)))),
        "before 3, or behind it?"
    );
    key.wait(PATIENCE);
    assert_ne!(turn(key.arrive(4, Known::Nothing)), 0);
    assert_ne!(turn(key.arrive(5, Known::Held(in_turn(0)))), 0);
}

#[test]
fn what_waits_before_what_was_dropped_keeps_its_place() {
    let mut key = Key::new();
    key.hand_out_new(0..8);
    let back = turn(key.arrive(2, Known::Nothing));
    assert_ne!(turn(key.arrive(3, Known::Held(in_turn(0)))), back);
    let three = key.id(3);
    assert_eq!(key.runs.cut(key.key, three), [three]);
    key.runs.handle_withdrawn(key.key, three);
    assert_eq!(key.arrive(2, Known::Waits(in_turn(back))), Fate::Suppress);
    assert_ne!(turn(key.arrive(3, Known::Nothing)), 0);
}

#[test]
fn a_key_is_forgotten_once_all_that_was_dropped_is_gone() {
    let mut key = Key::new();
    key.hand_out_new(0..2);
    key.drop_new(2..3);
    key.wait(PATIENCE);
    key.runs.sweep(key.now, &BTreeSet::new());
    assert_eq!(key.runs.runs.len(), 1, "something may wait unread");
    key.wait(PATIENCE);
    key.runs.sweep(key.now, &BTreeSet::new());
    assert_eq!(key.runs.runs.len(), 0);
}

/// What the service and a host do with one key.
#[derive(Debug, Clone)]
enum Step {
    /// The service goes so far back and sends so many.
    Send(u64, u64),
    /// So many come out.
    HandOut(usize),
    /// So many of what waits are dropped, the last first.
    Drop(usize),
    /// One of what was sent is gone for good.
    Lose(u64),
    /// A lease is over, or several.
    Wait(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..6, 1u64..6).prop_map(|(back, count)| Step::Send(back, count)),
        4 => (1usize..6).prop_map(Step::HandOut),
        2 => (1usize..6).prop_map(Step::Drop),
        1 => (0u64..6).prop_map(Step::Lose),
        2 => (1u32..8).prop_map(Step::Wait),
    ]
}

/// One key of a service that leaves nothing out, and of its only subscriber.
struct Model {
    key: Key,
    known: BTreeMap<u64, Known>,
    waiting: VecDeque<(u64, DeliveryId)>,
    /// Dropped, and when.
    dropped: BTreeMap<u64, Instant>,
    gone: BTreeSet<u64>,
    /// What the service sends next.
    next: u64,
    /// What came out last.
    end: Option<u64>,
}

impl Model {
    fn send(&mut self, count: u64) {
        // What was dropped comes again when its lease is over.
        let lapsed = |(number, at): (&u64, &Instant)| {
            (self.key.now >= *at + PATIENCE / 2).then_some(*number)
        };
        let first = self.dropped.iter().find_map(lapsed);
        self.next = first.map_or(self.next, |first| first.min(self.next));
        for _ in 0..count {
            let number = self.next;
            self.next += 1;
            if self.gone.contains(&number) {
                continue;
            }
            self.dropped.remove(&number);
            let known = self.known.get(&number).copied();
            match self.key.arrive(number, known.unwrap_or(Known::Nothing)) {
                Fate::HandOut(passage) => {
                    self.known.insert(number, Known::Waits(passage));
                    self.waiting.push_back((number, self.key.id(number)));
                }
                Fate::Suppress => assert!(known.is_some(), "{number} is nowhere"),
                Fate::Drop { .. } => {
                    self.known.remove(&number);
                    self.dropped.insert(number, self.key.now);
                }
            }
        }
    }

    fn hand_out(&mut self, count: usize) {
        for _ in 0..count.min(self.waiting.len()) {
            let Some((number, id)) = self.waiting.pop_front() else {
                return;
            };
            self.key.runs.handle_out(self.key.key, id);
            let before = self.end.replace(number);
            for missing in before.map_or(0, |before| before + 1)..number {
                assert!(
                    self.gone.contains(&missing),
                    "{missing} is missing before {number}"
                );
            }
            let waits = self.waiting.iter().any(|(other, _)| *other == number);
            if !waits && let Some(Known::Waits(passage)) = self.known.get(&number).copied() {
                self.known.insert(number, Known::Held(passage));
            }
        }
    }

    fn drop_last(&mut self, count: usize) {
        let Some((_, first)) = self.waiting.iter().nth_back(count.saturating_sub(1)) else {
            return;
        };
        let revoked = self.key.runs.cut(self.key.key, *first);
        self.waiting.retain(|(number, id)| {
            let drops = revoked.contains(id);
            if drops {
                self.known.remove(number);
                if !self.gone.contains(number) {
                    self.dropped.insert(*number, self.key.now);
                }
            }
            !drops
        });
        for id in revoked {
            self.key.runs.handle_withdrawn(self.key.key, id);
        }
        self.key.runs.check_invariants();
    }
}

/// Lets a service and a host take these steps, and then the service deliver what nobody has until
/// nothing is left. Answers what was never handed out.
fn follow(published: Vec<i64>, steps: Vec<Step>) -> Vec<u64> {
    let mut model = Model {
        key: Key::new(),
        known: BTreeMap::new(),
        waiting: VecDeque::new(),
        dropped: BTreeMap::new(),
        gone: BTreeSet::new(),
        next: 0,
        end: None,
    };
    model.key.published = published;
    let mut sent = 0;
    for step in steps {
        match step {
            Step::Send(back, count) => {
                model.next = model.next.saturating_sub(back);
                model.send(count);
                sent = sent.max(model.next);
            }
            Step::HandOut(count) => model.hand_out(count),
            Step::Drop(count) => model.drop_last(count),
            Step::Lose(back) => {
                let number = sent.saturating_sub(back);
                model.dropped.remove(&number);
                model.gone.insert(number);
            }
            Step::Wait(leases) => model.key.wait(LEASE * leases),
        }
    }
    for _ in 0..200 {
        model.hand_out(usize::MAX);
        model.key.wait(PATIENCE / 2);
        let first = model.dropped.keys().next().copied();
        model.next = model.next.min(first.unwrap_or(model.next));
        model.send(sent.saturating_sub(model.next));
    }
    model.hand_out(usize::MAX);
    model.dropped.into_keys().collect()
}

proptest! {
    /// Whatever is dropped or gone, and whatever the clocks say that stamp messages.
    #[test]
    fn no_message_is_overtaken_and_each_comes_out_in_the_end(
        published in prop::collection::vec(0i64..20, 0..40),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        prop_assert_eq!(follow(published, steps), [0u64; 0]);
    }
}

/// What was dropped had been let through in several passes.
#[test]
fn the_order_of_what_is_dropped_holds_over_steps_back() {
    use Step::{Drop, HandOut, Lose, Send, Wait};
    for (published, steps) in [
        (
            vec![1],
            vec![
                Send(0, 1),
                Send(0, 2),
                Send(3, 3),
                Drop(2),
                Send(1, 1),
                Wait(6),
                Send(0, 1),
                Send(0, 1),
            ],
        ),
        (
            vec![0, 0, 0, 3, 0],
            vec![
                Send(0, 5),
                HandOut(3),
                Send(5, 3),
                HandOut(3),
                Send(3, 4),
                HandOut(1),
                Drop(3),
                Lose(4),
            ],
        ),
    ] {
        assert_eq!(follow(published, steps), [0u64; 0]);
    }
}
