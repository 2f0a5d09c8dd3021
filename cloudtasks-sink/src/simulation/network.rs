//! Calls, the service, and everything that may happen in between.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gcp_emulator::cloudtasks::proto::{BatchCreateTasksRequest, CreateTaskRequest};
use gcp_emulator::cloudtasks::state::TaskRefusal;
use gcp_wire::proto::longrunning::{Operation, operation};
use gcp_wire::proto::rpc::Status;
use gcp_wire::proto::tasks::batch_create_tasks_metadata::State;
use gcp_wire::proto::tasks::{BatchCreateTasksMetadata, BatchCreateTasksResponse};
use gcp_wire::{Code, RpcError};
use prost::Message;

use super::bugs::Bug;
use super::truth::Kind;
use super::world::{Event, World};
use super::{Violation, truth};
use crate::machine::{Answer, CallId, RecordId};

/// Our own time-out round every call.
const DEADLINE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    One(RecordId),
    Many(CallId),
    Read(CallId),
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    what: What,
    request: Bytes,
    not_after: Option<SystemTime>,
}

impl Call {
    pub(super) const fn new(what: What, request: Bytes, not_after: Option<SystemTime>) -> Self {
        Self {
            what,
            request,
            not_after,
        }
    }
}

/// What the service said, encoded.
type Said = Result<Bytes, (Code, String)>;

impl World {
    /// The driver takes a call up; its future runs a moment later.
    pub(super) fn begin(&mut self, client: u64, call: Call) {
        let after = self.chance.millis(0..40);
        self.schedule(after, Event::Send { client, call });
        if self.t >= self.awake_at && self.chance.strikes(|rates| rates.sleep / 2) {
            self.sleep();
        }
    }

    pub(super) fn send(&mut self, id: u64, call: Call) -> Result<(), Violation> {
        let (now, wall) = (self.monotonic(), self.wall());
        let looks = self.bug != Some(Bug::ClockStands);
        if looks && call.not_after.is_some_and(|until| wall > until) {
            self.chance
                .count("a call became too late before it was sent");
            if let Some(client) = self.clients.get_mut(&id) {
                client.machine.handle_time_of_day(wall);
                match call.what {
                    What::One(record) => client.machine.handle_late(now, record),
                    What::Many(call) => client.machine.handle_late_batch(now, call),
                    What::Read(_) => unreachable!("reading is never too late"),
                }
                client.machine.check_invariants();
            }
            return self.run_client(id);
        }
        let travel = self.chance.millis(5..300);
        let gives_up = |world: &mut Self| {
            let said = Err((Code::DeadlineExceeded, "no answer".to_owned()));
            let what = call.what;
            world.schedule(
                DEADLINE,
                Event::Answer {
                    client: id,
                    what,
                    said,
                },
            );
        };
        if self.chance.strikes(|rates| rates.lose_call) {
            self.chance.count("a call was lost");
            gives_up(self);
        } else if self.chance.strikes(|rates| rates.late) {
            gives_up(self);
            let late = self.chance.millis(20_000..60_000);
            self.schedule(
                late,
                Event::Arrive {
                    client: None,
                    call: call.clone(),
                },
            );
        } else {
            self.schedule(
                travel,
                Event::Arrive {
                    client: Some(id),
                    call,
                },
            );
        }
        Ok(())
    }

    /// The service evaluates a call. Without a client nobody hears of the answer.
    pub(super) fn arrive(&mut self, client: Option<u64>, call: &Call) -> Result<(), Violation> {
        if client.is_none() {
            self.chance.count("a call arrived after its client gave up");
        }
        let down = self.chance.strikes(|rates| rates.unavailable);
        let before = down && self.chance.one_in(2);
        let mut said = if before {
            self.chance
                .count("a call was answered UNAVAILABLE before it took effect");
            Err((Code::Unavailable, "down".to_owned()))
        } else {
            self.evaluate(call)?
        };
        if down && !before {
            self.chance
                .count("a call was answered UNAVAILABLE after it took effect");
            said = Err((Code::Unavailable, "down".to_owned()));
        }
        let Some(id) = client else { return Ok(()) };
        let mut after = self.chance.millis(5..300);
        if self.chance.strikes(|rates| rates.lose_answer) {
            self.chance.count("an answer was lost");
            said = Err((Code::DeadlineExceeded, "no answer".to_owned()));
            after = DEADLINE;
        }
        let what = call.what;
        self.schedule(
            after,
            Event::Answer {
                client: id,
                what,
                said,
            },
        );
        Ok(())
    }

