//! A wait is bounded by the absence of progress.

use std::time::{Duration, Instant};

use connector_core::ProgressWatch;

const LIMIT: Duration = Duration::from_secs(60);

#[expect(
    clippy::disallowed_methods,
    reason = "any instant does as the start of a made-up time"
)]
fn start() -> Instant {
    Instant::now()
}

#[test]
fn a_watch_that_is_not_armed_never_expires() {
    let start = start();
    let mut watch = ProgressWatch::new(LIMIT);
    watch.progress(start);
    assert_eq!(watch.deadline(), None);
    assert_eq!(watch.expired(start + LIMIT * 10), None);
    assert_eq!(watch.limit(), LIMIT);
}

#[test]
fn progress_starts_the_watch_over_and_arming_again_does_not() {
    let start = start();
    let mut watch = ProgressWatch::new(LIMIT);
    watch.arm(start);
    watch.arm(start + LIMIT / 2);
    assert_eq!(watch.deadline(), Some(start + LIMIT));
    watch.progress(start + LIMIT / 2);
    assert_eq!(watch.expired(start + LIMIT), None);
    assert_eq!(watch.expired(start + LIMIT * 3 / 2), Some(LIMIT));
}

#[test]
fn a_clock_that_steps_back_does_not_shorten_the_wait() {
    let start = start();
    let mut watch = ProgressWatch::new(LIMIT);
    watch.arm(start + LIMIT);
    watch.progress(start);
    assert_eq!(watch.deadline(), Some(start + LIMIT * 2));
    assert_eq!(watch.expired(start), None);
}

#[test]
fn a_watch_without_anything_to_wait_for_is_disarmed() {
    let start = start();
    let mut watch = ProgressWatch::new(LIMIT);
    watch.arm(start);
    watch.disarm();
    assert_eq!(watch.expired(start + LIMIT), None);
    watch.arm(start + LIMIT);
    assert_eq!(watch.expired(start + LIMIT), None);
}
