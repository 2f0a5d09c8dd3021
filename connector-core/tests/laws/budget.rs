//! Budgets: sums, fairness, and nobody forgotten.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use connector_core::{Budget, Limits, Member};
use proptest::prelude::*;

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    fn rang(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct Client {
    member: Member,
    bell: Arc<Bell>,
    /// Admitted, and nothing charged since.
    promised: bool,
    /// Rings heard when it last polled and was told to wait.
    waits_since: Option<usize>,
    held: Vec<usize>,
}

impl Client {
    fn join(budget: &Budget, name: &str) -> Self {
        Self {
            member: budget.join(name),
            bell: Arc::default(),
            promised: false,
            waits_since: None,
            held: Vec::new(),
        }
    }

    fn poll(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.bell));
        let ready = self.member.poll_admit(&mut Context::from_waker(&waker)) == Poll::Ready(());
        self.waits_since = (!ready).then(|| self.bell.rang());
        ready
    }

    fn charge(&mut self, bytes: usize) {
        self.member.charge(Limits::new(1, bytes));
        self.held.push(bytes);
        self.promised = false;
    }

    fn waits_unheard(&self) -> bool {
        self.waits_since
            .is_some_and(|rang| rang == self.bell.rang())
    }

    fn sum(&self) -> Limits {
        Limits::new(self.held.len(), self.held.iter().sum())
    }
}

#[derive(Debug, Clone)]
enum Op {
    /// Asks, takes an item of that size when admitted, and otherwise waits.
    Take(usize, usize),
    /// Asks without waiting.
    TryTake(usize, usize),
    Release(usize, usize),
    GiveUp(usize),
    /// Asks and, admitted or not, is not heard of for a while.
    Ask(usize),
}

const MEMBERS: usize = 3;

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (0..MEMBERS, 0usize..40).prop_map(|(who, bytes)| Op::Take(who, bytes)),
        2 => (0..MEMBERS, 0usize..40).prop_map(|(who, bytes)| Op::TryTake(who, bytes)),
        4 => (0..MEMBERS, any::<usize>()).prop_map(|(who, which)| Op::Release(who, which)),
        1 => (0..MEMBERS).prop_map(Op::GiveUp),
        1 => (0..MEMBERS).prop_map(Op::Ask),
    ];
    prop::collection::vec(op, 1..100)
}

fn limits() -> impl Strategy<Value = Limits> {
    (0usize..14, prop_oneof![Just(usize::MAX), 0usize..300])
        .prop_map(|(items, bytes)| Limits::new(items, bytes))
}

/// Whether a member may take an item whatever the others hold.
fn is_entitled(client: &Client, limits: Limits) -> bool {
    let reserve = Limits::new(limits.items / (2 * MEMBERS), limits.bytes / (2 * MEMBERS));
    client.sum() == Limits::default() || reserve.admits(client.sum())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_budget_is_the_sum_of_its_members_and_forgets_nobody(limits in limits(), ops in ops()) {
        let budget = Budget::new(limits);
        let mut clients: Vec<Client> = ["a", "b", "c"]
            .into_iter()
            .map(|name| Client::join(&budget, name))
            .collect();
        // Those who wait and were not woken, in the order in which they began to.
        let mut line: Vec<usize> = Vec::new();
        for op in ops {
            // Who asks, whether it waits when it may not, and what it takes when it may.
            let asked = match op {
                Op::Take(who, bytes) => Some((who, clients[who].poll(), Some(bytes))),
                Op::TryTake(who, bytes) => {
                    Some((who, clients[who].member.try_admit(), Some(bytes)))
                }
                Op::Ask(who) => Some((who, clients[who].poll(), None)),
                Op::Release(who, which) => {
                    if !clients[who].held.is_empty() {
                        let at = which % clients[who].held.len();
                        let bytes = clients[who].held.swap_remove(at);
                        clients[who].member.release(Limits::new(1, bytes));
                    }
                    None
                }
                Op::GiveUp(who) => {
                    clients[who].member.give_up();
                    clients[who].waits_since = None;
                    clients[who].promised = false;
                    None
                }
            };
            for client in &mut clients {
                client.promised |= client.waits_since.is_some() && !client.waits_unheard();
            }
            line.retain(|who| clients[*who].waits_unheard());
            if let Some((who, admitted, bytes)) = asked {
                prop_assert!(
                    admitted || !is_entitled(&clients[who], limits),
                    "{who} is entitled to an item and was refused"
                );
                let asks_anew = !clients[who].promised && !is_entitled(&clients[who], limits);
                let first = line.first().is_none_or(|first| *first == who);
                prop_assert!(
                    !(admitted && asks_anew) || first,
                    "{who} overtook {line:?}"
                );
                clients[who].promised |= admitted;
                if admitted {
                    clients[who].waits_since = None;
                    line.retain(|waiting| *waiting != who);
                    if let Some(bytes) = bytes {
                        clients[who].charge(bytes);
                    }
                } else if clients[who].waits_unheard() && !line.contains(&who) {
                    line.push(who);
                }
            }

            let sum = clients.iter().fold(Limits::default(), |sum, client| {
                Limits::new(sum.items + client.sum().items, sum.bytes + client.sum().bytes)
            });
            prop_assert_eq!(budget.held(), sum, "the budget is the sum of what is held");
            let reserve = limits.items / (2 * MEMBERS);
            let most = if reserve > 0 { limits.items } else { limits.items + MEMBERS };
            prop_assert!(sum.items <= most, "{} items of {}", sum.items, most);
            for (holder, client) in budget.holders().iter().zip(&clients) {
                prop_assert_eq!(holder.held, client.sum());
                prop_assert_eq!(client.member.held(), client.sum());
                prop_assert_eq!(holder.waiting, client.waits_unheard(), "{}", holder.name);
            }
        }

        // Nobody who waits and was not told could have gone on: asking again changes nothing.
        for who in &line {
            prop_assert!(!clients[*who].member.try_admit(), "{who} was never woken");
        }
        // Everything given back: nobody waits, and nothing is held.
        for client in &mut clients {
            for bytes in std::mem::take(&mut client.held) {
                client.member.release(Limits::new(1, bytes));
            }
        }
        prop_assert_eq!(budget.held(), Limits::default());
        for client in &clients {
            prop_assert!(!client.waits_unheard(), "an empty budget lets nobody wait");
        }
    }
}

