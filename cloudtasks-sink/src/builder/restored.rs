//! What the states that a host gives back say.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use connector_core::{Epoch, Restored, StateError, Versioned};

use crate::error::BuildError;
use crate::machine::{Create, Release, RestoredTasks};
use crate::request::Request;
use crate::state::{CONNECTOR, KeptTask, SinkState};

/// The epoch above which epochs go on.
pub(super) fn newest(
    restored: &[Restored<SinkState>],
    instance: &str,
) -> Result<Option<Epoch>, StateError> {
    for one in restored {
        if one.state.instance() != instance {
            return Err(StateError::OtherInstance {
                connector: CONNECTOR,
                found: one.state.instance().to_owned(),
                expected: instance.to_owned(),
            });
        }
    }
    Ok(restored.iter().map(|one| one.epoch).max())
}

/// A sink that does not stage takes no state that names tasks.
pub(super) fn none_staged(restored: &[Restored<SinkState>]) -> Result<RestoredTasks, BuildError> {
    let owed = |one: &Restored<SinkState>| {
        if one.settled {
            0
        } else {
            one.state.tasks.len()
        }
    };
    let tasks = restored.iter().map(owed).sum();
    let kept = restored.iter().map(|one| one.state.kept.len()).sum();
    if tasks + kept > 0 {
        return Err(BuildError::StagedState { tasks, kept });
    }
    Ok(RestoredTasks::default())
}

/// The tasks that a sink is to create, oldest first, each once; and those that are kept aside.
pub(crate) fn tasks(
    restored: Vec<Restored<SinkState>>,
    now: Instant,
    wall: SystemTime,
    window: Duration,
    keep_expired: bool,
) -> Result<RestoredTasks, BuildError> {
    // The same name with other bytes is another record of the same key, whose turn may come.
    let mut seen = BTreeSet::new();
    let mut tasks = Vec::new();
    let mut kept: Vec<KeptTask> = Vec::new();
    let mut late = Late::default();
    for task in restored.iter().flat_map(|one| &one.state.kept) {
        if seen.insert((task.queue().clone(), task.task().clone())) {
            kept.push(task.clone());
        }
    }
    for Restored {
        state,
        settled,
        committing,
        ..
    } in restored
    {
        if settled {
            continue;
        }
        for task in state.tasks {
            if !seen.insert((task.queue.clone(), task.task.clone())) {
                continue;
            }
            // Nobody sent it before this moment.
            let is_untouched = !committing && !task.released;
            let since = if is_untouched { wall } else { task.since };
            late.count(since, wall, window);
            let create = Create {
                request: Request::of_named(&task.queue, &task.task),
                queue: task.queue,
                named: task.named,
            };
            let release = Release::restored(since, now, wall, window);
            tasks.push((since, (create, release, !is_untouched)));
        }
    }
    if late.tasks > 0 && !keep_expired {
        return Err(BuildError::Expired {
            expired: late.tasks,
            tasks: tasks.len(),
            late: late.by,
        });
    }
    // A stable sort: the order of acceptance stays within one cut.
    tasks.sort_by_key(|(since, _)| *since);
    Ok(RestoredTasks {
        tasks: tasks.into_iter().map(|(_, task)| task).collect(),
        kept,
    })
}

/// The tasks past their deadline.
#[derive(Debug, Default)]
struct Late {
    tasks: usize,
    by: Duration,
}

impl Late {
    fn count(&mut self, since: SystemTime, wall: SystemTime, window: Duration) {
        match Release::left(since, wall, window) {
            Ok(Some(_)) => {}
            Ok(None) => {
                let age = wall.duration_since(since).unwrap_or_default();
                self.tasks += 1;
                self.by = self.by.max(age.saturating_sub(window));
            }
            Err(_) => self.tasks += 1,
        }
    }
}
