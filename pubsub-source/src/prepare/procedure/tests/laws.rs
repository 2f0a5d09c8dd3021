//! What holds whatever dies.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::world::*;
use crate::{
    plan::SplitPlan,
    prepare::{facts::Facts, wishes::Wishes},
    start::{SeekId, SeekTarget, StartRecord},
};

/// How one subscription is found.
#[derive(Debug, Clone, Copy)]
struct Found {
    exists: bool,
    readable: bool,
    creatable: bool,
    raced: bool,
}

fn found() -> impl Strategy<Value = Found> {
    let likely = || prop::bool::weighted(0.8);
    (likely(), likely(), likely(), prop::bool::weighted(0.2)).prop_map(
        |(exists, readable, creatable, raced)| Found {
            exists,
            readable,
            creatable,
            raced,
        },
    )
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Done),
        1 => Just(Fate::Refused),
        1 => Just(Fate::CrashBefore),
        1 => Just(Fate::CrashAfter),
    ]
}

fn world_of(all: &[Found]) -> World {
    let mut world = World::default();
    for (number, found) in all.iter().enumerate() {
        let settings = if found.readable {
            facts(|_| {})
        } else {
            facts(|one| one.detached = true)
        };
        if found.exists {
            world.existing.insert(subscription(number), settings);
        } else if found.raced {
            world.raced.insert(subscription(number), settings);
        }
    }
    world
}

/// As a job asks whose clock goes on from start to start.
fn wishes_of(all: &[Found], sought: bool, start: usize) -> Wishes {
    let creatable = all.iter().enumerate().filter(|(_, found)| found.creatable);
    let creations: BTreeMap<_, _> = creatable
        .map(|(number, _)| (subscription(number), creation()))
        .collect();
    let start = u64::try_from(start).unwrap();
    let moment = std::time::Duration::from_secs(1000 + start);
    Wishes {
        plan: SplitPlan::new((0..all.len()).map(subscription), 1).unwrap(),
        moment,
        target: sought.then_some(SeekTarget::Time(moment)),
        fresh: SeekId(u128::from(start)),
        creations,
        ..wishes(1)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The model's own checks hold at every step: nothing is created or sought before all was looked
    /// at and is there, nothing is sought that is not recorded, nothing after the start is over.
    #[test]
    fn whatever_dies_a_job_is_sought_to_one_target_and_never_after_it_began(
        all in prop::collection::vec(found(), 1..12),
        sought in any::<bool>(),
        starts in prop::collection::vec(prop::collection::vec((any::<usize>(), fate()), 0..40), 0..6),
    ) {
        let mut world = world_of(&all);
        let mut begun_at = None;
        let mut outcomes = Vec::new();
        for (start, course) in starts.iter().enumerate() {
            let mut course = course.iter().copied().chain(std::iter::repeat((0, Fate::Done)));
            let outcome = world.incarnate(wishes_of(&all, sought, start), &mut |_| course.next().unwrap());
            if let Some(Ok(_)) = outcome {
                begun_at.get_or_insert(world.sought.len());
            }
            outcomes.extend(outcome);
        }
        // After the last fault it ends well, unless something is wrong for good.
        let last = world.start(wishes_of(&all, sought, starts.len()));
        let hopeless = all.iter().any(|found| {
            let there = found.exists || (found.raced && found.creatable);
            (there && !found.readable) || (!there && !found.creatable)
        });
        prop_assert_eq!(last.is_err(), hopeless, "{:?}", last);
        if hopeless {
            prop_assert!(world.sought.is_empty());
            prop_assert!(world.stored.is_none());
        }

        let targets: Vec<&SeekTarget> = world.sought.iter().map(|(_, target)| target).collect();
        prop_assert!(targets.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", targets);
        if let Some(begun_at) = begun_at {
            prop_assert_eq!(world.sought.len(), begun_at, "sought after readers could begin");
        }
        if let Ok(prepared) = last {
            let record = world.stored.as_ref().unwrap();
            prop_assert!(record.is_done());
            prop_assert_eq!(record.seek().is_some(), sought);
            outcomes.push(Ok(prepared.clone()));
            for earlier in outcomes.into_iter().flatten() {
                prop_assert_eq!(&earlier, &prepared, "every start hands out the same readers");
            }
        }
    }

    /// What is found unreadable, or missing without leave to create it, keeps everything as it is.
    #[test]
    fn a_start_that_is_refused_for_what_exists_has_changed_nothing(
        all in prop::collection::vec(found(), 1..12),
        order in prop::collection::vec(any::<usize>(), 40),
    ) {
        let refused = all.iter().any(|found| {
            if found.exists { !found.readable } else { !found.creatable }
        });
        prop_assume!(refused);
        let mut world = world_of(&all);
        let before: BTreeMap<_, Facts> = world.existing.clone();
        let mut order = order.into_iter().chain(std::iter::repeat(0));
        let outcome = world.incarnate(wishes_of(&all, true, 0), &mut |_| (order.next().unwrap(), Fate::Done));
        prop_assert!(outcome.unwrap().is_err());
        prop_assert_eq!(&world.existing, &before);
        prop_assert_eq!((world.created.len(), world.sought.len(), world.saves), (0, 0, 0));
    }

    /// Whatever order the answers come in, the verdict is the same.
    #[test]
    fn the_order_of_answers_does_not_matter(
        all in prop::collection::vec(found(), 1..12),
        order in prop::collection::vec(any::<usize>(), 60),
    ) {
        let (mut one, mut other) = (world_of(&all), world_of(&all));
        let first = one.start(wishes_of(&all, true, 0));
        let mut order = order.into_iter().chain(std::iter::repeat(0));
        let second = other.incarnate(wishes_of(&all, true, 0), &mut |_| (order.next().unwrap(), Fate::Done));
        let text = |outcome: Result<_, crate::prepare::PrepareError>| {
            outcome.map_err(|error| error.to_string())
        };
        prop_assert_eq!(text(first), text(second.unwrap()));
        prop_assert_eq!(one.stored.as_ref().map(StartRecord::is_done), other.stored.as_ref().map(StartRecord::is_done));
    }
}
