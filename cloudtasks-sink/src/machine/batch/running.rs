//! Operations that are not done.

use std::time::{Duration, Instant};

use gcp_wire::{Code, RpcError};

use super::super::answer::Answer;
use super::call::{Call, Step};
use super::{Answered, Batches, CallId};

impl Batches {
    /// Asks again for the tasks of an operation that is not done after this time. Every task has to
    /// have a name: the operation may still make it.
    pub(in super::super) const fn ask_again_after(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    /// Reads the call's operation again later, unless that went on for too long.
    pub(super) fn wait_for(
        &mut self,
        now: Instant,
        id: CallId,
        mut call: Call,
        random: f64,
    ) -> Answered {
        let since = *call.running_since.get_or_insert(now);
        let after = now.saturating_duration_since(since);
        if self.patience.is_some_and(|patience| after >= patience) {
            let text = format!("the operation was not done after {}s", after.as_secs());
            let error = RpcError::status("GetOperation", Code::DeadlineExceeded, &text);
            call.may_have_arrived = true;
            return self.answer_all(call, |_| Answer::Unknown(error.clone()));
        }
        call.polls = call.polls.saturating_add(1);
        let delay = self.retries.backoff().jittered(call.polls, random);
        self.park(now.checked_add(delay).unwrap_or(now), id, call, Step::Read);
        Answered::default()
    }
}
