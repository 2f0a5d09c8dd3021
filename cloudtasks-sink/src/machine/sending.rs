//! Which record is sent next.

use std::time::Instant;

use gcp_wire::proto::tasks::{Task, task::MessageType};
use prost::Message;

use super::Machine;
use super::gate::Passage;
use super::inflight::{Create, Record, RecordId};
use crate::error::SinkError;

impl Machine {
    /// Takes the next record that may be sent and for which there is a stream.
    pub(super) fn send_next(&mut self, now: Instant) -> Option<RecordId> {
        if !self.inflight.has_stream() {
            return None;
        }
        let (id, passage) = match self.gate.next(now) {
            Some(next) => next,
            None => self.next_in_line(now)?,
        };
        // The setting first: whether a task calls a URL is asked of its bytes.
        if !self.settings.url_overrides && passage == Passage::Replaced && self.calls_url(id) {
            self.refuse_override(id);
            return None;
        }
        self.inflight.send(id);
        Some(id)
    }

    /// The first record in line whose queue lets it pass; those before it are set aside.
    fn next_in_line(&mut self, now: Instant) -> Option<(RecordId, Passage)> {
        loop {
            let (id, record) = self.inflight.first_in_line()?;
            let again = record.attempts > 0;
            let queue = &record.create().queue;
            match self.gate.passes(now, queue) {
                Passage::Later => {
                    self.gate.set_aside(now, queue, id, again);
                    self.inflight.set_aside(id);
                }
                passage @ (Passage::Free | Passage::Replaced) => return Some((id, passage)),
            }
        }
    }

    fn calls_url(&self, id: RecordId) -> bool {
        let task = self.inflight.get(id).map(Record::create);
        // Our own encoding always decodes.
        let task = task.and_then(|create| Task::decode(create.request.task()).ok());
        matches!(
            task.and_then(|task| task.message_type),
            Some(MessageType::HttpRequest(_))
        )
    }

    fn refuse_override(&mut self, id: RecordId) {
        let pending = self.inflight.len();
        if let Some(Create { queue, .. }) = self.inflight.get(id).map(Record::create) {
            let queue = queue.clone();
            self.fail(SinkError::UrlsReplaced { queue, pending });
        }
    }

    /// Whether there are tasks that only lack a stream.
    pub(super) fn lacks_streams(&self) -> bool {
        match &self.batches {
            Some(batches) => batches.lacks_streams(),
            None => !self.inflight.has_stream() && self.inflight.waiting() > 0,
        }
    }
}
