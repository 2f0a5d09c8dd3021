//! What really is, whoever believes what.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;

use super::Violation;
use crate::state::SinkState;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Good,
    /// The service refuses its task.
    Poison,
    /// A check refuses it before it is a task.
    Door,
}

#[derive(Debug)]
pub(super) struct Truth {
    pub(super) staged: bool,
    pub(super) kinds: Vec<Kind>,
    /// How often a task was made of each record.
    pub(super) created: Vec<u32>,
    /// The bytes of every task that a durable state ever named.
    durable: BTreeMap<String, Bytes>,
    /// Names under which a task was made.
    pub(super) names: BTreeSet<String>,
    /// Records that the failure handler has made durable.
    pub(super) dead_letters: BTreeSet<usize>,
}

/// The number in the body of an encoded task.
pub(super) fn number(task: &Bytes) -> usize {
    use gcp_emulator::cloudtasks::proto::{Task, task::MessageType};
    let task = Task::decode(task.clone()).expect("our own encoding");
    let Some(MessageType::HttpRequest(request)) = task.message_type else {
        unreachable!("every task calls a URL");
    };
    let body = String::from_utf8(request.body.to_vec()).expect("text");
    body.parse().expect("a number")
}

impl Truth {
    pub(super) const fn new(staged: bool, kinds: Vec<Kind>, created: Vec<u32>) -> Self {
        Self {
            staged,
            kinds,
            created,
            durable: BTreeMap::new(),
            names: BTreeSet::new(),
            dead_letters: BTreeSet::new(),
        }
    }

    /// A state is durable from now on.
    pub(super) fn saved(&mut self, state: &SinkState) {
        for task in state.tasks() {
            self.durable.insert(task.name(), task.task().clone());
        }
    }

    /// The service made a task.
    pub(super) fn create(&mut self, name: &str, task: &Bytes) -> Result<(), Violation> {
        let number = number(task);
        if self.kinds[number] != Kind::Good {
            return Err(format!("record {number} is not good and became a task"));
        }
        self.created[number] += 1;
        self.names.insert(name.to_owned());
        if !self.staged {
            return Ok(());
        }
        match self.durable.get(name) {
            None => Err(format!("{name} is visible and no durable state names it")),
            Some(bytes) if bytes != task => Err(format!("{name} is not what was staged")),
            Some(_) if self.created[number] > 1 => {
                Err(format!("record {number} became a second task, {name}"))
            }
            Some(_) => Ok(()),
        }
    }

    /// After the faults: everything is where it belongs.
    pub(super) fn check(&self, kept: &BTreeSet<usize>) -> Result<(), Violation> {
        for (number, kind) in self.kinds.iter().enumerate() {
            let created = self.created[number];
            let aside = self.dead_letters.contains(&number) || kept.contains(&number);
            let fine = match kind {
                Kind::Good if self.staged => created == 1,
                Kind::Good => created >= 1,
                Kind::Poison => aside,
                Kind::Door => self.dead_letters.contains(&number),
            };
            if !fine {
                return Err(format!(
                    "record {number} ({kind:?}): created {created} times, aside: {aside}"
                ));
            }
        }
        Ok(())
    }
}
