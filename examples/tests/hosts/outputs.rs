//! What must be there in the end, and how often.

use crate::{
    plan::{Plan, Tasks},
    truth::{Output, Truth},
};

impl Truth {
    /// The laws of the end: everything is there, and nothing more often than the guarantees allow.
    pub(crate) fn check_outputs(&self) {
        for message in 0..self.plan.messages {
            assert!(self.handed[message] > 0, "{message} was never handed out");
            if Plan::is_published(message) {
                self.check_copies(message);
            } else {
                assert!(
                    self.copies[message].is_empty(),
                    "{message} is not for a topic"
                );
            }
            if Plan::is_task(message) {
                self.check_tasks(message);
            } else {
                assert!(
                    self.tasks[message].is_empty(),
                    "{message} is not for a queue"
                );
            }
        }
    }

    /// How many outputs there are.
    pub(crate) fn outputs(&self) -> usize {
        let copies: usize = self.copies.iter().map(Vec::len).sum();
        let tasks: usize = self.tasks.iter().map(Vec::len).sum();
        copies + tasks
    }

    fn disturbed(&self, output: Output, message: usize) -> usize {
        self.disturbed[output as usize][message] as usize
    }

    fn handed(&self, message: usize) -> usize {
        self.handed[message] as usize
    }

    fn check_copies(&self, message: usize) {
        let copies = &self.copies[message];
        assert!(
            !copies.is_empty(),
            "{message} was not published: it is lost"
        );
        let disturbed = self.disturbed(Output::Topic, message);
        let (most, rule) = if self.plan.publish_staged {
            let mut identities = copies.clone();
            identities.sort_unstable();
            identities.dedup();
            let most = if self.may_repeat(message) {
                self.handed(message)
            } else {
                1
            };
            assert!(
                identities.len() <= most,
                "{message} is {} messages, not {most} as staged",
                identities.len()
            );
            let named = self.named[message] as usize;
            (
                identities.len() + named + disturbed,
                "once, and again where an answer or a mark was missing",
            )
        } else {
            (
                self.handed(message) + disturbed,
                "once for each time it was handed out, and again where an answer was missing",
            )
        };
        assert!(
            copies.len() <= most,
            "{message} was published {} times, more than {most}: {rule}",
            copies.len()
        );
    }

    fn check_tasks(&self, message: usize) {
        let tasks = self.tasks[message].len();
        assert!(tasks > 0, "{message} has no task: it is lost");
        let disturbed = self.disturbed(Output::Queue, message);
        let most = match self.plan.tasks {
            Tasks::Unnamed => self.handed(message) + disturbed,
            Tasks::StagedByKey if self.hours && self.may_repeat(message) => self.handed(message),
            Tasks::ByKey | Tasks::StagedByKey => 1,
            Tasks::Staged if self.may_repeat(message) => self.handed(message),
            Tasks::Staged => 1,
        };
        assert!(
            tasks <= most,
            "{message} has {tasks} tasks, more than {most}"
        );
    }
}
