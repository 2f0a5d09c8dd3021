//! Names of queues and tasks.

use super::TaskRefusal;

/// The longest id of a queue and of a task (interface definition).
const QUEUE_ID: usize = 100;
const TASK_ID: usize = 500;

pub(super) fn check_queue(name: &str) -> Result<(), TaskRefusal> {
    if location_of(name).is_some() {
        Ok(())
    } else {
        Err(TaskRefusal::QueueName)
    }
}

/// The location of a queue's name, `projects/P/locations/L`, if it is one.
pub(super) fn location_of(name: &str) -> Option<&str> {
    let (location, id) = name.split_once("/queues/")?;
    let mut parts = location.split('/');
    let well_formed = parts.next() == Some("projects")
        && parts.next().is_some_and(|project| !project.is_empty())
        && parts.next() == Some("locations")
        && parts.next().is_some_and(|place| !place.is_empty())
        && parts.next().is_none()
        && (1..=QUEUE_ID).contains(&id.len())
        && id
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    well_formed.then_some(location)
}

/// The queue of a task's name, if it is one.
pub(super) fn queue_of(task: &str) -> Option<&str> {
    let (queue, id) = task.split_once("/tasks/")?;
    let well_formed = location_of(queue).is_some()
        && (1..=TASK_ID).contains(&id.len())
        && id
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    well_formed.then_some(queue)
}

/// Checks the name of a task that shall be created; none is fine.
pub(super) fn check_task(parent: &str, name: &str) -> Result<(), TaskRefusal> {
    if name.is_empty() {
        return Ok(());
    }
    let queue = queue_of(name).ok_or(TaskRefusal::TaskName)?;
    if queue == parent {
        return Ok(());
    }
    Err(TaskRefusal::OtherQueue {
        parent: parent.to_owned(),
        queue: queue.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &str = "projects/p/locations/l/queues/q";

    #[test]
    fn task_ids_are_letters_digits_hyphen_and_underscore() {
        for good in ["a", "A-b_9", &"x".repeat(500)] {
            assert!(
                check_task(QUEUE, &format!("{QUEUE}/tasks/{good}")).is_ok(),
                "{good}"
            );
        }
        for bad in ["order:42", "a b", "é", "x/y", "", &"x".repeat(501), "%2F"] {
            assert!(
                check_task(QUEUE, &format!("{QUEUE}/tasks/{bad}")).is_err(),
                "{bad}"
            );
        }
        assert!(check_task(QUEUE, "").is_ok());
        let other = "projects/p/locations/l/queues/r/tasks/t";
        assert!(matches!(
            check_task(QUEUE, other),
            Err(TaskRefusal::OtherQueue { .. })
        ));
    }

    #[test]
    fn queue_names_have_all_their_parts() {
        assert!(check_queue(QUEUE).is_ok());
        for bad in [
            "",
            "q",
            "projects/p/locations/l",
            "projects//locations/l/queues/q",
            "projects/p/locations/l/queues/",
            "projects/p/locations/l/queues/a_b",
            "projects/p/locations/l/queues/q/tasks/t",
        ] {
            assert_eq!(check_queue(bad), Err(TaskRefusal::QueueName), "{bad}");
        }
    }
}
