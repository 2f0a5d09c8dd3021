//! Cloud Tasks as a pure state machine: queues, and the creation of tasks.
//!
//! Tasks are validated and stored, not dispatched.

mod batch;
mod dispatch;
mod name;
mod queue;
mod queues;
mod record;
mod refusal;
mod task;

pub use batch::Judged;
pub use record::{CreatedTask, QueueRecord};
pub use refusal::TaskRefusal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::cloudtasks::proto::{CreateTaskRequest, Queue, Task, task::View};
use crate::pubsub::state::History;
use crate::time::Time;

/// How long the name of a task stays taken after the task is gone. The interface comment says about
/// an hour, the reference up to 24 hours; a client must be right under the shorter.
const NAME_KEPT: Duration = Duration::from_secs(3600);

/// The queues and tasks of a Cloud Tasks server.
#[derive(Debug)]
pub struct TasksState {
    history: History,
    name_kept: Duration,
    operation_time: Duration,
    latest: Time,
    queues: BTreeMap<String, Stored>,
    gone_queues: BTreeMap<String, Time>,
    operations: BTreeMap<String, batch::Batch>,
    next_task: u64,
    next_operation: u64,
    record: Arc<BTreeMap<String, Arc<QueueRecord>>>,
}

#[derive(Debug)]
struct Stored {
    queue: Queue,
    tasks: BTreeMap<String, Task>,
    /// Names of tasks that are gone, with the time from which they are free again.
    gone: BTreeMap<String, Time>,
    expiries: BTreeSet<(Time, String)>,
}

/// The first number of an unnamed task; real ones have up to 20 digits.
const FIRST_TASK: u64 = 5_200_000_000_000_000_003;

/// The distance between the numbers of unnamed tasks.
const TASK_STEP: u64 = 7_919_000_017;

impl TasksState {
    /// A server without queues.
    #[must_use]
    pub fn new(history: History) -> Self {
        Self {
            history,
            name_kept: NAME_KEPT,
            operation_time: Duration::ZERO,
            latest: Time::UNIX_EPOCH,
            queues: BTreeMap::new(),
            gone_queues: BTreeMap::new(),
            operations: BTreeMap::new(),
            next_task: 0,
            next_operation: 0,
            record: Arc::default(),
        }
    }

    /// Keeps the names of tasks that are gone for `span` instead of an hour.
    #[must_use]
    pub const fn names_kept(mut self, span: Duration) -> Self {
        self.name_kept = span;
        self
    }

    /// Lets the operation of a batch be done this long after its call instead of at once. The tasks
    /// exist from the call on; only what became of each is told later.
    #[must_use]
    pub const fn operations_take(mut self, span: Duration) -> Self {
        self.operation_time = span;
        self
    }

    /// What happened so far, by queue name.
    #[must_use]
    pub const fn record(&self) -> &Arc<BTreeMap<String, Arc<QueueRecord>>> {
        &self.record
    }

