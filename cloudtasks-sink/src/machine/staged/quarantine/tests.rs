//! What is kept aside, beside a plain list of it.

use std::time::SystemTime;

use connector_core::ledger::Ledger;
use gcp_wire::proto::tasks::Task;
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::naming::Named;
use crate::state::{KeptReason, StagedTask};

const LIMIT: Duration = Duration::from_secs(600);

/// A task of this name, told apart from others by a number.
fn task(name: &str, number: u64) -> KeptTask {
    let task = Task {
        name: name.to_owned(),
        ..Task::default()
    };
    KeptTask {
        task: StagedTask {
            queue: "projects/demo/locations/l/queues/q".parse().unwrap(),
            task: task.encode_to_vec().into(),
            named: Named::ByKey,
            since: SystemTime::UNIX_EPOCH,
            released: true,
        },
        why: KeptReason::Refused,
        cause: Some(number.to_string()),
    }
}

fn numbers(quarantine: &Quarantine) -> Vec<String> {
    let causes = quarantine.tasks().map(KeptTask::cause);
    causes.map(|cause| cause.unwrap().to_owned()).collect()
}

/// One task of the list, kept aside or sent again since.
#[derive(Debug, Clone)]
struct Line {
    name: String,
    number: u64,
    is_kept: bool,
    place: Option<Place>,
    unsaved: Option<Epoch>,
    named_by: Option<Epoch>,
    since: Instant,
}

impl Line {
    const fn owes(&self) -> bool {
        self.place.is_some() || self.unsaved.is_some()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push { name: u8, owed: bool },
    Seal,
    Abort,
    Commit,
    Pass { seconds: u64 },
    Dismiss { name: u8 },
    SendAgain { name: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..3, any::<bool>()).prop_map(|(name, owed)| Step::Push { name, owed }),
        2 => Just(Step::Seal),
        1 => Just(Step::Abort),
        2 => Just(Step::Commit),
        2 => (0u64..900).prop_map(|seconds| Step::Pass { seconds }),
        1 => (0u8..3).prop_map(|name| Step::Dismiss { name }),
        2 => (0u8..3).prop_map(|name| Step::SendAgain { name }),
    ]
}