#[test]
fn who_waits_is_not_overtaken_by_who_asks_more_often() {
    let budget = Budget::new(Limits::items(8));
    let (mut patient, mut greedy) = (
        Client::join(&budget, "patient"),
        Client::join(&budget, "greedy"),
    );
    for client in [&mut patient, &mut greedy] {
        for _ in 0..4 {
            assert!(client.poll());
            client.charge(1);
        }
    }
    assert!(!patient.poll());
    // In one turn of the executor: the greedy one gives back and takes again, over and over.
    greedy.held.pop();
    greedy.member.release(Limits::new(1, 1));
    assert_eq!(patient.bell.rang(), 1, "the room is the patient one's");
    for _ in 0..10 {
        assert!(!greedy.member.try_admit(), "and stays so until it is taken");
    }
    assert!(patient.poll());
    patient.charge(1);
    assert_eq!(budget.held().items, 8);
}

#[test]
fn a_member_that_was_handed_room_and_stands_still_keeps_one_item_from_the_others() {
    let budget = Budget::new(Limits::items(8));
    let (mut still, mut busy) = (
        Client::join(&budget, "still"),
        Client::join(&budget, "busy"),
    );
    for _ in 0..4 {
        assert!(busy.poll() && still.poll());
        busy.charge(1);
        still.charge(1);
    }
    assert!(!still.poll());
    for _ in 0..2 {
        busy.held.pop();
        busy.member.release(Limits::new(1, 1));
    }
    assert_eq!(still.bell.rang(), 1);
    assert!(busy.member.try_admit(), "the second item is free");
    busy.charge(1);
    assert!(!busy.poll(), "the first is promised");
    still.member.give_up();
    assert_eq!(busy.bell.rang(), 1, "and goes on when it is given up");
}

#[test]
fn a_lone_member_is_admitted_whatever_the_limit() {
    let budget = Budget::new(Limits::new(0, 0));
    let mut lone = Client::join(&budget, "lone");
    for _ in 0..3 {
        assert!(lone.poll());
        lone.charge(usize::MAX / 2);
        assert!(!lone.poll(), "one at a time");
        let bytes = lone.held.pop().unwrap();
        lone.member.release(Limits::new(1, bytes));
        assert!(!lone.waits_unheard());
    }
}

#[test]
fn a_charge_admits_the_next_item_of_a_lone_member_as_far_as_the_limit_goes() {
    let budget = Budget::new(Limits::new(3, 100));
    let lone = Client::join(&budget, "lone");
    let charges = [10, 10, 10].map(|bytes| lone.member.charge_and_admit(Limits::new(1, bytes)));
    assert_eq!(charges, [true, true, false], "three items");
    assert_eq!(budget.held(), Limits::new(3, 30));
    lone.member.release(Limits::new(2, 20));
    assert!(
        !lone.member.charge_and_admit(Limits::new(1, 90)),
        "100 bytes"
    );
    lone.member.release(Limits::new(2, 100));
    assert!(lone.member.try_admit());
}

#[test]
fn a_charge_admits_nothing_where_others_would_be_kept_out() {
    let budget = Budget::new(Limits::items(8));
    let busy = Client::join(&budget, "busy");
    let mut other = Client::join(&budget, "other");
    for _ in 0..6 {
        assert!(!busy.member.charge_and_admit(Limits::new(1, 1)));
    }
    // Six are held; an admission that nobody asked for would be the seventh.
    for _ in 0..2 {
        assert!(other.poll(), "the rest is the other's");
        other.charge(1);
    }
    assert!(!busy.member.try_admit());
}

#[test]
fn who_waits_is_remembered_through_releases_that_make_no_room_for_it() {
    let budget = Budget::new(Limits::items(0));
    let (mut waits, mut other) = (
        Client::join(&budget, "waits"),
        Client::join(&budget, "other"),
    );
    assert!(waits.poll());
    waits.charge(1);
    assert!(!waits.poll());
    for _ in 0..2 {
        assert!(other.poll());
        other.charge(1);
        other.held.pop();
        other.member.release(Limits::new(1, 1));
        assert_eq!(
            waits.bell.rang(),
            0,
            "a limit of nothing has room for the first only"
        );
    }
    waits.held.pop();
    waits.member.release(Limits::new(1, 1));
    assert_eq!(waits.bell.rang(), 1);
}

#[test]
fn a_member_that_goes_gives_everything_back() {
    let budget = Budget::new(Limits::items(4));
    let mut goes = Client::join(&budget, "goes");
    for _ in 0..4 {
        assert!(goes.poll());
        goes.charge(10);
    }
    let mut stays = Client::join(&budget, "stays");
    assert!(stays.poll(), "who holds nothing is admitted");
    stays.charge(1);
    assert!(!stays.poll());
    drop(goes);
    assert_eq!(stays.bell.rang(), 1);
    assert_eq!(budget.held(), Limits::new(1, 1));
    assert_eq!(budget.holders().len(), 1);
}
