//! What is built in a run, and what its messages are.

use std::time::Duration;

use pubsub_source::SavedDeliveries;

use crate::chance::Chance;

/// How tasks are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tasks {
    /// As records come, named by the service.
    Unnamed,
    /// As records come, named by the record.
    ByKey,
    /// With the commit, under names of their own.
    Staged,
    /// With the commit, named by the record.
    StagedByKey,
}

impl Tasks {
    pub(crate) const fn staged(self) -> bool {
        matches!(self, Self::Staged | Self::StagedByKey)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) messages: usize,
    /// Ordering keys, from the publisher through to the topics.
    pub(crate) keys: Option<usize>,
    /// The subscription confirms acknowledgements.
    pub(crate) exactly_once: bool,
    topics: usize,
    queues: usize,
    pub(crate) publish_staged: bool,
    pub(crate) tasks: Tasks,
    pub(crate) batched: bool,
    pub(crate) saved: SavedDeliveries,
    pub(crate) lease: Duration,
    pub(crate) interval: Duration,
    /// Reading goes on while a snapshot waits, and several checkpoints are open at once.
    pub(crate) overlap: bool,
    /// The host marks what it is about to commit.
    pub(crate) marks: bool,
    /// What a sink takes before it waits for answers, or for a checkpoint.
    pub(crate) room: usize,
    pub(crate) buffer: usize,
    /// Faults strike for so long.
    pub(crate) troubled: Duration,
    /// Messages are published for so long.
    pub(crate) loaded: Duration,
}

impl Plan {
    /// A planted bug gets more messages and more time: some show only where one accident follows
    /// another.
    pub(crate) fn new(chance: &mut Chance, planted: bool) -> Self {
        let (messages, troubled) = if planted {
            (12..40, 20_000..60_000)
        } else {
            (6..28, 8_000..40_000)
        };
        let keys = chance.pick(&[None, None, None, Some(1), Some(3), Some(8)]);
        Self {
            messages: chance.random().usize(messages),
            keys,
            exactly_once: chance.one_in(5),
            topics: chance.pick(&[1, 2, 3]),
            queues: chance.pick(&[1, 2, 3]),
            publish_staged: chance.one_in(2),
            tasks: chance.pick(&[
                Tasks::Unnamed,
                Tasks::ByKey,
                Tasks::Staged,
                Tasks::StagedByKey,
            ]),
            batched: chance.one_in(3),
            saved: chance.pick(&[
                SavedDeliveries::MessageIds,
                SavedDeliveries::MessageIds,
                SavedDeliveries::AckIds,
                SavedDeliveries::AckIds,
                SavedDeliveries::Nothing,
            ]),
            lease: Duration::from_secs(chance.pick(&[10, 15, 60])),
            interval: Duration::from_millis(if planted {
                chance.pick(&[500, 1_500])
            } else {
                chance.pick(&[500, 1_500, 3_000, 8_000])
            }),
            overlap: chance.one_in(3),
            marks: chance.one_in(2),
            room: chance.pick(&[2, 6, 100]),
            buffer: chance.pick(&[3, 1_000]),
            troubled: chance.millis(troubled),
            loaded: chance.millis(1..25_000),
        }
    }

    /// Whether the source recognises what a restored state names.
    pub(crate) fn recognises(&self) -> bool {
        !matches!(self.saved, SavedDeliveries::Nothing)
    }

    pub(crate) fn key(&self, message: usize) -> Option<usize> {
        self.keys.map(|keys| message % keys)
    }

    pub(crate) const fn is_published(message: usize) -> bool {
        message % 7 != 3
    }

    pub(crate) const fn is_task(message: usize) -> bool {
        message % 5 != 4
    }

    pub(crate) fn topics(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.topics).map(|topic| format!("projects/demo/topics/out-{topic}"))
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.queues).map(|queue| format!("projects/demo/locations/l/queues/q-{queue}"))
    }

    /// The index of the topic of a message; all of a key go to one.
    pub(crate) fn topic(&self, message: usize) -> usize {
        self.key(message).unwrap_or(message) % self.topics
    }

    pub(crate) const fn queue(&self, message: usize) -> usize {
        message % self.queues
    }

    /// What the host may say about a state without the mark: nothing, when commits and snapshots
    /// overlap.
    pub(crate) const fn knows_untouched(&self) -> bool {
        self.marks && !self.overlap
    }
}
