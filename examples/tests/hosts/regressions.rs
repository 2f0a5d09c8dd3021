//! Seeds that found something, each with what it found.

use crate::world::run;

/// The source waited for good for the next response of a stream that had given one.
#[test]
fn a_pull_stream_that_fell_silent_before_its_first_answered_ping_has_a_successor() {
    drop(run(26, None));
}