    fn evaluate(&mut self, call: &Call) -> Result<Said, Violation> {
        let now = self.server_time();
        let refused = |refusal: TaskRefusal| {
            let code = Code::from_number(refusal.code().number());
            Err((code, refusal.to_string()))
        };
        match call.what {
            What::One(_) => {
                let request =
                    CreateTaskRequest::decode(call.request.clone()).expect("our own encoding");
                if let Some(code) = self.trouble_at(&request.parent) {
                    return Ok(Err((code, "in trouble".to_owned())));
                }
                self.expect_name(&request);
                match self.server.create_task(now, request) {
                    Ok(task) => {
                        self.after_create()?;
                        Ok(Ok(task.encode_to_vec().into()))
                    }
                    Err(refusal) => Ok(refused(refusal)),
                }
            }
            What::Many(_) => {
                let request = BatchCreateTasksRequest::decode(call.request.clone())
                    .expect("our own encoding");
                if let Some(code) = self.trouble_at(&request.parent) {
                    return Ok(Err((code, "in trouble".to_owned())));
                }
                for one in &request.requests {
                    self.expect_name(one);
                }
                let count = request.requests.len();
                match self.server.batch_create(now, request) {
                    Ok(operation) => {
                        let created = self.after_create()?;
                        if created > 0 && created < count {
                            self.chance.count("a batch was partly refused");
                        }
                        let mut operation = Operation::decode(&*operation.encode_to_vec())
                            .expect("the same message");
                        self.cast_doubt(&mut operation);
                        if self.chance.strikes(|rates| rates.not_done) {
                            self.chance.count("a batch was answered as not done");
                            operation.done = false;
                            operation.result = None;
                            operation.metadata = None;
                        }
                        Ok(Ok(operation.encode_to_vec().into()))
                    }
                    Err(refusal) => Ok(refused(refusal)),
                }
            }
            What::Read(_) => {
                let name = String::from_utf8(call.request.to_vec()).expect("a name");
                match self.server.operation(now, &name) {
                    Ok(operation) => {
                        let mut operation = Operation::decode(&*operation.encode_to_vec())
                            .expect("the same message");
                        self.cast_doubt(&mut operation);
                        Ok(Ok(operation.encode_to_vec().into()))
                    }
                    Err(refusal) => Ok(refused(refusal)),
                }
            }
        }
    }

    /// One of the tasks that a call created is told as failed: its verdict says less than is true.
    fn cast_doubt(&mut self, operation: &mut Operation) {
        let Operation {
            metadata: Some(metadata),
            result: Some(operation::Result::Response(response)),
            ..
        } = operation
        else {
            return;
        };
        let mut made =
            BatchCreateTasksResponse::decode(response.value.as_slice()).expect("a response");
        let mut told =
            BatchCreateTasksMetadata::decode(metadata.value.as_slice()).expect("verdicts");
        if made.tasks.is_empty() || !self.chance.strikes(|rates| rates.doubt) {
            return;
        }
        let most = u32::try_from(made.tasks.len()).expect("a hundred at most");
        let at = usize::try_from(self.chance.random().u32(..most)).expect("a hundred at most");
        made.tasks.remove(at);
        let created = (0..).filter(|index| !told.failed_requests.contains_key(index));
        let index: Vec<i32> = created.take(at + 1).collect();
        let code = self
            .chance
            .pick(&[Code::Unavailable, Code::DeadlineExceeded]);
        let status = Status {
            code: code.number(),
            message: "who knows".to_owned(),
            ..Status::default()
        };
        told.failed_requests.insert(index[at], status);
        told.state = State::PartiallySucceeded.into();
        response.value = made.encode_to_vec();
        metadata.value = told.encode_to_vec();
        self.chance
            .count("a task of a batch was told as failed after it was created");
    }

