//! What the crate's documents say of the code.

use pubsub_sink::{DestinationStats, Stats};

const README: &str = include_str!("../../README.md");
const EVENTS: &str = include_str!("../../src/events.rs");

#[test]
fn the_readme_lists_every_number_and_no_other() {
    let listed: Vec<&str> = README
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(listed, [Stats::NAMES, DestinationStats::NAMES].concat());
}

#[test]
fn the_readme_lists_every_event_and_no_other() {
    let mut told: Vec<&str> = EVENTS
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|text| text.ends_with('.'))
        .collect();
    let mut listed: Vec<&str> = README
        .lines()
        .filter_map(|line| line.strip_prefix("- *")?.split_once('*'))
        .map(|(event, _)| event)
        // A point in bold is no event.
        .filter(|event| !event.is_empty())
        .collect();
    told.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, told);
}
