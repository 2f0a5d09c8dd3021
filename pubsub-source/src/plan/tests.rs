use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn names(count: usize) -> Vec<SubscriptionName> {
    let name = |number| SubscriptionName::new("demo-project", &format!("sub-{number}"));
    (0..count).map(|number| name(number).unwrap()).collect()
}

fn read_by(plan: &SplitPlan) -> Vec<Vec<String>> {
    let reader = |reader| {
        let splits = plan.reader(reader).unwrap();
        let ids = splits.iter().map(|split| split.subscription().id());
        ids.map(str::to_owned).collect()
    };
    (0..plan.readers()).map(reader).collect()
}

#[test]
fn more_readers_than_subscriptions_share_them_in_turn() {
    let plan = SplitPlan::new(names(2), 4).unwrap();
    assert_eq!(plan.split_count(), 4);
    assert_eq!(read_by(&plan), [["sub-0"], ["sub-1"], ["sub-0"], ["sub-1"]]);
}

#[test]
fn fewer_readers_than_subscriptions_read_several_each() {
    let plan = SplitPlan::new(names(3), 2).unwrap();
    assert_eq!(read_by(&plan), [vec!["sub-0", "sub-2"], vec!["sub-1"]]);
}

#[test]
fn with_ordering_nobody_shares_a_subscription_and_readers_beyond_them_are_idle() {
    let plan = SplitPlan::ordered(names(2), 5).unwrap();
    assert_eq!(plan.split_count(), 2);
    assert_eq!(plan.idle_readers(), 3);
    let read = read_by(&plan);
    assert_eq!(read[0], ["sub-0"]);
    assert_eq!(read[1], ["sub-1"]);
    assert!(read[2..].iter().all(Vec::is_empty));
}

#[test]
fn what_cannot_be_planned_is_refused_by_name() {
    assert_eq!(
        SplitPlan::new(names(0), 1).unwrap_err(),
        PlanError::NoSubscription
    );
    assert_eq!(
        SplitPlan::new(names(1), 0).unwrap_err(),
        PlanError::NoReader
    );
    let mut twice = names(3);
    twice.push(twice[1].clone());
    let text = SplitPlan::new(twice, 1).unwrap_err().to_string();
    assert!(
        text.contains("projects/demo-project/subscriptions/sub-1"),
        "{text}"
    );
    let error = SplitPlan::new(names(1), 2).unwrap().reader(2).unwrap_err();
    assert_eq!(
        error,
        PlanError::NoSuchReader {
            reader: 2,
            readers: 2
        }
    );
}

fn plan() -> impl Strategy<Value = SplitPlan> {
    (1usize..12, 1usize..12, any::<bool>()).prop_map(|(subscriptions, readers, ordered)| {
        SplitPlan::of(names(subscriptions), readers, ordered).unwrap()
    })
}

proptest! {
    #[test]
    fn every_split_is_on_exactly_one_reader_and_every_subscription_is_read(plan in plan()) {
        let mut on = BTreeMap::new();
        for reader in 0..plan.readers() {
            for split in plan.reader(reader).unwrap() {
                prop_assert_eq!(on.insert(split, reader), None);
            }
        }
        let all: Vec<Split> = plan.splits().collect();
        prop_assert_eq!(all.len(), plan.split_count());
        prop_assert_eq!(on.keys().cloned().collect::<BTreeSet<_>>(), all.iter().cloned().collect());
        let read: BTreeSet<_> = all.iter().map(Split::subscription).collect();
        prop_assert_eq!(read, plan.subscriptions().iter().collect());
    }

    #[test]
    fn no_reader_reads_a_subscription_twice(plan in plan()) {
        for reader in 0..plan.readers() {
            let splits = plan.reader(reader).unwrap();
            let distinct: BTreeSet<_> = splits.iter().map(Split::subscription).collect();
            prop_assert_eq!(distinct.len(), splits.len());
        }
    }

    #[test]
    fn readers_and_subscriptions_get_equal_shares(plan in plan()) {
        let mut of_readers = Vec::new();
        for reader in 0..plan.readers() {
            of_readers.push(plan.reader(reader).unwrap().len());
        }
        prop_assert!(of_readers.iter().max().unwrap() - of_readers.iter().min().unwrap() <= 1);
        prop_assert_eq!(of_readers.iter().filter(|splits| **splits == 0).count(), plan.idle_readers());
        prop_assert!(plan.is_ordered() || plan.idle_readers() == 0);
        let mut of_subscriptions = BTreeMap::new();
        for split in plan.splits() {
            *of_subscriptions.entry(split.subscription().clone()).or_insert(0usize) += 1;
        }
        let shares = of_subscriptions.values();
        prop_assert!(shares.clone().max().unwrap() - shares.clone().min().unwrap() <= 1);
        prop_assert!(!plan.is_ordered() || shares.clone().all(|share| *share == 1));
    }

    #[test]
    fn the_same_input_gives_the_same_plan_after_any_rescaling(plan in plan(), between in 1usize..12) {
        let again = plan.resized(between).unwrap().resized(plan.readers()).unwrap();
        prop_assert_eq!(&again, &plan);
        prop_assert!(again.splits().eq(plan.splits()));
    }
}