    fn expect_name(&mut self, request: &CreateTaskRequest) {
        let Some(task) = &request.task else { return };
        if self.truth.names.contains(&task.name) {
            self.chance.count("a task existed when it was asked for");
        }
    }

    /// Takes note of what the service made since the last call. Each task runs some time later.
    fn after_create(&mut self) -> Result<usize, Violation> {
        let mut fresh = Vec::new();
        for (queue, record) in &**self.server.record() {
            let seen = self.seen.entry(queue.clone()).or_default();
            fresh.extend(record.created.iter().skip(*seen).map(std::sync::Arc::clone));
            *seen = record.created.len();
        }
        for task in &fresh {
            let bytes: Bytes = task.sent.encode_to_vec().into();
            self.truth.create(&task.name, &bytes)?;
            let after = self.chance.millis(100..20_000);
            let name = task.name.clone();
            self.schedule(after, Event::Executed { name });
        }
        Ok(fresh.len())
    }

    pub(super) fn answer(&mut self, id: u64, what: What, said: Said) -> Result<(), Violation> {
        let (now, wall) = (self.monotonic(), self.wall());
        let mut random = fastrand::Rng::with_seed(u64::from(self.chance.random().u32(..u32::MAX)));
        let silence = self.bug == Some(Bug::SilenceCountsAsCreated);
        let outage = self.bug == Some(Bug::OutageCountsAsRefusal);
        let Some(client) = self.clients.get_mut(&id) else {
            return Ok(());
        };
        let machine = &mut client.machine;
        machine.handle_time_of_day(wall);
        let failed = |(code, text): (Code, String)| {
            let refuse = outage && code == Code::Unavailable;
            let code = if refuse { Code::InvalidArgument } else { code };
            RpcError::status("Simulated", code, &text)
        };
        let operation = |bytes: Bytes| Operation::decode(bytes).expect("our own encoding");
        match what {
            What::One(record) => {
                let answer = match said {
                    Ok(_) => Answer::Created("a task".to_owned()),
                    Err((Code::DeadlineExceeded, _)) if silence => {
                        Answer::Created("a task".to_owned())
                    }
                    Err(error) => Answer::Failed(failed(error)),
                };
                machine.handle_answer(now, record, answer, random.f64());
            }
            What::Many(call) => {
                let said = said.map(operation).map_err(failed);
                machine.handle_batch_created(now, call, said, || random.f64());
            }
            What::Read(call) => {
                let said = said.map(operation).map_err(failed);
                machine.handle_operation(now, call, said, || random.f64());
            }
        }
        machine.check_invariants();
        self.run_client(id)
    }

    fn trouble_at(&mut self, queue: &str) -> Option<Code> {
        if self.chance.strikes(|rates| rates.trouble) {
            let code = self.chance.pick(&[
                Code::NotFound,
                Code::FailedPrecondition,
                Code::PermissionDenied,
            ]);
            let until = self.t + self.chance.millis(100..400_000);
            self.trouble.insert(queue.to_owned(), (until, code));
        }
        let (until, code) = *self.trouble.get(queue)?;
        // Flushing sinks end for it, which is not what is looked at here.
        if self.chance.is_calm() || self.t >= until || !self.truth.staged {
            return None;
        }
        self.chance.count("a queue was missing or closed");
        Some(code)
    }

    /// A task for a record, under its name.
    pub(super) fn encoded(number: usize, kind: Kind) -> crate::HttpTask {
        let task = crate::HttpTask::post("https://h/").expect("a URL");
        let task = task.body(number.to_string());
        if kind == Kind::Poison {
            // Shorter than the service takes.
            task.dispatch_deadline(Duration::from_secs(5))
        } else {
            task
        }
    }

    pub(super) fn executed(&mut self, name: &str) {
        let now = self.server_time();
        if self.server.remove_task(now, name).is_ok() {
            self.gone.insert(name.to_owned(), self.t);
        }
    }
}

/// The numbers in encoded tasks.
pub(super) fn numbers<'a>(tasks: impl Iterator<Item = &'a Bytes>) -> Vec<usize> {
    tasks.map(truth::number).collect()
}
