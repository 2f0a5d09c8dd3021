//! One host with all three connectors and its checkpoint store, in virtual time, under every fault
//! that a seed brings.
//!
//! The connectors are the real ones with their real drivers, the servers are the embedded ones over
//! pipes in memory, the store is the real one on a directory in memory. A run is a function of its
//! seed: `SEED=17 cargo test -p examples --test hosts no_history -- --nocapture` replays one that
//! failed and tells its story, `SEEDS=5000..9000` searches further. Planted bugs show that the laws
//! bite.

#![expect(clippy::unwrap_used, reason = "a run that cannot go on fails")]
#![expect(
    clippy::disallowed_methods,
    clippy::future_not_send,
    reason = "a host has a clock, virtual here, and one thread; servers and trouble run beside it"
)]

mod bugs;
mod chance;
mod checkpoints;
mod circles;
mod connectors;
mod cover;
mod ending;
mod fate;
#[cfg(debug_assertions)]
mod first;
mod host;
mod load;
mod outputs;
mod plan;
mod regressions;
mod restart;
mod story;
mod trouble;
mod truth;
mod world;

use connector_core::conformance::Histories;

use bugs::Bug;

/// How often each thing happened.
type Counts = connector_core::conformance::Counts;

const HISTORIES: Histories<Bug> = Histories {
    runs: 2_000,
    runs_per_bug: 400,
    everything: &chance::EVERYTHING,
    bugs: &Bug::ALL,
    run: |seed, bug| Ok(world::run(seed, bug).counts),
};

// The builds of `cargo test` have time for a first part of the seeds.
#[cfg(not(debug_assertions))]
connector_core::history_tests!(HISTORIES);

#[test]
fn a_run_follows_from_its_seed() {
    for seed in 0..12 {
        let stories = [world::run(seed, None), world::run(seed, None)].map(|run| run.story);
        assert_eq!(stories[0], stories[1], "seed {seed}");
    }
}

/// The search by hand: goes on behind a run that fails, and tells every one; with `BUG=StaleSink`, those
/// that find the planted bug.
#[test]
#[ignore = "for searches by hand: SEEDS=0..100000"]
fn every_failing_seed_is_told() {
    let seeds = std::env::var("SEEDS").expect("SEEDS=first..end");
    let (first, end) = seeds.split_once("..").unwrap();
    let bug = std::env::var("BUG").ok().map(|name| {
        let mut bugs = Bug::ALL.into_iter();
        bugs.find(|bug| format!("{bug:?}") == name).unwrap()
    });
    let mut failed = 0;
    for seed in first.parse::<u64>().unwrap()..end.parse().unwrap() {
        let run = std::panic::catch_unwind(|| world::run(seed, bug));
        if let Err(panic) = run {
            failed += 1;
            let why = panic.downcast_ref::<String>().map(String::as_str);
            let why = why.or_else(|| panic.downcast_ref::<&str>().copied());
            println!(
                "SEED={seed} fails: {}",
                why.unwrap_or("a panic without text")
            );
        }
    }
    assert_eq!(failed, 0, "of {seeds}");
}
