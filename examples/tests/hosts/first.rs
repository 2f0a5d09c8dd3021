//! A first part of the seeds: what a build that is not optimised has time for.

use std::sync::Mutex;

use connector_core::conformance::Histories;

use crate::{Counts, HISTORIES, bugs::Bug, chance::EVERYTHING, world};

/// What happened in all runs together: a quarter of them is too few to see everything.
static HAPPENED: Mutex<Counts> = Mutex::new(Counts::new());

const FIRST: Histories<Bug> = Histories {
    runs: 240,
    everything: &[],
    run: |seed, bug| {
        let counts = world::run(seed, bug).counts;
        let mut happened = HAPPENED.lock().unwrap();
        for (name, count) in &counts {
            *happened.entry(name).or_default() += count;
        }
        Ok(counts)
    },
    ..HISTORIES
};

#[test]
fn no_history_breaks_an_invariant() {
    std::thread::scope(|threads| {
        for quarter in 0..4 {
            threads.spawn(move || FIRST.check_quarter(quarter));
        }
    });
    if ["SEED", "SEEDS", "RUNS"]
        .iter()
        .any(|chosen| std::env::var_os(chosen).is_some())
    {
        return;
    }
    let happened = HAPPENED.lock().unwrap();
    for name in EVERYTHING {
        assert!(happened.contains_key(name), "{name} never happened");
    }
}

#[test]
#[ignore = "searched in the optimised build: cargo test --release -p examples --test hosts"]
fn every_planted_bug_is_found() {
    HISTORIES.find_bugs();
}