    fn clock(&mut self, now: Time) -> Time {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Creates a task and returns what the service answers.
    ///
    /// # Errors
    ///
    /// When the queue is missing, the name is malformed or taken, or the task breaks a rule.
    pub fn create_task(
        &mut self,
        now: Time,
        request: CreateTaskRequest,
    ) -> Result<Task, TaskRefusal> {
        self.create_task_judged(now, request, Judged::Pass)
    }

    /// As [`create_task`](Self::create_task), with a word about the task.
    ///
    /// # Errors
    ///
    /// As [`create_task`](Self::create_task), and what was said about the task.
    pub fn create_task_judged(
        &mut self,
        now: Time,
        request: CreateTaskRequest,
        judged: Judged,
    ) -> Result<Task, TaskRefusal> {
        let now = self.clock(now);
        let queue = request.parent.clone();
        let created = match judged {
            Judged::Pass => self.try_create(now, request),
            Judged::Refused { code, message } => Err(TaskRefusal::Scripted { code, message }),
            Judged::CreatedYetRefused { code, message } => self
                .try_create(now, request)
                .and(Err(TaskRefusal::Scripted { code, message })),
        };
        match &created {
            Ok(_) => {}
            Err(TaskRefusal::TaskExists | TaskRefusal::TaskExistedRecently) => {
                self.count(&queue, |record| record.taken += 1);
            }
            Err(_) => self.count(&queue, |record| record.refused += 1),
        }
        created
    }

    fn try_create(&mut self, now: Time, request: CreateTaskRequest) -> Result<Task, TaskRefusal> {
        let queue = request.parent;
        name::check_queue(&queue)?;
        let sent = request.task.ok_or(TaskRefusal::NoPayload)?;
        name::check_task(&queue, &sent.name)?;
        let mut task = sent.clone();
        task::complete(now, &mut task)?;
        let minted = FIRST_TASK.wrapping_add(self.next_task.wrapping_mul(TASK_STEP));
        let stored = self.stored_mut(&queue)?;
        stored.free_names(now);
        queue::impose(&stored.queue, &mut task);
        if task.name.is_empty() {
            task.name = format!("{queue}/tasks/{minted}");
        }
        if stored.tasks.contains_key(&task.name) {
            return Err(TaskRefusal::TaskExists);
        }
        if stored.gone.contains_key(&task.name) {
            return Err(TaskRefusal::TaskExistedRecently);
        }
        stored.tasks.insert(task.name.clone(), task.clone());
        self.next_task += 1;
        let created = CreatedTask {
            name: task.name.clone(),
            sent,
            stored: task.clone(),
            at: now,
        };
        let history = self.history;
        self.count(&queue, |record| record.created(created, history));
        Ok(task::viewed(task, request.response_view))
    }

    fn count(&mut self, queue: &str, change: impl FnOnce(&mut QueueRecord)) {
        // A queue nobody created has no record: what is refused there is seen in the requests.
        if let Some(record) = Arc::make_mut(&mut self.record).get_mut(queue) {
            change(Arc::make_mut(record));
        }
    }

    /// A task as stored.
    ///
    /// # Errors
    ///
    /// When the name is malformed, or the task does not exist (any more).
    pub fn task(&self, name: &str, view: i32) -> Result<Task, TaskRefusal> {
        let queue = name::queue_of(name).ok_or(TaskRefusal::TaskName)?;
        let stored = self.queues.get(queue).ok_or(TaskRefusal::NotFound)?;
        let Some(task) = stored.tasks.get(name) else {
            let existed = stored.gone.contains_key(name);
            return Err(if existed {
                TaskRefusal::TaskGone
            } else {
                TaskRefusal::NotFound
            });
        };
        Ok(task::viewed(task.clone(), view))
    }

    /// A page of a queue's tasks, and the next page's token.
    ///
    /// # Errors
    ///
    /// When the queue is missing, or the size or the token is not allowed.
    pub fn list_tasks(
        &self,
        queue: &str,
        view: i32,
        size: i32,
        token: &str,
    ) -> Result<(Vec<Task>, String), TaskRefusal> {
        let stored = self.stored(queue)?;
        let (names, next) = crate::page::page(stored.tasks.keys(), size, token)?;
        let there = names.iter().filter_map(|name| stored.tasks.get(name));
        Ok((
            there.map(|task| task::viewed(task.clone(), view)).collect(),
            next,
        ))
    }

    fn stored(&self, queue: &str) -> Result<&Stored, TaskRefusal> {
        name::check_queue(queue)?;
        self.queues.get(queue).ok_or(TaskRefusal::QueueMissing)
    }

    fn stored_mut(&mut self, queue: &str) -> Result<&mut Stored, TaskRefusal> {
        name::check_queue(queue)?;
        self.queues.get_mut(queue).ok_or(TaskRefusal::QueueMissing)
    }
}

impl Stored {
    fn free_names(&mut self, now: Time) {
        while let Some((free_at, _)) = self.expiries.first()
            && *free_at <= now
            && let Some((_, name)) = self.expiries.pop_first()
        {
            self.gone.remove(&name);
        }
    }
}

/// Which fields an answer carries: all, or all but bodies (assumed for BASIC).
const fn is_full(view: i32) -> bool {
    view == View::Full as i32
}
