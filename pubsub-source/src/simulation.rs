//! The machine, the embedded server's pure state and a host, in virtual time, under every fault that
//! a seed brings.
//!
//! A run is a function of its seed: `SEED=17 cargo test -p pubsub-source simulation` replays one
//! that failed, `RUNS=100000` makes the search longer. Planted bugs show that the invariants bite.

/// Tells what happens, where a replay is asked to.
macro_rules! trace {
    ($($what:tt)*) => {
        if std::env::var_os("TRACE").is_some() {
            println!($($what)*);
        }
    };
}

mod bugs;
mod chance;
mod client;
mod confirming;
mod driver;
mod ending;
mod event;
mod host;
mod network;
mod order;
mod repeats;
mod restoring;
mod server;
mod truth;
mod world;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use bugs::Bug;
use world::World;

/// Runs in an ordinary test run: what two cores do in about a minute, unoptimized.
const RUNS: u64 = 2000;

/// Runs in which a planted bug has to show.
const RUNS_PER_BUG: u64 = 400;

/// How often each thing happened.
type Counts = BTreeMap<&'static str, u64>;

/// Why a run failed.
type Violation = String;

/// Runs one seed. A violated invariant inside the machine panics; that counts too.
fn run(seed: u64, bug: Option<Bug>) -> Result<Counts, Violation> {
    let run = catch_unwind(AssertUnwindSafe(|| World::new(seed, bug).run()));
    match run {
        Ok(outcome) => outcome,
        Err(panic) => Err(format!("panic: {}", crate::shared::panic_text(&*panic))),
    }
}

fn number_from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Quarters of the seeds, so that the harness runs them on all cores.
fn run_quarter(quarter: u64) {
    if let Some(seed) = number_from_environment("SEED") {
        if quarter == seed % 4 {
            let counts = run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            println!("seed {seed}: {counts:#?}");
        }
        return;
    }
    let runs = number_from_environment("RUNS").unwrap_or(RUNS);
    let mut total = Counts::new();
    for seed in (0..runs).filter(|seed| seed % 4 == quarter) {
        let counts = run(seed, None).unwrap_or_else(|why| panic!("SEED={seed} fails: {why}"));
        for (name, count) in counts {
            *total.entry(name).or_default() += count;
        }
    }
    println!("what happened in {} runs: {total:#?}", runs / 4);
    for name in chance::EVERYTHING {
        assert!(total.contains_key(name), "{name} never happened");
    }
}

#[test]
fn no_history_breaks_an_invariant_1() {
    run_quarter(0);
}

#[test]
fn no_history_breaks_an_invariant_2() {
    run_quarter(1);
}

#[test]
fn no_history_breaks_an_invariant_3() {
    run_quarter(2);
}

#[test]
fn no_history_breaks_an_invariant_4() {
    run_quarter(3);
}

#[test]
fn every_planted_bug_is_found() {
    // What is expected to panic need not fill the log.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut found = Vec::new();
    for bug in Bug::ALL {
        let first = (0..RUNS_PER_BUG).find_map(|seed| Some((seed, run(seed, Some(bug)).err()?)));
        found.push((bug, first));
    }
    std::panic::set_hook(hook);
    for (bug, first) in &found {
        match first {
            Some((seed, why)) => println!("{bug:?}: seed {seed}: {why}"),
            None => println!("{bug:?}: not found"),
        }
    }
    let missed: Vec<_> = found.iter().filter(|(_, first)| first.is_none()).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
