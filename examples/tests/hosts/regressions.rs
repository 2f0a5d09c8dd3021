//! Seeds that found something, each with what it found.

use crate::world::run;

/// The source waited for good for the next response of a stream that had given one.
#[test]
fn a_pull_stream_that_fell_silent_before_its_first_answered_ping_has_a_successor() {
    drop(run(26, None));
}

/// What a closing source gave back came again on its half-closed stream, at once and without end: the
/// server had not taken notice.
#[test]
fn what_a_closing_source_gives_back_does_not_go_in_circles() {
    drop(run(934, None));
}

/// The state was lost while a server still had an acknowledgement to do: nothing can make up for that.
#[test]
fn a_state_is_not_lost_while_an_acknowledgement_may_still_take_effect() {
    drop(run(35_911, None));
}

/// A message that was confirmed and handed out again is owed by the state that covers it again.
#[test]
fn a_state_names_what_was_handed_out_again_after_its_commit() {
    drop(run(49_568, None));
}
