//! Which messages may come out, and which may come out again.

use std::time::Duration;

use super::{Violation, order::Move, world::World};

impl World {
    /// Counts what left the seen window early since the last look. A later incarnation does not know of
    /// it either: no state names it any more.
    pub(super) fn note_overflow(&mut self) {
        let at = self.base + self.now;
        let Some(client) = &mut self.client else {
            return;
        };
        let overflowed = client.machine.stats(at).seen_overflowed;
        if overflowed > client.overflowed {
            let more = overflowed - client.overflowed;
            self.truth.overflowed += usize::try_from(more).unwrap_or(usize::MAX);
            client.overflowed = overflowed;
            self.chance.count("the seen window overflowed");
        }
    }

    /// Checks that a message may be handed out now.
    pub(super) fn check_hand_out(&mut self, number: u64) -> Result<(), Violation> {
        let at = self.base + self.now;
        self.note_overflow();
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        // What was given back for being held too long comes again as a new message by design, and
        // nobody outside knows which that is.
        let stats = client.machine.stats(at);
        let excused = stats.held_too_long > 0;
        if let Some(order) = &self.truth.order
            && order.has_key(number)
        {
            // What was published before a restored cut may have come out: the source cannot tell.
            let went_back = number < client.published || order.went_back(&client.progress, number);
            let truth = &self.truth;
            let done = |other: u64| truth.is_elsewhere(other);
            let step = order.hand_out(&mut client.progress, number, done)?;
            match step {
                Some(Move::Back) => self.chance.count("a key went back"),
                Some(Move::Again | Move::On) | None => {}
            }
            // An acknowledged message of a key comes again behind one that is not, and what is
            // forgotten by then is handed out: with it everything that follows. Before anything
            // came again, nothing that is held or named comes out.
            let named = client.named.contains(&number) && !client.acknowledged.contains(&number);
            // What the host gave back comes again, whichever epoch keeps an earlier delivery of it.
            let given_back = client.given_back.remove(&number);
            let known = (client.holds(number) || named) && !given_back;
            if self.truth.acked.contains(&number) {
                self.chance
                    .count("an acknowledged message of a key was delivered again");
            }
            let repeated = known && !went_back && !excused && step != Some(Move::Again);
            if repeated && !self.truth.may_have_forgotten(number) {
                return Err(format!(
                    "message {number} was handed out again, and nothing before it in its key"
                ));
            }
            return Ok(());
        }
        if client.holds(number) && !excused {
            return Err(format!("message {number} was handed out while it is held"));
        }
        let durable = client.restored.contains(&number) || client.committed.contains(&number);
        // Ids are forgotten ten minutes of open stream after a restore or a lapse.
        let young = self.now - client.born < Duration::from_secs(600);
        let repeated = durable && young && !excused && !self.truth.excuses(number);
        if repeated && !self.truth.may_have_forgotten(number) {
            return Err(format!(
                "message {number} was handed out again although a durable epoch covers it"
            ));
        }
        Ok(())
    }
}
