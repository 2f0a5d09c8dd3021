//! A call that is taken back before it is sent.

use super::super::RecordId;
use super::super::answer::Answer;
use super::call::Step;
use super::{Batches, CallId};

impl Batches {
    /// The records of a call.
    pub(in super::super) fn records(&self, id: CallId) -> Vec<RecordId> {
        let call = self.calls.get(&id);
        call.map_or_else(Vec::new, |call| {
            call.items.iter().map(|item| item.record).collect()
        })
    }

    /// A call was polled and is not sent. Its records.
    pub(in super::super) fn take_back(&mut self, id: CallId) -> Vec<RecordId> {
        let Some(call) = self.take_answered(id, Step::Creating) else {
            return Vec::new();
        };
        let answered = self.answer_all(call, |_| Answer::Created(String::new()));
        let records = answered.records.into_iter();
        records.map(|(record, ..)| record).collect()
    }
}
