//! What happens by chance in one run of a simulation.

use std::{ops::Range, time::Duration};

use super::Counts;

/// The random numbers of one run, its faults, and how often each of them struck.
///
/// `R` holds the rates of the faults, per thousand occasions.
#[derive(Debug)]
pub struct Chance<R> {
    random: fastrand::Rng,
    everything: &'static [&'static str],
    counts: Counts,
    quiet: bool,
    calm: bool,
    rates: R,
}

impl<R> Chance<R> {
    /// The chance of a seed. One run in `quiet` has no fault at all.
    ///
    /// `rates` makes the rates by a function that answers a rate up to the given one: each fault is
    /// absent from half of the runs, so that those of the others have company and room. What is
    /// counted has to be one of `everything`.
    pub fn new(
        seed: u64,
        quiet: u8,
        everything: &'static [&'static str],
        rates: impl FnOnce(&mut dyn FnMut(u32) -> u32) -> R,
    ) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let quiet = random.u8(..quiet) == 0;
        let rates = rates(&mut |most| {
            if quiet || random.bool() {
                0
            } else {
                random.u32(1..=most)
            }
        });
        Self {
            random,
            everything,
            counts: Counts::new(),
            quiet,
            calm: false,
            rates,
        }
    }

    /// Whether no fault strikes in this run.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The run is not as quiet as it was to be.
    pub fn disturb(&mut self) {
        self.quiet = false;
    }

    /// Whether the time of faults is over.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.calm
    }

    /// From now on no fault strikes.
    pub fn calm_down(&mut self) {
        self.calm = true;
    }

    /// What happened.
    #[must_use]
    pub fn into_counts(self) -> Counts {
        self.counts
    }

    /// Something happened.
    ///
    /// # Panics
    ///
    /// With debug assertions, when it is not one of `everything`.
    pub fn count(&mut self, what: &'static str) {
        self.count_many(what, 1);
    }

    /// Something happened so many times.
    ///
    /// # Panics
    ///
    /// With debug assertions, when it is not one of `everything`.
    pub fn count_many(&mut self, what: &'static str, times: u64) {
        debug_assert!(self.everything.contains(&what), "{what:?} is not listed");
        if times > 0 {
            *self.counts.entry(what).or_default() += times;
        }
    }

    /// Whether a fault happens on this occasion. Never once the time of faults is over.
    pub fn strikes(&mut self, rate: impl Fn(&R) -> u32) -> bool {
        let rate = rate(&self.rates);
        !self.calm && rate > 0 && self.random.u32(..1000) < rate
    }

    /// True once in `n` times.
    ///
    /// # Panics
    ///
    /// When `n` is 0.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.random.u32(..n) == 0
    }

    /// So many milliseconds.
    ///
    /// # Panics
    ///
    /// When the range is empty.
    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.random.u64(range))
    }

    /// One of these.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.usize(..from.len())]
    }

    /// For everything else that is random.
    pub fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(seed: u64) -> Chance<u32> {
        Chance::new(seed, 10, &["a strike"], |rate| rate(1000))
    }

    #[test]
    fn a_run_follows_from_its_seed() {
        let draws = |seed| {
            let mut chance = chance(seed);
            let numbers: Vec<u64> = (0..20).map(|_| chance.random().u64(..)).collect();
            (chance.is_quiet(), numbers, chance.strikes(|rate| *rate))
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }

    #[test]
    fn nothing_strikes_in_a_quiet_run_or_when_the_time_of_faults_is_over() {
        let mut struck = 0;
        for seed in 0..200 {
            let mut chance = chance(seed);
            for _ in 0..20 {
                if chance.strikes(|rate| *rate) {
                    assert!(!chance.is_quiet());
                    chance.count("a strike");
                }
            }
            chance.calm_down();
            for _ in 0..20 {
                assert!(!chance.strikes(|rate| *rate));
            }
            struck += chance.into_counts().get("a strike").copied().unwrap_or(0);
        }
        assert!(struck > 0);
    }
}