proptest! {
    #[test]
    fn it_is_what_a_plain_list_would_be(steps in proptest::collection::vec(step(), 1..60)) {
        let mut now = crate::driver::clock::now();
        let mut ledger = Ledger::new();
        let mut quarantine = Quarantine::new(Limits::items(100));
        let mut list: Vec<Line> = Vec::new();
        let (mut epoch, mut sealed) = (Epoch::default(), Vec::new());
        for (number, step) in (0..).zip(steps) {
            match step {
                Step::Push { name, owed } => {
                    let name = format!("task-{name}");
                    let place = owed.then(|| ledger.add(number));
                    quarantine.push(now, task(&name, number), place);
                    let (is_kept, unsaved, named_by, since) = (true, None, None, now);
                    list.push(Line { name, number, is_kept, place, unsaved, named_by, since });
                }
                Step::Seal => {
                    epoch = epoch.next();
                    sealed.push(epoch);
                    quarantine.name(epoch);
                    list.iter_mut().for_each(|line| { line.named_by.get_or_insert(epoch); });
                }
                Step::Abort => {
                    let Some(aborted) = sealed.pop() else { continue };
                    quarantine.unname(aborted);
                    let named = list.iter_mut().filter(|line| line.named_by == Some(aborted));
                    named.for_each(|line| line.named_by = None);
                }
                Step::Commit => {
                    let Some(durable) = sealed.last().copied() else { continue };
                    let named = list.iter_mut().filter(|line| line.named_by.is_some_and(|by| by <= durable));
                    let mut places = Vec::new();
                    for line in named {
                        line.unsaved = None;
                        places.extend(line.place.take());
                    }
                    prop_assert_eq!(quarantine.durable(durable), places);
                    sealed.clear();
                }
                Step::Pass { seconds } => {
                    now += Duration::from_secs(seconds);
                    let late = list.iter_mut().filter(|line| now - line.since >= LIMIT);
                    let mut expected = Vec::new();
                    for line in late {
                        if let Some(place) = line.place.take() {
                            line.unsaved = Some(epoch);
                            expected.push(place);
                        }
                    }
                    let mut settled = Vec::new();
                    let any = quarantine.give_up(now, LIMIT, |place| {
                        settled.push(place);
                        epoch
                    });
                    prop_assert_eq!(any, !expected.is_empty());
                    prop_assert_eq!(settled, expected);
                }
                Step::Dismiss { name } | Step::SendAgain { name } => {
                    let name = format!("task-{name}");
                    let is_over = matches!(step, Step::Dismiss { .. });
                    let taken = if is_over {
                        quarantine.dismiss(&name)
                    } else {
                        quarantine.send_again(&name)
                    };
                    let at = list.iter().position(|line| line.is_kept && line.name == name);
                    let expected = at.map(|at| {
                        let line = &mut list[at];
                        line.is_kept = false;
                        if is_over {
                            line.unsaved = None;
                        }
                        (line.number.to_string(), line.place.take())
                    });
                    let taken = taken.map(|(task, place)| (task.cause().unwrap().to_owned(), place));
                    prop_assert_eq!(taken, expected);
                }
            }
            quarantine.check_invariants();
            let kept = list.iter().filter(|line| line.is_kept).map(|line| line.number.to_string());
            prop_assert_eq!(numbers(&quarantine), kept.collect::<Vec<_>>());
            let unnamed = list.iter().any(|line| line.owes() && line.named_by.is_none());
            prop_assert_eq!(quarantine.wants_checkpoint(), unnamed);
            let waiting = list.iter().filter(|line| line.place.is_some());
            prop_assert_eq!(quarantine.verdicts(), waiting.clone().count());
            let oldest = waiting.map(|line| line.since + LIMIT).min();
            prop_assert_eq!(quarantine.deadline(LIMIT), oldest);
            let unsaved = list.iter().filter_map(|line| line.unsaved);
            let newest = unsaved.clone().max();
            prop_assert_eq!(quarantine.unconfirmed(), newest.map(|newest| (unsaved.count(), newest)));
        }
    }
}

#[test]
fn of_two_tasks_of_one_name_the_older_one_is_taken_first() {
    let now = crate::driver::clock::now();
    let mut quarantine = Quarantine::new(Limits::items(2));
    quarantine.push(now, task("twin", 1), None);
    quarantine.push(now, task("twin", 2), None);
    assert!(!quarantine.admits());
    let cause = |taken: Option<(KeptTask, Option<Place>)>| taken.unwrap().0.cause.unwrap();
    assert_eq!(cause(quarantine.dismiss("twin")), "1");
    assert_eq!(cause(quarantine.send_again("twin")), "2");
    assert!(quarantine.dismiss("twin").is_none());
    assert_eq!(quarantine.held(), Limits::new(0, 0));
}

#[test]
fn a_verdict_is_waited_for_since_its_task_was_kept_aside() {
    let now = crate::driver::clock::now();
    let limit = Limits::new(3, 1_000);
    let mut quarantine = Quarantine::new(limit);
    assert_eq!(quarantine.limit(), limit);
    quarantine.push(now, task("restored", 0), None);
    assert_eq!(quarantine.deadline(LIMIT), None, "a durable state names it");
    let mut ledger = Ledger::new();
    for (second, name) in [(1, "older"), (2, "younger")] {
        let at = now + Duration::from_secs(second);
        quarantine.push(at, task(name, second), Some(ledger.add(())));
    }
    let since = |second| now + Duration::from_secs(second) + LIMIT;
    assert_eq!(quarantine.deadline(LIMIT), Some(since(1)));
    quarantine.dismiss("older");
    assert_eq!(quarantine.deadline(LIMIT), Some(since(2)));
    quarantine.check_invariants();
}
