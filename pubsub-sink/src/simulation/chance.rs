//! What a seed brings.

use std::{num::NonZeroU32, time::Duration};

use connector_core::{Limits, backoff::Backoff};

use super::Counts;
use crate::{Delivery, MissingTopics, TopicCreation, machine::Retry, settings::Settings};

/// What must happen at least once over all runs, or the simulation proves less than it says.
pub(super) const EVERYTHING: [&str; 38] = [
    "a checkpoint was aborted",
    "a checkpoint was asked for",
    "a checkpoint was skipped by the commits",
    "a commit was repeated",
    "a commit waited too long for its quarantine to be durable",
    "a crash",
    "a crash between two effects",
    "a dead letter was kept",
    "a flush of the handler failed",
    "a mark was lost",
    "a message was kept aside",
    "a message was published again",
    "a quarantined message was discarded",
    "a quarantined message was staged again",
    "a quiet run",
    "a quota was used up",
    "a record was refused before it was staged or sent",
    "a request was answered UNAVAILABLE after it took effect",
    "a request was answered UNAVAILABLE before it took effect",
    "a request was divided",
    "a request was evaluated after its client gave up",
    "a request was lost",
    "a save failed",
    "a save failed though it was durable",
    "a settled state was restored",
    "a state that names messages was restored",
    "a state was restored twice",
    "a topic could not be created",
    "a topic did not exist",
    "a topic was created",
    "a topic was deleted",
    "an answer arrived before an earlier one",
    "an answer was lost",
    "an orderly close",
    "the host waited for room",
    "the stage was full",
    "two checkpoints were open at once",
    "whoever submitted a record was told",
];

/// Chances of one run, and its source of random numbers.
pub(super) struct Chance {
    random: fastrand::Rng,
    pub(super) counts: Counts,
    /// No fault at all: nothing may be published twice.
    pub(super) quiet: bool,
    /// The time of faults is over.
    pub(super) calm: bool,
    rates: Rates,
}

/// Per occasion, in thousandths.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) crash: u32,
    pub(super) lose_request: u32,
    pub(super) lose_answer: u32,
    pub(super) unavailable: u32,
    pub(super) quota: u32,
    pub(super) late: u32,
    pub(super) poison: u32,
    pub(super) broken: u32,
    pub(super) delete_topic: u32,
    pub(super) creation_trouble: u32,
    pub(super) flush_trouble: u32,
    pub(super) keep_aside: u32,
    pub(super) save_trouble: u32,
    pub(super) abort: u32,
    pub(super) skip_commit: u32,
    pub(super) lose_mark: u32,
    pub(super) twin: u32,
    pub(super) close: u32,
    pub(super) hesitate: u32,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let quiet = random.u8(..10) == 0;
        // Each fault is absent from half of the runs, so that those of the others have company and
        // room.
        let mut rate = |most: u32| {
            if quiet || random.bool() {
                0
            } else {
                random.u32(1..=most)
            }
        };
        let rates = Rates {
            crash: rate(12),
            lose_request: rate(150),
            lose_answer: rate(150),
            unavailable: rate(250),
            quota: rate(100),
            late: rate(150),
            poison: rate(250),
            broken: rate(80),
            delete_topic: rate(60),
            creation_trouble: rate(500),
            flush_trouble: rate(400),
            keep_aside: rate(1_000),
            save_trouble: rate(150),
            abort: rate(150),
            skip_commit: rate(250),
            lose_mark: rate(300),
            twin: rate(500),
            close: rate(80),
            hesitate: rate(500),
        };
        Self {
            random,
            counts: Counts::new(),
            quiet,
            calm: false,
            rates,
        }
    }

    pub(super) fn count(&mut self, what: &'static str) {
        self.count_many(what, 1);
    }

    pub(super) fn count_many(&mut self, what: &'static str, times: u64) {
        debug_assert!(EVERYTHING.contains(&what), "{what:?} is not listed");
        if times > 0 {
            *self.counts.entry(what).or_default() += times;
        }
    }

    /// Whether a fault happens on this occasion. Never once the time of faults is over.
    pub(super) fn strikes(&mut self, rate: impl Fn(&Rates) -> u32) -> bool {
        let rate = rate(&self.rates);
        !self.calm && rate > 0 && self.random.u32(..1000) < rate
    }

    pub(super) fn one_in(&mut self, n: u32) -> bool {
        self.random.u32(..n) == 0
    }

    pub(super) fn number(&mut self, range: std::ops::Range<usize>) -> usize {
        self.random.usize(range)
    }

    pub(super) fn unit(&mut self) -> f64 {
        self.random.f64()
    }

    pub(super) fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.random.u64(range))
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.usize(..from.len())]
    }

    pub(super) fn settings(&mut self) -> Settings {
        let delivery = self.pick(&[Delivery::Flush, Delivery::Staged]);
        let seconds = |first, most| {
            let (first, most) = (Duration::from_millis(first), Duration::from_millis(most));
            Backoff::new(first, 2.0, most)
        };
        Settings {
            delivery,
            stage: Limits::items(self.pick(&[1, 6, 20, 200])),
            quarantine: Limits::items(1_000),
            batch_messages: self.pick(&[1, 4, 1_000]),
            batch_bytes: self.pick(&[120, 10_000]),
            linger: Duration::from_millis(self.pick(&[0, 0, 80])),
            in_flight: self.pick(&[1, 2, 4]),
            ordering: true,
            retry: Retry {
                total: None,
                delays: seconds(100, 2_000),
                quota_delays: seconds(500, 2_000),
                deadlines: seconds(1_000, 4_000),
            },
            // Nothing in a run stands still for as long.
            progress_timeout: Duration::from_secs(36_000),
            close_timeout: Duration::from_secs(self.pick(&[1, 20])),
            missing_topics: MissingTopics::Create(
                TopicCreation::default()
                    .delays(seconds(200, 2_000))
                    .attempts(NonZeroU32::MAX),
            ),
            max_destinations: self.pick(&[1, 2, 100]),
            idle_destinations: Duration::from_secs(5),
            max_consecutive_rejections: None,
            ..Settings::default()
        }
    }
}
