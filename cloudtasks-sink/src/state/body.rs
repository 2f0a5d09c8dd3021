//! The encodings of a state, one per released version.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gcp_wire::QueueName;

use super::{KeptReason, KeptTask, StagedTask};
use crate::naming::Named;

/// How the sink that wrote a state delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Mode {
    Unspecified = 0,
    /// Everything before the cut is delivered when the receipt resolves.
    Flush = 1,
    /// Everything before the cut is in the state.
    Staged = 2,
}

impl Mode {
    pub(super) fn read(number: i32) -> Result<Self, &'static str> {
        match Self::try_from(number) {
            Ok(Self::Unspecified) => Err("the delivery mode is missing"),
            Ok(mode @ (Self::Flush | Self::Staged)) => Ok(mode),
            Err(_) => Err("the delivery mode is unknown"),
        }
    }
}

/// Version 1, which knew flushing sinks only. Read, and never written any more.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BodyV1 {
    #[prost(enumeration = "Mode", tag = "1")]
    pub(super) mode: i32,
}

/// Version 2. Fields may be added under new tags as long as an older build may ignore them;
/// anything else is version 3.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BodyV2 {
    #[prost(enumeration = "Mode", tag = "1")]
    pub(super) mode: i32,
    /// The full names of the queues that the tasks below point to by their position here.
    #[prost(string, repeated, tag = "2")]
    queues: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    tasks: Vec<SavedTask>,
    #[prost(message, repeated, tag = "4")]
    kept: Vec<SavedKept>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedTask {
    #[prost(uint32, tag = "1")]
    queue: u32,
    /// The `google.cloud.tasks.v2.Task` as it was encoded when it was staged, its name included.
    #[prost(bytes = "bytes", tag = "2")]
    task: Bytes,
    #[prost(enumeration = "NameOf", tag = "3")]
    named: i32,
    /// Milliseconds since the Unix epoch, rounded down.
    #[prost(uint64, tag = "4")]
    since_ms: u64,
    /// Whether `since_ms` is about a task that was committed, rather than the cut itself.
    #[prost(bool, tag = "5")]
    released: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedKept {
    #[prost(message, required, tag = "1")]
    task: SavedTask,
    #[prost(enumeration = "Why", tag = "2")]
    why: i32,
    #[prost(string, tag = "3")]
    cause: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum NameOf {
    Minted = 0,
    Key = 1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum Why {
    Unspecified = 0,
    Refused = 1,
    Expired = 2,
}

/// The queues named so far, and where each stands.
#[derive(Default)]
struct Queues {
    list: Vec<String>,
    at: BTreeMap<QueueName, u32>,
}

impl Queues {
    fn position(&mut self, queue: &QueueName) -> u32 {
        if let Some(at) = self.at.get(queue) {
            return *at;
        }
        // More queues than fit were never named by the tasks that fit into memory.
        let at = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(queue.as_str().to_owned());
        self.at.insert(queue.clone(), at);
        at
    }
}

impl BodyV2 {
    pub(super) fn of(mode: Mode, tasks: &[StagedTask], kept: &[KeptTask]) -> Self {
        let mut queues = Queues::default();
        let saved = tasks
            .iter()
            .map(|task| SavedTask::of(task, &mut queues))
            .collect();
        let kept = kept
            .iter()
            .map(|one| SavedKept {
                task: SavedTask::of(&one.task, &mut queues),
                why: match one.why {
                    KeptReason::Refused => Why::Refused,
                    KeptReason::Expired => Why::Expired,
                }
                .into(),
                cause: one.cause.clone().unwrap_or_default(),
            })
            .collect();
        Self {
            mode: mode.into(),
            queues: queues.list,
            tasks: saved,
            kept,
        }
    }

    pub(super) fn open(self) -> Result<(Vec<StagedTask>, Vec<KeptTask>), &'static str> {
        let queues = self
            .queues
            .iter()
            .map(|queue| queue.parse().map_err(|_| "a queue's name is malformed"))
            .collect::<Result<Vec<QueueName>, _>>()?;
        let tasks = self.tasks.into_iter();
        let tasks = tasks
            .map(|task| task.open(&queues))
            .collect::<Result<_, _>>()?;
        let kept = self.kept.into_iter();
        let kept = kept
            .map(|one| {
                Ok(KeptTask {
                    task: one.task.open(&queues)?,
                    why: match Why::try_from(one.why) {
                        Ok(Why::Refused) => KeptReason::Refused,
                        Ok(Why::Expired) => KeptReason::Expired,
                        Ok(Why::Unspecified) | Err(_) => {
                            return Err("why a task is kept aside is unknown");
                        }
                    },
                    cause: Some(one.cause).filter(|cause| !cause.is_empty()),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok((tasks, kept))
    }
}

impl SavedTask {
    fn of(task: &StagedTask, queues: &mut Queues) -> Self {
        let since = task.since.duration_since(SystemTime::UNIX_EPOCH);
        let since_ms = since.unwrap_or_default().as_millis();
        Self {
            queue: queues.position(&task.queue),
            task: task.task.clone(),
            named: match task.named {
                Named::ByKey => NameOf::Key,
                Named::Minted | Named::ByService => NameOf::Minted,
            }
            .into(),
            since_ms: u64::try_from(since_ms).unwrap_or(u64::MAX),
            released: task.released,
        }
    }

    fn open(self, queues: &[QueueName]) -> Result<StagedTask, &'static str> {
        let queue = usize::try_from(self.queue).ok();
        let queue = queue
            .and_then(|at| queues.get(at))
            .ok_or("a task's queue is missing")?;
        let since = SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_millis(self.since_ms))
            .ok_or("a time is beyond the calendar")?;
        let task = StagedTask {
            queue: queue.clone(),
            task: self.task,
            named: match NameOf::try_from(self.named) {
                Ok(NameOf::Minted) => Named::Minted,
                Ok(NameOf::Key) => Named::ByKey,
                Err(_) => return Err("how a task was named is unknown"),
            },
            since,
            released: self.released,
        };
        let prefix = format!("{}/tasks/", queue.as_str());
        if !task.name().starts_with(&prefix) {
            return Err("a task's name is not of its queue");
        }
        Ok(task)
    }
}
