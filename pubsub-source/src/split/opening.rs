//! The split's message that is being decoded.

use super::SplitReader;
use crate::{
    driver,
    error::SourceError,
    handout::{Found, HandOut, Opened},
};

impl SplitReader {
    /// Opens the message that [`poll_ready`](Self::poll_ready) found, to hand out its records.
    pub(crate) fn open(&mut self, found: Found) -> Opened {
        self.out.take_in_hand(found)
    }

    pub(crate) fn out(&mut self) -> &mut HandOut {
        &mut self.out
    }

    /// Whether the message in hand is still ours; if not, it comes again.
    pub(crate) fn still_in_hand(&mut self) -> bool {
        let now = driver::now();
        let out = &mut self.out;
        if out.is_stale(now, self.shared.revoked()) {
            let refreshed = self
                .shared
                .with(|state| out.refresh(&mut state.machine, now));
            // What was poisoned tells so when the next message is asked for.
            return refreshed.is_ok() && out.in_hand().is_some();
        }
        out.in_hand().is_some()
    }

    /// Gives the message in hand back at once.
    pub(crate) fn turn_down(&mut self) {
        let now = driver::now();
        let out = &mut self.out;
        drop(
            self.shared
                .with(|state| out.turn_down(&mut state.machine, now)),
        );
    }

    /// Ends the split with an error.
    pub(crate) fn fail(&mut self, error: SourceError) {
        let now = driver::now();
        let out = &mut self.out;
        let told = self.shared.with(|state| {
            out.clear(&mut state.machine, now);
            state.machine.fail(now, error);
        });
        // What was poisoned has ended too; `take_error` tells why.
        drop(told);
    }
}
