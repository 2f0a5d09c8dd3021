//! What a seed brings.

use std::time::Duration;

use super::Counts;

/// What must happen at least once over all runs, or the simulation proves less than it says.
pub(super) const EVERYTHING: [&str; 37] = [
    "a batch was answered as not done",
    "a batch was partly refused",
    "a call arrived after its client gave up",
    "a call became too late before it was sent",
    "a call was answered UNAVAILABLE after it took effect",
    "a call was answered UNAVAILABLE before it took effect",
    "a call was lost",
    "a checkpoint was aborted",
    "a checkpoint was asked for",
    "a checkpoint was skipped by the commits",
    "a clock was set",
    "a commit was repeated",
    "a commit waited too long for its quarantine to be durable",
    "a crash",
    "a crash between two effects",
    "a flush of the handler failed",
    "a machine slept",
    "a mark was lost",
    "a name expired",
    "a process went on after it was replaced",
    "a queue was missing or closed",
    "a quiet run",
    "a refused task was kept aside",
    "a save failed",
    "a save failed though it was durable",
    "a settled state was restored",
    "a state that names tasks was restored",
    "a state was restored twice",
    "a task existed when it was asked for",
    "a task of a batch was told as failed after it was created",
    "a task expired",
    "an answer was lost",
    "an operator forced a task",
    "an operator marked a task",
    "an untouched state was restored",
    "the host waited for room",
    "the sink ended after it had stood still",
];

/// Chances of one run, and its source of random numbers.
pub(super) struct Chance {
    random: fastrand::Rng,
    pub(super) counts: Counts,
    /// The time of faults is over.
    pub(super) calm: bool,
    rates: Rates,
}

/// Per occasion, in thousandths.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) crash: u32,
    pub(super) lose_call: u32,
    pub(super) lose_answer: u32,
    pub(super) unavailable: u32,
    pub(super) late: u32,
    pub(super) trouble: u32,
    pub(super) flush_trouble: u32,
    pub(super) keep_aside: u32,
    pub(super) save_trouble: u32,
    pub(super) abort: u32,
    pub(super) skip_commit: u32,
    pub(super) lose_mark: u32,
    pub(super) twin: u32,
    pub(super) zombie: u32,
    pub(super) long_stop: u32,
    pub(super) sleep: u32,
    pub(super) clock: u32,
    pub(super) not_done: u32,
    pub(super) doubt: u32,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let quiet = random.u8(..12) == 0;
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
            lose_call: rate(200),
            lose_answer: rate(300),
            unavailable: rate(300),
            late: rate(200),
            trouble: rate(60),
            flush_trouble: rate(500),
            keep_aside: rate(1_000),
            save_trouble: rate(200),
            abort: rate(200),
            skip_commit: rate(300),
            lose_mark: rate(600),
            twin: rate(500),
            zombie: rate(700),
            long_stop: rate(500),
            sleep: rate(20),
            clock: rate(50),
            not_done: rate(600),
            doubt: rate(400),
        };
        let mut chance = Self {
            random,
            counts: Counts::new(),
            calm: false,
            rates,
        };
        if quiet {
            chance.count("a quiet run");
        }
        chance
    }

    pub(super) fn count(&mut self, what: &'static str) {
        debug_assert!(EVERYTHING.contains(&what), "{what:?} is not listed");
        *self.counts.entry(what).or_default() += 1;
    }

    /// Whether a fault happens on this occasion. Never once the time of faults is over.
    pub(super) fn strikes(&mut self, rate: impl Fn(&Rates) -> u32) -> bool {
        let rate = rate(&self.rates);
        !self.calm && rate > 0 && self.random.u32(..1000) < rate
    }

    pub(super) fn one_in(&mut self, n: u32) -> bool {
        self.random.u32(..n) == 0
    }

    /// A task id, so that a run is a function of its seed to the last byte.
    pub(super) fn task_id(&mut self) -> String {
        format!("{:032x}", self.random.u128(..))
    }

    pub(super) fn below(&mut self, n: u32) -> u32 {
        self.random.u32(..n)
    }

    pub(super) fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.random.u64(range))
    }

    pub(super) fn seconds(&mut self, range: std::ops::Range<i64>) -> i64 {
        self.random.i64(range)
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.usize(..from.len())]
    }
}
