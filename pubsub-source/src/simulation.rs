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
mod decoding;
mod driver;
mod ending;
mod event;
mod host;
mod many;
mod network;
mod order;
mod others;
mod repeats;
mod restoring;
mod server;
mod truth;
mod world;

use connector_core::conformance::Histories;

use bugs::Bug;
use world::World;

/// How often each thing happened.
type Counts = connector_core::conformance::Counts;

/// Why a run failed.
type Violation = String;

const HISTORIES: Histories<Bug> = Histories {
    // What two cores do in about a minute, unoptimized.
    runs: 2000,
    runs_per_bug: 400,
    everything: chance::EVERYTHING,
    bugs: &Bug::ALL,
    run: |seed, bug| World::new(seed, bug).run(),
};

connector_core::history_tests!(HISTORIES);
