//! Queues that take no tasks for now.
//!
//! A queue that is missing, or closed to us, is asked by one task at a time, less and less often;
//! its other tasks wait without an attempt and without a stream, so that they hold up nobody.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use gcp_wire::QueueName;

use super::super::RecordId;

/// The longest time between two attempts for a queue: it may be created at any moment.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Holds {
    queues: BTreeMap<QueueName, Hold>,
}

#[derive(Debug, Default)]
struct Hold {
    /// When to ask again; nothing while somebody asks.
    due: Option<Instant>,
    /// The task that asks.
    probe: Option<RecordId>,
    waiting: VecDeque<RecordId>,
    failures: u32,
}

impl Holds {
    /// Whether a task of this queue has to wait. Takes it in if it has.
    pub(super) fn takes(&mut self, queue: &QueueName, record: RecordId) -> bool {
        let Some(hold) = self.queues.get_mut(queue) else {
            return false;
        };
        if hold.probe == Some(record) {
            return false;
        }
        hold.waiting.push_back(record);
        true
    }

    /// The queue took no task. `delay` says how long to wait after so many failures.
    pub(super) fn fail(
        &mut self,
        queue: &QueueName,
        record: RecordId,
        now: Instant,
        delay: impl FnOnce(u32) -> Duration,
    ) {
        let hold = self.queues.entry(queue.clone()).or_default();
        hold.waiting.push_front(record);
        let asked = hold.probe == Some(record);
        // Answers to what was on its way when the first one came say nothing new.
        if asked || (hold.probe.is_none() && hold.due.is_none()) {
            hold.probe = None;
            hold.failures = hold.failures.saturating_add(1);
            let delay = delay(hold.failures);
            hold.due = Some(now.checked_add(delay).unwrap_or(now));
        }
    }

    /// Whether this record is the one that asks for its queue.
    pub(super) fn asks(&self, queue: &QueueName, record: RecordId) -> bool {
        self.queues
            .get(queue)
            .is_some_and(|hold| hold.probe == Some(record))
    }

    /// The queue takes tasks: everything that waited for it may go on.
    pub(super) fn open(&mut self, queue: &QueueName) -> VecDeque<RecordId> {
        self.queues
            .remove(queue)
            .map(|hold| hold.waiting)
            .unwrap_or_default()
    }

    /// The one that asked is gone without an answer: the next one asks at once.
    pub(super) fn next_asks(&mut self, queue: &QueueName) -> Option<RecordId> {
        let hold = self.queues.get_mut(queue)?;
        hold.due = None;
        hold.probe = hold.waiting.pop_front();
        if hold.probe.is_none() {
            self.queues.remove(queue);
            return None;
        }
        hold.probe
    }

    /// When the first queue is to be asked again.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queues.values().filter_map(|hold| hold.due).min()
    }

    /// The queues that are to be asked again now.
    pub(super) fn due(&self, now: Instant) -> Vec<QueueName> {
        self.queues
            .iter()
            .filter(|(_, hold)| hold.due.is_some_and(|due| due <= now))
            .map(|(queue, _)| queue.clone())
            .collect()
    }

    /// Tasks that wait for their queue.
    pub(super) fn len(&self) -> usize {
        self.queues.values().map(|hold| hold.waiting.len()).sum()
    }

    pub(super) fn clear(&mut self) {
        self.queues.clear();
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn records(&self) -> Vec<RecordId> {
        self.queues
            .values()
            .flat_map(|hold| hold.waiting.iter().copied())
            .collect()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        for (queue, hold) in &self.queues {
            assert!(
                hold.due.is_some() != hold.probe.is_some(),
                "{queue} is asked now or later"
            );
            assert!(
                hold.probe.is_some() || !hold.waiting.is_empty(),
                "somebody waits for {queue}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn queue(id: &str) -> QueueName {
        format!("projects/demo/locations/l/queues/{id}")
            .parse()
            .unwrap()
    }

    #[test]
    fn a_queue_is_asked_by_one_task_at_a_time_and_less_and_less_often() {
        let now = crate::driver::clock::now();
        let (queue, mut holds) = (queue("q"), Holds::default());
        let [first, second, third] = [0, 1, 2].map(RecordId::of);
        let delay = |failures| SECOND * failures;
        assert!(!holds.takes(&queue, first), "it takes tasks");
        holds.fail(&queue, first, now, delay);
        // Sent before the first answer came.
        holds.fail(&queue, second, now + SECOND, delay);
        holds.check_invariants();
        assert_eq!(holds.next_due(), Some(now + SECOND));
        assert!(holds.takes(&queue, third));
        assert_eq!(holds.len(), 3);
        assert!(holds.due(now).is_empty());
        assert_eq!(holds.due(now + SECOND), std::slice::from_ref(&queue));

        assert_eq!(holds.next_asks(&queue), Some(second));
        assert!(holds.asks(&queue, second) && !holds.asks(&queue, first));
        assert!(!holds.takes(&queue, second), "it is sent");
        assert_eq!((holds.next_due(), holds.len()), (None, 2));
        holds.fail(&queue, first, now, delay);
        assert!(
            holds.asks(&queue, second),
            "an older answer says nothing new"
        );
        holds.check_invariants();
        holds.fail(&queue, second, now + SECOND * 2, delay);
        holds.check_invariants();
        assert_eq!(holds.next_due(), Some(now + SECOND * 4));
        assert_eq!(
            holds.open(&queue).len(),
            4,
            "one of them twice, as it was told"
        );
        assert_eq!((holds.next_due(), holds.len()), (None, 0));
        assert!(!holds.takes(&queue, third));
    }

    #[test]
    fn a_queue_that_nobody_waits_for_is_forgotten() {
        let now = crate::driver::clock::now();
        let queues = [queue("q"), queue("r")];
        let mut holds = Holds::default();
        for (queue, record) in queues.iter().zip([0, 1].map(RecordId::of)) {
            holds.fail(queue, record, now, |_| SECOND);
            assert_eq!(holds.next_asks(queue), Some(record));
        }
        assert_eq!(holds.next_asks(&queues[0]), None, "the only one is gone");
        assert!(!holds.takes(&queues[0], RecordId::of(2)));
        assert!(holds.takes(&queues[1], RecordId::of(2)));
        holds.clear();
        assert_eq!(holds.len(), 0);
        assert!(!holds.takes(&queues[1], RecordId::of(2)));
    }
}
