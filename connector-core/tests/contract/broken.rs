//! The suite is worth something: it finds each planted fault, under the clause it breaks.

use connector_core::conformance::{Clause, Violation, run_flush_sink, run_source, run_staged_sink};
use futures::FutureExt;

use crate::reference::{
    Bug, sink::Mode, sink_harness::FakeSinkHarness, source_harness::FakeSourceHarness,
};

fn source(bug: Option<Bug>) -> Result<(), Vec<Violation>> {
    run_source(async || FakeSourceHarness::new(bug))
        .now_or_never()
        .expect("the reference world never waits")
}

fn sink(mode: Mode, bug: Option<Bug>) -> Result<(), Vec<Violation>> {
    let make = async || FakeSinkHarness::new(mode, bug);
    match mode {
        Mode::Flush => run_flush_sink(make).now_or_never(),
        Mode::Staged => run_staged_sink(make).now_or_never(),
    }
    .expect("the reference world never waits")
}

fn assert_caught(bug: Bug, clause: Clause, outcome: Result<(), Vec<Violation>>) {
    let violations = outcome.expect_err(&format!("{bug:?} passed"));
    assert!(
        violations
            .iter()
            .any(|violation| violation.clause == clause),
        "{bug:?} breaks {clause}, the suite found {violations:#?}"
    );
}

#[test]
fn every_fault_of_a_source_is_caught_under_its_clause() {
    assert_eq!(source(None), Ok(()));
    let mut broken = Vec::new();
    for (bug, clause) in [
        (Bug::CutsTheBuffer, Clause::C1),
        (Bug::SettlesWithFirstRecord, Clause::C1),
        (Bug::AcceptsOldEpochs, Clause::C2),
        (Bug::SnapshotWaits, Clause::C3),
        (Bug::SweepsNewestOnly, Clause::C4),
        (Bug::UnknownIsOk, Clause::C4),
        (Bug::SettlesAtSnapshot, Clause::C5),
        (Bug::NeedsReceipt, Clause::C6),
        (Bug::CommitsBlindly, Clause::C6),
        (Bug::AbortDrops, Clause::C7),
        (Bug::AbortReleases, Clause::C7),
        (Bug::ForgetsSettling, Clause::C8),
        (Bug::RestoresOneState, Clause::C9),
        (Bug::RestoreDoesNotCommit, Clause::C9),
        (Bug::IgnoresSettledMark, Clause::C9),
        (Bug::CloseDropsCommitted, Clause::C10),
        (Bug::CloseKeepsLeases, Clause::C10),
        (Bug::CloseSettlesAll, Clause::C10),
        (Bug::GivesUpCommitted, Clause::C11),
        (Bug::EmitsLapsed, Clause::C11),
        (Bug::ForgetsItsEnd, Clause::C12),
        (Bug::RepeatsItsError, Clause::C12),
        (Bug::DropSettles, Clause::C13),
    ] {
        assert_caught(bug, clause, source(Some(bug)));
        broken.push(clause);
    }
    broken.dedup();
    assert_eq!(broken, Clause::ALL, "a fault for every clause");
}

#[test]
fn every_fault_of_a_flushing_sink_is_caught_under_its_clause() {
    assert_eq!(sink(Mode::Flush, None), Ok(()));
    let mut broken = Vec::new();
    for (bug, clause) in [
        (Bug::CutsLate, Clause::C1),
        (Bug::AcceptsOldEpochs, Clause::C2),
        (Bug::ReadyWhenQueued, Clause::C3),
        (Bug::ForgetsFailedFlush, Clause::C3),
        (Bug::NeverFlushes, Clause::C3),
        (Bug::UnknownIsOk, Clause::C4),
        (Bug::NeedsReceipt, Clause::C6),
        (Bug::AbortDrops, Clause::C7),
        (Bug::AbortLeavesReceipt, Clause::C7),
        (Bug::VouchesForOwnEpochOnly, Clause::C8),
        (Bug::NamesDelivered, Clause::C9),
        (Bug::CloseDropsCommitted, Clause::C10),
        (Bug::ForgetsItsEnd, Clause::C12),
    ] {
        assert_caught(bug, clause, sink(Mode::Flush, Some(bug)));
        broken.push(clause);
    }
    broken.dedup();
    // What it delivers before the commit (C5), settles by committing (C11) or keeps back until one
    // (C13) says nothing about a sink that delivers at the snapshot.
    let about_flushing = Clause::ALL
        .into_iter()
        .filter(|clause| !matches!(clause, Clause::C5 | Clause::C11 | Clause::C13));
    assert!(
        broken.iter().copied().eq(about_flushing),
        "a fault for every clause: {broken:?}"
    );
}

#[test]
fn every_fault_of_a_staged_sink_is_caught_under_its_clause() {
    assert_eq!(sink(Mode::Staged, None), Ok(()));
    let mut broken = Vec::new();
    for (bug, clause) in [
        (Bug::CutsLate, Clause::C1),
        (Bug::AcceptsOldEpochs, Clause::C2),
        (Bug::ForgetsFailedFlush, Clause::C3),
        (Bug::NeverFlushes, Clause::C3),
        (Bug::SweepsNewestOnly, Clause::C4),
        (Bug::UnknownIsOk, Clause::C4),
        (Bug::SettlesAtSnapshot, Clause::C5),
        (Bug::NeedsReceipt, Clause::C6),
        (Bug::SettlesInOrder, Clause::C6),
        (Bug::CommitsBlindly, Clause::C6),
        (Bug::AbortDrops, Clause::C7),
        (Bug::AbortReleases, Clause::C7),
        (Bug::ForgetsSettling, Clause::C8),
        (Bug::RestoresOneState, Clause::C9),
        (Bug::RestoreDoesNotCommit, Clause::C9),
        (Bug::IgnoresSettledMark, Clause::C9),
        (Bug::RepeatsMergedItems, Clause::C9),
        (Bug::CloseDropsCommitted, Clause::C10),
        (Bug::CloseSettlesAll, Clause::C10),
        (Bug::GivesUpCommitted, Clause::C11),
        (Bug::ForgetsItsEnd, Clause::C12),
        (Bug::DropSettles, Clause::C13),
    ] {
        assert_caught(bug, clause, sink(Mode::Staged, Some(bug)));
        broken.push(clause);
    }
    broken.dedup();
    assert_eq!(broken, Clause::ALL, "a fault for every clause");
}

#[test]
fn a_violation_names_its_clause_and_what_was_seen() {
    let violations = source(Some(Bug::SettlesAtSnapshot)).unwrap_err();
    let early = violations
        .iter()
        .find(|violation| violation.clause == Clause::C5)
        .unwrap();
    assert_eq!(
        early.to_string(),
        "C5 (nothing gets out before its commit) is broken: \
         nothing is acknowledged before its commit; seen: [1, 2]"
    );
}
