//! Records that are created many in one call.

use std::time::Instant;

use gcp_wire::RpcError;
use gcp_wire::proto::longrunning::Operation;

use super::batch::{Answered, Batches, CallId, Item, Request};
use super::effect::{Effect, Report};
use super::inflight::InFlight;
use super::staged::Deadline;
use super::{Batch, Machine, RecordId};
use crate::naming::Named;
use crate::state::name_in;

impl Machine {
    /// Creates tasks in batches. `incarnation` is a text that no other sink ever has, of at most 64
    /// letters, digits and hyphens.
    pub(crate) fn batching(mut self, size: Batch, incarnation: String) -> Self {
        let streams = self.settings.streams;
        self.batches = Some(Batches::new(
            size,
            self.settings.transient,
            streams,
            incarnation,
        ));
        // Streams are for calls, and a call has room for many records.
        self.inflight = InFlight::new(usize::MAX);
        self
    }

    /// BatchCreateTasks was answered. `randoms` gives numbers uniform in `0.0..1.0`.
    pub(crate) fn handle_batch_created(
        &mut self,
        now: Instant,
        call: CallId,
        answer: Result<Operation, RpcError>,
        mut randoms: impl FnMut() -> f64,
    ) {
        if let Some(batches) = &mut self.batches {
            let answered = batches.handle_created(now, call, answer, randoms());
            self.take_answered(now, answered, randoms);
        }
    }

    /// GetOperation was answered. `randoms` gives numbers uniform in `0.0..1.0`.
    pub(crate) fn handle_operation(
        &mut self,
        now: Instant,
        call: CallId,
        answer: Result<Operation, RpcError>,
        mut randoms: impl FnMut() -> f64,
    ) {
        if let Some(batches) = &mut self.batches {
            let answered = batches.handle_read(now, call, answer, randoms());
            self.take_answered(now, answered, randoms);
        }
    }

    pub(super) fn next_batch(&mut self, now: Instant) -> Option<Effect> {
        while let Some(record) = self.next_to_send(now) {
            self.push_into_batch(record);
        }
        let (request, deadline) = self.poll_call(now)?;
        Some(match request {
            Request::Create {
                call,
                queue,
                request,
                tasks,
                again,
                ambiguous,
            } => {
                self.stats.batches += 1;
                self.stats.attempts += number(tasks);
                self.stats.retries += number(again);
                self.stats.ambiguous_retries += number(ambiguous);
                Effect::CreateBatch {
                    call,
                    queue,
                    request,
                    not_after: deadline.map(Deadline::wall),
                }
            }
            Request::Read { call, operation } => {
                self.stats.operation_reads += 1;
                Effect::ReadOperation { call, operation }
            }
        })
    }

    fn push_into_batch(&mut self, record: RecordId) {
        let (Some(batches), Some(waiting)) = (&mut self.batches, self.inflight.get_mut(record))
        else {
            return;
        };
        let create = waiting.create();
        let again = waiting.attempts > 0;
        if !again {
            self.stats.bytes += number(create.request.bytes.len());
        }
        let item = Item {
            record,
            request: create.request.bytes.clone(),
            name: (create.named != Named::ByService).then(|| name_in(&create.request.task())),
            again,
            may_exist: waiting.ambiguous,
        };
        let queue = create.queue.clone();
        waiting.attempts += 1;
        batches.push(&queue, item);
    }

    /// The next call that it is not too late for, and until when it may be sent.
    fn poll_call(&mut self, now: Instant) -> Option<(Request, Option<Deadline>)> {
        loop {
            let request = self.batches.as_mut()?.poll_request()?;
            let Request::Create { call, .. } = &request else {
                return Some((request, None));
            };
            let call = *call;
            let records = self.batches.as_ref()?.records(call);
            let deadline = self.deadline_of(records.into_iter());
            if !self.is_over(now, deadline) {
                return Some((request, deadline));
            }
            self.handle_late_batch(now, call);
        }
    }

    fn take_answered(
        &mut self,
        now: Instant,
        answered: Answered,
        mut randoms: impl FnMut() -> f64,
    ) {
        if let Some((queue, error)) = answered.retrying {
            self.figures.failed(error.code());
            if let Some(failures) = self.retrying.count(now) {
                self.effects.push_back(Effect::Report(Report::Retrying {
                    queue,
                    failures,
                    error,
                }));
            }
        }
        for (record, answer, may_exist) in answered.records {
            if let Some(known) = self.inflight.get_mut(record) {
                known.ambiguous |= may_exist;
            }
            self.handle_answer(now, record, answer, randoms());
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
