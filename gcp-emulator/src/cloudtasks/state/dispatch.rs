//! How tasks come to their end: dispatched, deleted, purged.

use super::{Stored, TaskRefusal, TasksState, name, task};
use crate::cloudtasks::proto::{Attempt, Task};
use crate::time::Time;

impl TasksState {
    /// Dispatches a task whatever its schedule and the state of its queue, and answers it as the
    /// service does, before the call is made. Nothing is called: the call counts as answered with
    /// success, so that the task is over and its name stays taken for a while.
    ///
    /// # Errors
    ///
    /// When the name is malformed, or the queue or the task does not exist (any more).
    pub fn run_task(&mut self, now: Time, name: &str, view: i32) -> Result<Task, TaskRefusal> {
        let queue = name::queue_of(name)
            .ok_or(TaskRefusal::TaskName)?
            .to_owned();
        let stored = self.stored(&queue)?;
        let mut run = stored
            .tasks
            .get(name)
            .cloned()
            .ok_or(TaskRefusal::NotFound)?;
        run.dispatch_count += 1;
        run.last_attempt = Some(Attempt {
            schedule_time: run.schedule_time,
            ..Attempt::default()
        });
        self.remove_task(now, name)?;
        self.count(&queue, |record| record.run += 1);
        Ok(task::viewed(run, view))
    }

    /// Takes a task away: deleted by a client, or done. Its name stays taken for a while.
    ///
    /// # Errors
    ///
    /// When the name is malformed, or the task does not exist (any more).
    pub fn remove_task(&mut self, now: Time, name: &str) -> Result<(), TaskRefusal> {
        let now = self.clock(now);
        let free_at = now + self.name_kept;
        let queue = name::queue_of(name)
            .ok_or(TaskRefusal::TaskName)?
            .to_owned();
        let stored = self.queues.get_mut(&queue).ok_or(TaskRefusal::NotFound)?;
        stored.tasks.remove(name).ok_or(TaskRefusal::NotFound)?;
        stored.keep_name(name.to_owned(), free_at);
        Ok(())
    }
}

impl Stored {
    /// The name of a task that is gone stays taken until `free_at`.
    pub(super) fn keep_name(&mut self, name: String, free_at: Time) {
        self.gone.insert(name.clone(), free_at);
        self.expiries.insert((free_at, name));
    }
}
