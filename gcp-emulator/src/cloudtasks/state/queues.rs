//! The queues of a server: created, changed, paused, purged, deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Stored, TaskRefusal, TasksState, name, queue};
use crate::cloudtasks::proto::{CreateQueueRequest, Queue, UpdateQueueRequest, queue::State};
use crate::time::Time;

/// How long the name of a queue stays unusable after the queue is gone (interface comment).
const QUEUE_NAME_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

impl TasksState {
    /// Creates a queue with default settings by its full name.
    ///
    /// # Errors
    ///
    /// As [`create_queue`](Self::create_queue).
    pub fn create_queue_named(&mut self, now: Time, name: &str) -> Result<(), TaskRefusal> {
        let parent = name::location_of(name)
            .ok_or(TaskRefusal::QueueName)?
            .to_owned();
        let queue = Queue {
            name: name.to_owned(),
            ..Queue::default()
        };
        self.create_queue(
            now,
            CreateQueueRequest {
                parent,
                queue: Some(queue),
            },
        )
        .map(drop)
    }

    /// Creates a queue and returns it with the defaults filled in.
    ///
    /// # Errors
    ///
    /// When the name is malformed, taken, or was taken less than a week ago, or a setting is not
    /// allowed.
    pub fn create_queue(
        &mut self,
        now: Time,
        request: CreateQueueRequest,
    ) -> Result<Queue, TaskRefusal> {
        let now = self.clock(now);
        let queue = request.queue.ok_or(TaskRefusal::QueueName)?;
        if name::location_of(&queue.name) != Some(request.parent.as_str()) {
            return Err(TaskRefusal::QueueName);
        }
        if self.queues.contains_key(&queue.name) {
            return Err(TaskRefusal::QueueExists);
        }
        self.check_not_recent(now, &queue.name)?;
        self.insert_queue(queue)
    }

    /// Changes a queue's settings and returns it. One that does not exist is created; without a mask
    /// every setting is replaced, with an empty one none.
    ///
    /// # Errors
    ///
    /// When the name is malformed or was taken less than a week ago, the mask names no field, or a
    /// setting is not allowed.
    pub fn update_queue(
        &mut self,
        now: Time,
        request: UpdateQueueRequest,
    ) -> Result<Queue, TaskRefusal> {
        let now = self.clock(now);
        let update = request.queue.unwrap_or_default();
        name::check_queue(&update.name)?;
        // What is asked for is checked even outside the mask (recorded).
        queue::complete(&mut update.clone())?;
        let existing = self.queues.get(&update.name);
        let exists = existing.is_some();
        let current = existing.map_or_else(
            || Queue {
                name: update.name.clone(),
                ..Queue::default()
            },
            |stored| stored.queue.clone(),
        );
        if !exists {
            self.check_not_recent(now, &update.name)?;
        }
        let merged = queue::merge(current, update, request.update_mask.as_ref())?;
        if exists {
            self.replace_queue(merged)
        } else {
            self.insert_queue(merged)
        }
    }

    /// Changes a queue as its operator could, output fields included.
    ///
    /// # Errors
    ///
    /// When it does not exist, or a setting is not allowed.
    pub fn change_queue(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Queue),
    ) -> Result<Queue, TaskRefusal> {
        let mut queue = self.queue(name)?;
        change(&mut queue);
        name.clone_into(&mut queue.name);
        self.replace_queue(queue)
    }

    /// A queue as stored.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn queue(&self, name: &str) -> Result<Queue, TaskRefusal> {
        self.stored(name).map(|stored| stored.queue.clone())
    }

    /// Pauses a queue or lets it run again.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn set_running(&mut self, name: &str, running: bool) -> Result<Queue, TaskRefusal> {
        let stored = self.stored_mut(name)?;
        let state = if running {
            State::Running
        } else {
            State::Paused
        };
        stored.queue.state = state.into();
        Ok(stored.queue.clone())
    }

    /// Deletes every task of a queue, and returns the queue. Their names stay taken for a while.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn purge_queue(&mut self, now: Time, name: &str) -> Result<Queue, TaskRefusal> {
        let now = self.clock(now);
        let free_at = now + self.name_kept;
        let stored = self.stored_mut(name)?;
        stored.queue.purge_time = Some(now.to_timestamp());
        for task in std::mem::take(&mut stored.tasks).into_keys() {
            stored.keep_name(task, free_at);
        }
        Ok(stored.queue.clone())
    }

    /// Deletes a queue with its tasks. Its name stays unusable for a week.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn delete_queue(&mut self, now: Time, name: &str) -> Result<(), TaskRefusal> {
        let now = self.clock(now);
        name::check_queue(name)?;
        self.queues.remove(name).ok_or(TaskRefusal::NotFound)?;
        self.gone_queues
            .insert(name.to_owned(), now + QUEUE_NAME_KEPT);
        Ok(())
    }

    /// A page of a location's queues, and the next page's token.
    ///
    /// # Errors
    ///
    /// When the size or the token is not allowed.
    pub fn list_queues(
        &self,
        parent: &str,
        size: i32,
        token: &str,
    ) -> Result<(Vec<Queue>, String), TaskRefusal> {
        let prefix = format!("{parent}/queues/");
        let names = self.queues.keys().filter(|name| name.starts_with(&prefix));
        let (names, next) = crate::page::page(names, size, token)?;
        let there = names.iter().filter_map(|name| self.queues.get(name));
        Ok((there.map(|stored| stored.queue.clone()).collect(), next))
    }

    fn check_not_recent(&mut self, now: Time, name: &str) -> Result<(), TaskRefusal> {
        self.gone_queues.retain(|_, free_at| *free_at > now);
        if self.gone_queues.contains_key(name) {
            return Err(TaskRefusal::QueueExistedRecently);
        }
        Ok(())
    }

    fn insert_queue(&mut self, mut queue: Queue) -> Result<Queue, TaskRefusal> {
        queue::complete(&mut queue)?;
        queue.state = State::Running.into();
        let name = queue.name.clone();
        Arc::make_mut(&mut self.record)
            .entry(name.clone())
            .or_default();
        let stored = Stored {
            queue: queue.clone(),
            tasks: BTreeMap::new(),
            gone: BTreeMap::new(),
            expiries: BTreeSet::new(),
        };
        self.queues.insert(name, stored);
        Ok(queue)
    }

    fn replace_queue(&mut self, mut queue: Queue) -> Result<Queue, TaskRefusal> {
        queue::complete(&mut queue)?;
        self.stored_mut(&queue.name)?.queue = queue.clone();
        Ok(queue)
    }
}
