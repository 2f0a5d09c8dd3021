//! Tasks that are created many in one call.
//!
//! A machine of its own: records go in, calls come out, and each record comes back with one answer,
//! as if it had been created alone. What happens to a call as a whole stays in here.

mod call;
#[cfg(any(test, fuzzing))]
mod invariants;
mod lane;
mod names;
mod outcome;
mod recall;
mod running;

pub(crate) use call::CallId;
pub(super) use outcome::Answered;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gcp_wire::proto::longrunning::Operation;
use gcp_wire::{QueueName, RpcError};

use super::answer::{Answer, Meaning, meaning};
use super::settings::{Batch, RetryBudget};
use call::{Call, Step};
pub(super) use lane::Item;
use lane::Lane;

/// Calls of one queue without an answer, before its tasks wait and the next call grows. Two keep a
/// queue busy while an answer is on its way; more would make the calls smaller.
const PER_QUEUE: usize = 2;

/// How often a call may be refused while its operation does not exist, before its tasks go into
/// new calls. One more than once, since an operation may show a moment after its call.
const UNEXPLAINED: u32 = 2;

/// The calls that create many tasks.
#[derive(Debug)]
pub(super) struct Batches {
    size: Batch,
    retries: RetryBudget,
    /// Calls without an answer, over all queues.
    streams: usize,
    /// Names the requests of this sink apart from those of every other.
    incarnation: String,
    next: u64,
    lanes: BTreeMap<QueueName, Lane>,
    /// Queues with tasks waiting and room for a call, in turn.
    ready: VecDeque<QueueName>,
    calls: BTreeMap<CallId, Call>,
    /// Calls to be made ahead of new ones: they are older.
    again: VecDeque<CallId>,
    due: BTreeSet<(Instant, CallId)>,
    sent: usize,
    /// How long an operation may go on before its tasks are asked for in another call.
    patience: Option<Duration>,
}

/// What the driver is to call.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Create {
        call: CallId,
        queue: QueueName,
        request: Bytes,
        tasks: usize,
        /// Tasks that are asked for again, and those of them that may exist and have no name.
        again: usize,
        ambiguous: usize,
    },
    Read {
        call: CallId,
        operation: String,
    },
}

impl Batches {
    pub(super) const fn new(
        size: Batch,
        retries: RetryBudget,
        streams: usize,
        incarnation: String,
    ) -> Self {
        Self {
            size,
            retries,
            streams,
            incarnation,
            next: 0,
            lanes: BTreeMap::new(),
            ready: VecDeque::new(),
            calls: BTreeMap::new(),
            again: VecDeque::new(),
            due: BTreeSet::new(),
            sent: 0,
            patience: None,
        }
    }

    /// Takes a task that is to be created.
    pub(super) fn push(&mut self, queue: &QueueName, item: Item) {
        let lane = self.lanes.entry(queue.clone()).or_default();
        lane.waiting.push_back(item);
        self.renew(queue);
    }

    /// The next call, if one is to be made and there is a stream for it.
    pub(super) fn poll_request(&mut self) -> Option<Request> {
        if self.sent >= self.streams {
            return None;
        }
        let id = self.again.pop_front().or_else(|| self.gather())?;
        let call = self.calls.get_mut(&id)?;
        self.sent += 1;
        match call.step {
            Step::Create => {
                call.step = Step::Creating;
                let (again, ambiguous) = call.count_send();
                Some(Request::Create {
                    call: id,
                    queue: call.queue.clone(),
                    request: call.request.clone(),
                    tasks: call.items.len(),
                    again,
                    ambiguous,
                })
            }
            Step::Read => {
                call.step = Step::Reading;
                Some(Request::Read {
                    call: id,
                    operation: call.operation(),
                })
            }
            Step::Creating | Step::Reading => unreachable!("a call with a stream is not due"),
        }
    }

    /// Whether there are calls to make that only lack a stream.
    pub(super) fn lacks_streams(&self) -> bool {
        self.sent >= self.streams && !(self.again.is_empty() && self.ready.is_empty())
    }

