//! A job of several readers of several subscriptions, which comes back with fewer or more of them,
//! and whose predecessor may go on beside it.
//!
//! The world beside this one has one reader of one subscription and every fault there is. Here are
//! fewer faults, and what it takes several for: one store with its owners, states of all readers
//! given to all, subscriptions that share a buffer, pauses of one while another runs.

mod bugs;
mod chance;
mod coordinator;
mod driver;
mod ending;
mod event;
mod host;
mod job;
mod network;
mod reader;
mod service;
mod sharing;
mod start;
mod trouble;
mod truth;
mod world;

use connector_core::conformance::Histories;

use super::{Counts, Violation};
use bugs::Bug;
use world::World;

const HISTORIES: Histories<Bug> = Histories {
    // What two cores do in some ten seconds, unoptimized.
    runs: 600,
    runs_per_bug: 200,
    everything: chance::EVERYTHING,
    bugs: &Bug::ALL,
    run: |seed, bug| World::new(seed, bug).run(),
};

connector_core::history_tests!(HISTORIES);