    /// When the first call that waits is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, _)) = self.due.first()
            && *due <= now
            && let Some((_, id)) = self.due.pop_first()
        {
            self.again.push_back(id);
        }
    }

    /// BatchCreateTasks was answered. `random` is uniform in `0.0..1.0`.
    pub(super) fn handle_created(
        &mut self,
        now: Instant,
        id: CallId,
        answer: Result<Operation, RpcError>,
        random: f64,
    ) -> Answered {
        let Some(mut call) = self.take_answered(id, Step::Creating) else {
            return Answered::default();
        };
        let error = match answer {
            Ok(operation) => return self.read(now, id, call, &operation, random),
            Err(error) => error,
        };
        match meaning(&error) {
            Meaning::Transient => {
                call.may_have_arrived |= error.is_ambiguous();
                self.try_again(now, id, call, Step::Create, error, random)
            }
            // Refused because an earlier attempt arrived, or because the call is wrong for itself:
            // the code is the same, and only the operation tells.
            Meaning::Exists => self.look(id, call, error),
            Meaning::Refused if call.may_have_arrived => self.look(id, call, error),
            Meaning::Refused => self.split(call, error),
            Meaning::QueueMissing | Meaning::Hopeless => {
                self.answer_all(call, |_| Answer::Failed(error.clone()))
            }
        }
    }

    /// GetOperation was answered. `random` is uniform in `0.0..1.0`.
    pub(super) fn handle_read(
        &mut self,
        now: Instant,
        id: CallId,
        answer: Result<Operation, RpcError>,
        random: f64,
    ) -> Answered {
        let Some(mut call) = self.take_answered(id, Step::Reading) else {
            return Answered::default();
        };
        let error = match answer {
            Ok(operation) => return self.read(now, id, call, &operation, random),
            Err(error) => error,
        };
        match (meaning(&error), call.refusal.take()) {
            (Meaning::Transient, refusal) => {
                call.refusal = refusal;
                self.try_again(now, id, call, Step::Read, error, random)
            }
            // There is no such operation, so that the refusal was of the call itself, unless the
            // operation does not show yet, or the first attempt is still on its way.
            (Meaning::QueueMissing, Some(refusal)) => {
                call.unexplained += 1;
                if call.unexplained < UNEXPLAINED {
                    self.try_again(now, id, call, Step::Create, refusal, random)
                } else if meaning(&refusal) == Meaning::Exists {
                    // Whatever it is that exists, it is not for certain the tasks.
                    self.answer_all(call, |_| Answer::Unknown(refusal.clone()))
                } else {
                    self.split(call, refusal)
                }
            }
            // What became of the tasks cannot be known: no record of them is wrong for itself.
            (Meaning::QueueMissing | Meaning::Exists | Meaning::Refused | Meaning::Hopeless, _) => {
                self.answer_all(call, |_| Answer::Unknown(error.clone()))
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.lanes.clear();
        self.ready.clear();
        self.calls.clear();
        self.again.clear();
        self.due.clear();
        self.sent = 0;
    }
}

impl Batches {
    /// Reads what an operation says of each task.
    fn read(
        &mut self,
        now: Instant,
        id: CallId,
        mut call: Call,
        operation: &Operation,
        random: f64,
    ) -> Answered {
        call.named_by(operation);
        match outcome::verdicts(operation, call.items.len()) {
            outcome::Verdicts::Running => self.wait_for(now, id, call, random),
            outcome::Verdicts::Each(mut verdicts) => self.answer_all(call, |index| {
                std::mem::replace(&mut verdicts[index], Answer::Created(String::new()))
            }),
            outcome::Verdicts::Whole(error) => {
                if meaning(&error) == Meaning::Refused {
                    self.split(call, error)
                } else {
                    self.answer_all(call, |_| Answer::Failed(error.clone()))
                }
            }
        }
    }

    /// Reads the call's operation, since the call itself was refused.
    fn look(&mut self, id: CallId, mut call: Call, refusal: RpcError) -> Answered {
        call.refusal = Some(refusal);
        call.step = Step::Read;
        self.calls.insert(id, call);
        self.again.push_back(id);
        Answered::default()
    }

    /// Makes the same call again later, unless that was done often enough.
    fn try_again(
        &mut self,
        now: Instant,
        id: CallId,
        mut call: Call,
        step: Step,
        error: RpcError,
        random: f64,
    ) -> Answered {
        call.failures += 1;
        let attempts = call.failures;
        if attempts >= self.retries.attempts {
            return self.answer_all(call, |_| Answer::Spent {
                attempts,
                error: error.clone(),
            });
        }
        let wish = error
            .retry_after()
            .unwrap_or_default()
            .min(self.retries.cap);
        let delay = self.retries.backoff().jittered(attempts, random).max(wish);
        let queue = call.queue.clone();
        // Beyond the end of the clock there is no later; at once is the one time that comes.
        self.park(now.checked_add(delay).unwrap_or(now), id, call, step);
        Answered {
            retrying: Some((queue, error)),
            ..Answered::default()
        }
    }

    fn park(&mut self, due: Instant, id: CallId, mut call: Call, step: Step) {
        call.step = step;
        self.calls.insert(id, call);
        self.due.insert((due, id));
    }

    /// The call as a whole was refused, and nothing of it created: halves of it, under ids of
    /// their own, find the task that is to blame.
    fn split(&mut self, mut call: Call, refusal: RpcError) -> Answered {
        if call.items.len() == 1 {
            return self.answer_all(call, |_| Answer::Failed(refusal.clone()));
        }
        call.mark_unknown();
        let second = call.items.split_off(call.items.len() / 2);
        for items in [std::mem::take(&mut call.items), second] {
            let id = self.make(call.queue.clone(), items);
            self.again.push_back(id);
        }
        // One call became two of the same queue.
        if let Some(lane) = self.lanes.get_mut(&call.queue) {
            lane.calls += 1;
        }
        Answered::default()
    }

    /// Ends a call with an answer for each of its tasks.
    fn answer_all(&mut self, mut call: Call, mut answer: impl FnMut(usize) -> Answer) -> Answered {
        call.mark_unknown();
        let items = call.items.iter().enumerate();
        let records = items
            .map(|(index, item)| (item.record, answer(index), item.may_exist))
            .collect();
        if let Some(lane) = self.lanes.get_mut(&call.queue) {
            lane.calls -= 1;
        }
        self.renew(&call.queue);
        Answered {
            records,
            retrying: None,
        }
    }

    fn take_answered(&mut self, id: CallId, step: Step) -> Option<Call> {
        if self.calls.get(&id)?.step != step {
            return None;
        }
        self.sent -= 1;
        self.calls.remove(&id)
    }

    /// Makes a call of the tasks that wait for the queue whose turn it is.
    fn gather(&mut self) -> Option<CallId> {
        let queue = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&queue)?;
        lane.is_ready = false;
        let items = lane.take(self.size);
        lane.calls += 1;
        self.renew(&queue);
        Some(self.make(queue, items))
    }

    fn make(&mut self, queue: QueueName, items: Vec<Item>) -> CallId {
        let id = CallId::new(self.next);
        self.next += 1;
        let request_id = format!("{}-{}", self.incarnation, id.number());
        self.calls.insert(id, Call::new(queue, items, request_id));
        id
    }

    /// Puts a queue in line when it may make a call, and forgets one without tasks.
    fn renew(&mut self, queue: &QueueName) {
        let Some(lane) = self.lanes.get_mut(queue) else {
            return;
        };
        if lane.waiting.is_empty() && lane.calls == 0 {
            self.lanes.remove(queue);
        } else if !lane.is_ready && !lane.waiting.is_empty() && lane.calls < PER_QUEUE {
            lane.is_ready = true;
            self.ready.push_back(queue.clone());
        }
    }
}

#[cfg(test)]
mod tests;
